"""What the real API server says of the chart's objects, with strict validation and the restricted level enforced."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from plane import Object, Plane, until
from rendering import CASES, CHART, helm, objects, pods
from scale import many

pytestmark = [pytest.mark.once, pytest.mark.needs("cluster"), pytest.mark.timeout(1800)]

HELMS = ("helm-3", "helm-4")
LIMIT = 2**20
"""Bytes that etcd takes of a Secret."""


@pytest.fixture
def namespace(plane: Plane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace that takes nothing but restricted pods."""
    name = f"n{abs(hash(request.node.nodeid)) % 10**8}"
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    yield name
    plane.clear(name)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_each_case_passes_strict_validation(plane: Plane, namespace: str, case: Path) -> None:
    rendered = _dry(plane, namespace, case)
    said = plane.kubectl(
        "apply", "--dry-run=server", "--validate=strict", "--server-side", "-n", namespace, "-f", "-", given=rendered
    )
    assert said.count("serverside-applied") == len(objects(rendered))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_a_namespace_that_enforces_the_restricted_level_admits_each_pod(
    plane: Plane, namespace: str, case: Path
) -> None:
    scheduling, node = "scheduling.k8s.io/v1", "node.k8s.io/v1"
    plane.apply(
        {"apiVersion": scheduling, "kind": "PriorityClass", "metadata": {"name": "low"}, "value": -1},
        {"apiVersion": node, "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"},
    )
    made = [_as_pod(name, template) for name, template in pods(objects(_dry(plane, namespace, case)))]
    plane.kubectl("create", "serviceaccount", "any", "-n", namespace)
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
    said = plane.kubectl("create", "--dry-run=server", "--validate=strict", "-n", namespace, "-f", "-", given=listed)
    assert said.count("created") == len(made)


@pytest.mark.parametrize("program", HELMS)
def test_the_token_survives_upgrades_and_is_deleted_with_the_release(
    plane: Plane, namespace: str, program: str
) -> None:
    at = ["--namespace", namespace]
    helm(program, "install", "devbench", str(CHART), *at, kubeconfig=plane.kubeconfig)
    first = _token(plane, namespace)
    assert len(first) == 48
    helm(program, "upgrade", "devbench", str(CHART), *at, "--set", "hub.service.port=81", kubeconfig=plane.kubeconfig)
    assert _token(plane, namespace) == first
    said = helm(program, "uninstall", "devbench", *at, kubeconfig=plane.kubeconfig)
    assert "PersistentVolumeClaim" in said, "that results stay is said"
    until("everything but the results is gone", lambda: _left(plane, namespace) == ["devbench-results"])


@pytest.mark.parametrize("program", HELMS)
def test_an_upgrade_that_changes_only_the_hub_keeps_every_job(
    plane: Plane, namespace: str, program: str, tmp_path: Path
) -> None:
    later = tmp_path / "devbench"
    shutil.copytree(CHART, later)
    named = (CHART / "Chart.yaml").read_text(encoding="utf-8").replace("version: 0.1.0", "version: 0.2.0")
    (later / "Chart.yaml").write_text(named, encoding="utf-8")
    at = ["--namespace", namespace]
    helm(program, "install", "devbench", str(CHART), *at, kubeconfig=plane.kubeconfig)
    before = _uids(plane, namespace)
    assert len(before) == 2
    changed = ["--set", "hub.resources.limits.memory=1Gi", "--set", "watcher.waitSeconds=60"]
    helm(program, "upgrade", "devbench", str(later), *at, *changed, kubeconfig=plane.kubeconfig)
    assert _uids(plane, namespace) == before
    helm(program, "upgrade", "devbench", str(later), *at, "--set", "settings.seed=2", kubeconfig=plane.kubeconfig)
    until("superseded Jobs are gone", lambda: len(_uids(plane, namespace)) == 2)
    assert not set(_uids(plane, namespace)) & set(before), "changed settings make new Jobs"


@pytest.mark.parametrize("program", HELMS)
def test_a_release_with_200_pools_of_5_workloads_fits_into_its_secret(
    plane: Plane, namespace: str, program: str, tmp_path: Path
) -> None:
    values = tmp_path / "values.json"
    values.write_text(json.dumps(many(200)), encoding="utf-8")
    words = ["install", "devbench", str(CHART), "--namespace", namespace, "--values", str(values)]
    helm(program, *words, kubeconfig=plane.kubeconfig)
    (secret,) = plane.get("secrets", "-n", namespace, "-l", "owner=helm")
    stored = base64.b64decode(secret["data"]["release"])
    assert len(stored) < LIMIT / 2, "room for twice as much"
    assert gzip.decompress(base64.b64decode(stored))
    assert len(plane.get("jobs", "-n", namespace)) == 200


def _dry(plane: Plane, namespace: str, case: Path) -> str:
    """A case as Helm would install it here."""
    words = ["template", "devbench", str(CHART), "--namespace", namespace, "--values", str(case), "--dry-run=server"]
    return helm("helm-4", *words, kubeconfig=plane.kubeconfig)


def _as_pod(name: str, template: Object) -> Object:
    kind, _, named = name.partition("/")
    kept = {key: value for key, value in template["metadata"].items() if key != "namespace"}
    made: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**kept, "name": f"{kind.lower()}-{named}"},
        "spec": {**template["spec"], "restartPolicy": "Never", "serviceAccountName": "any"},
    }
    return made


def _token(plane: Plane, namespace: str) -> str:
    secret = json.loads(plane.kubectl("get", "secret", "devbench-hub-token", "-n", namespace, "-o", "json"))
    return base64.b64decode(secret["data"]["token"]).decode()


def _uids(plane: Plane, namespace: str) -> list[str]:
    found = plane.get("jobs", "-n", namespace)
    return sorted(each["metadata"]["uid"] for each in found if "deletionTimestamp" not in each["metadata"])


def _left(plane: Plane, namespace: str) -> list[str]:
    kinds = "jobs,cronjobs,pods,deployments,services,secrets,configmaps,roles,networkpolicies,pvc,serviceaccounts"
    known = ("kube-root-ca.crt", "default")
    return [name for each in plane.get(kinds, "-n", namespace) if (name := each["metadata"]["name"]) not in known]
