"""The chart's objects at a real API server, with strict validation and the restricted Pod Security level."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from control_plane import ControlPlane, Object, wait_until
from rendering import CASES, CHART, helm, many_pools, objects, pods

pytestmark = [pytest.mark.once, pytest.mark.needs("cluster"), pytest.mark.timeout(1800)]

HELMS = ("helm-3", "helm-4")
LIMIT = 2**20
"""Maximum size of a Secret in etcd, in bytes."""


@pytest.fixture
def namespace(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace that admits only restricted pods."""
    name = f"n{abs(hash(request.node.nodeid)) % 10**8}"
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    yield name
    plane.clear(name)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_each_case_passes_strict_validation(plane: ControlPlane, namespace: str, case: Path) -> None:
    rendered = _render(plane, namespace, case)
    output = plane.kubectl(
        "apply", "--dry-run=server", "--validate=strict", "--server-side", "-n", namespace, "-f", "-", stdin=rendered
    )
    assert output.count("serverside-applied") == len(objects(rendered))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_a_namespace_that_enforces_the_restricted_level_admits_each_pod(
    plane: ControlPlane, namespace: str, case: Path
) -> None:
    scheduling, node = "scheduling.k8s.io/v1", "node.k8s.io/v1"
    plane.apply(
        {"apiVersion": scheduling, "kind": "PriorityClass", "metadata": {"name": "low"}, "value": -1},
        {"apiVersion": node, "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"},
    )
    pod_objects = [_as_pod(name, template) for name, template in pods(objects(_render(plane, namespace, case)))]
    plane.kubectl("create", "serviceaccount", "any", "-n", namespace)
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": pod_objects})
    output = plane.kubectl("create", "--dry-run=server", "--validate=strict", "-n", namespace, "-f", "-", stdin=items)
    assert output.count("created") == len(pod_objects)


@pytest.mark.parametrize("program", HELMS)
def test_the_token_survives_upgrades_and_is_deleted_with_the_release(
    plane: ControlPlane, namespace: str, program: str
) -> None:
    options = ["--namespace", namespace]
    helm(program, "install", "devbench", str(CHART), *options, kubeconfig=plane.kubeconfig)
    first = _token(plane, namespace)
    assert len(first) == 48
    helm(
        program,
        "upgrade",
        "devbench",
        str(CHART),
        *options,
        "--set",
        "hub.service.port=81",
        kubeconfig=plane.kubeconfig,
    )
    assert _token(plane, namespace) == first
    output = helm(program, "uninstall", "devbench", *options, kubeconfig=plane.kubeconfig)
    assert "PersistentVolumeClaim" in output, "Helm names the results that stay"
    wait_until("only the results are left", lambda: _remaining(plane, namespace) == ["devbench-results"])


@pytest.mark.parametrize("program", HELMS)
def test_an_upgrade_that_changes_only_the_hub_keeps_every_job(
    plane: ControlPlane, namespace: str, program: str, tmp_path: Path
) -> None:
    chart = tmp_path / "devbench"
    shutil.copytree(CHART, chart)
    description = (CHART / "Chart.yaml").read_text(encoding="utf-8").replace("version: 0.1.0", "version: 0.2.0")
    (chart / "Chart.yaml").write_text(description, encoding="utf-8")
    options = ["--namespace", namespace]
    helm(program, "install", "devbench", str(CHART), *options, kubeconfig=plane.kubeconfig)
    before = _uids(plane, namespace)
    assert len(before) == 2
    changed = ["--set", "hub.resources.limits.memory=1Gi", "--set", "watcher.waitSeconds=60"]
    helm(program, "upgrade", "devbench", str(chart), *options, *changed, kubeconfig=plane.kubeconfig)
    assert _uids(plane, namespace) == before
    helm(program, "upgrade", "devbench", str(chart), *options, "--set", "settings.seed=2", kubeconfig=plane.kubeconfig)
    wait_until("superseded Jobs are deleted", lambda: len(_uids(plane, namespace)) == 2)
    assert not set(_uids(plane, namespace)) & set(before), "changed settings create new Jobs"


@pytest.mark.parametrize("program", HELMS)
def test_a_release_with_200_pools_of_5_workloads_fits_into_its_secret(
    plane: ControlPlane, namespace: str, program: str, tmp_path: Path
) -> None:
    values = tmp_path / "values.json"
    values.write_text(json.dumps(many_pools(200)), encoding="utf-8")
    words = ["install", "devbench", str(CHART), "--namespace", namespace, "--values", str(values)]
    helm(program, *words, kubeconfig=plane.kubeconfig)
    (secret,) = plane.get("secrets", "-n", namespace, "-l", "owner=helm")
    stored = base64.b64decode(secret["data"]["release"])
    assert len(stored) < LIMIT / 2, "there is room for twice as much"
    assert gzip.decompress(base64.b64decode(stored))
    assert len(plane.get("jobs", "-n", namespace)) == 200


def _render(plane: ControlPlane, namespace: str, case: Path) -> str:
    """Render a case as Helm would install it in this cluster."""
    words = ["template", "devbench", str(CHART), "--namespace", namespace, "--values", str(case), "--dry-run=server"]
    return helm("helm-4", *words, kubeconfig=plane.kubeconfig)


def _as_pod(name: str, template: Object) -> Object:
    kind, _, owner = name.partition("/")
    metadata = {key: value for key, value in template["metadata"].items() if key != "namespace"}
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "name": f"{kind.lower()}-{owner}"},
        "spec": {**template["spec"], "restartPolicy": "Never", "serviceAccountName": "any"},
    }
    return pod


def _token(plane: ControlPlane, namespace: str) -> str:
    secret = json.loads(plane.kubectl("get", "secret", "devbench-hub-token", "-n", namespace, "-o", "json"))
    return base64.b64decode(secret["data"]["token"]).decode()


def _uids(plane: ControlPlane, namespace: str) -> list[str]:
    jobs = plane.get("jobs", "-n", namespace)
    return sorted(job["metadata"]["uid"] for job in jobs if "deletionTimestamp" not in job["metadata"])


def _remaining(plane: ControlPlane, namespace: str) -> list[str]:
    kinds = "jobs,cronjobs,pods,deployments,services,secrets,configmaps,roles,networkpolicies,pvc,serviceaccounts"
    defaults = ("kube-root-ca.crt", "default")
    return [name for item in plane.get(kinds, "-n", namespace) if (name := item["metadata"]["name"]) not in defaults]
