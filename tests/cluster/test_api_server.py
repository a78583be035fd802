"""The chart's objects at a real API server, with strict validation and the restricted Pod Security level."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from control_plane import ControlPlane, Object, wait_until
from rendering import CASES, CHART, DEFAULTS, HELMS, TOKEN, helm, many_pools, merge, objects, pods, text
from value_paths import POOL, UNRELATED, nested, paths

from charts.source.pools import UNMEASURED

pytestmark = [pytest.mark.once, pytest.mark.needs("cluster"), pytest.mark.timeout(1800)]

GPU: Object = {"pools": {"t4": {"enabled": True}}}
"""Values with the GPU pool that is off by default."""

QUEUE = "kueue.x-k8s.io/queue-name"
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
def test_an_upgrade_that_changes_no_measurement_keeps_every_job(
    plane: ControlPlane, namespace: str, program: str, tmp_path: Path
) -> None:
    chart = tmp_path / "devbench"
    shutil.copytree(CHART, chart)
    description = (CHART / "Chart.yaml").read_text(encoding="utf-8").replace("version: 0.1.0", "version: 0.2.0")
    (chart / "Chart.yaml").write_text(description, encoding="utf-8")
    release = Release(plane, namespace, program, tmp_path)
    release.helm("install", values=GPU)
    before = _uids(plane, namespace)
    assert len(before) == 2
    pool = {key: value for key, value in POOL.items() if key in UNMEASURED - {"enabled", "queue"}}
    changed = {**UNRELATED, "poolDefaults": pool, "image": {"pullPolicy": "Always", "pullSecrets": ["registry"]}}
    release.helm("upgrade", values={**GPU, **changed}, chart=chart)
    assert _uids(plane, namespace) == before
    release.helm("upgrade", "--reuse-values", "--set", "hub.service.port=82")
    assert _uids(plane, namespace) == before
    helm(program, "rollback", "devbench", "1", "-n", namespace, kubeconfig=plane.kubeconfig)
    assert _uids(plane, namespace) == before
    release.helm("upgrade", "--reuse-values", "--set", "rerun=1")
    wait_until("superseded Jobs are deleted", lambda: len(_uids(plane, namespace)) == 2)
    assert not set(_uids(plane, namespace)) & set(before), "rerun starts every Job again"


@pytest.mark.parametrize("program", HELMS)
def test_values_are_reused_after_a_pool_was_removed(
    plane: ControlPlane, namespace: str, program: str, tmp_path: Path
) -> None:
    release = Release(plane, namespace, program, tmp_path)
    release.helm("install", values={**GPU, "pools": {"t4": None}})
    release.helm("upgrade", "--reuse-values", "--set", "settings.xla=on")
    assert len(_uids(plane, namespace)) == 1


@pytest.mark.parametrize("program", HELMS)
def test_a_hub_can_change_from_postgresql_to_sqlite_and_back(
    plane: ControlPlane, namespace: str, program: str, tmp_path: Path
) -> None:
    release = Release(plane, namespace, program, tmp_path)
    postgresql: Object = {"hub": {"database": {"existingSecret": "database"}, "replicas": 2}}
    for values, strategy in ((postgresql, "RollingUpdate"), ({}, "Recreate"), (postgresql, "RollingUpdate")):
        release.helm("upgrade", "--install", values=values)
        (hub,) = plane.get("deployments", "-n", namespace, "-l", "app.kubernetes.io/component=hub")
        assert hub["spec"]["strategy"]["type"] == strategy


@pytest.mark.parametrize("program", HELMS)
def test_a_users_own_entries_are_installed_once(
    plane: ControlPlane, namespace: str, program: str, tmp_path: Path
) -> None:
    own = {
        "env": {"HOME": "/home", "DEVBENCH_HUB_WAIT": "1m"},
        "extraVolumes": [{"name": "tmp", "emptyDir": {"medium": "Memory"}}],
        "podLabels": {"sidecar.istio.io/inject": "true"},
    }
    release = Release(plane, namespace, program, tmp_path)
    release.helm("install", values={"poolDefaults": own, "hub": own, "watcher": own, "test": own})
    (job,) = plane.get("jobs", "-n", namespace)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert [item["value"] for item in container["env"] if item["name"] == "HOME"] == ["/home"]


@pytest.mark.parametrize("program", HELMS)
def test_a_job_that_kueue_has_admitted_does_not_keep_the_release_from_an_upgrade(
    plane: ControlPlane, namespace: str, program: str, tmp_path: Path
) -> None:
    """Kueue writes the labels and tolerations of a flavor into a suspended Job, and owns these fields from then on."""
    release = Release(plane, namespace, program, tmp_path)
    values = {"poolDefaults": {"queue": "benchmarks", "tolerations": [{"key": "team", "operator": "Exists"}]}}
    release.helm("install", values=values)
    (job,) = plane.get("jobs", "-n", namespace)
    patch = ["patch", "job", job["metadata"]["name"], "-n", namespace, "--type=merge", "--field-manager=kueue"]
    plane.kubectl(*patch, "-p", '{"spec": {"suspend": true}}')
    wait_until("the Job is suspended", lambda: _suspended(plane, namespace))
    tolerations = [{"key": "team", "operator": "Exists"}, {"key": "flavor", "operator": "Exists"}]
    template = {"spec": {"nodeSelector": {"flavor": "spot"}, "tolerations": tolerations}}
    plane.kubectl(*patch, "-p", json.dumps({"spec": {"suspend": False, "template": template}}))
    release.helm("upgrade", "--reuse-values", "--set", "hub.service.port=82")
    (admitted,) = plane.get("jobs", "-n", namespace)
    assert admitted["metadata"]["uid"] == job["metadata"]["uid"]
    spec = admitted["spec"]["template"]["spec"]
    assert (spec["nodeSelector"], spec["tolerations"]) == ({"flavor": "spot"}, tolerations)
    for queue in ("other", ""):  # Kueue would refuse it
        release.helm("upgrade", "--reuse-values", "--set", f"poolDefaults.queue={queue}")
        (kept,) = plane.get("jobs", "-n", namespace)
        assert kept["metadata"]["labels"][QUEUE] == "benchmarks"
        assert kept["spec"]["template"]["spec"]["tolerations"] == tolerations


@pytest.mark.parametrize("program", HELMS)
def test_a_job_that_waits_in_a_queue_moves_to_another_one_but_not_out_of_all(
    plane: ControlPlane, namespace: str, program: str, tmp_path: Path
) -> None:
    release = Release(plane, namespace, program, tmp_path)
    release.helm("install", values={"poolDefaults": {"queue": "benchmarks"}})
    (job,) = plane.get("jobs", "-n", namespace)
    plane.kubectl("patch", "job", job["metadata"]["name"], "-n", namespace, "-p", '{"spec": {"suspend": true}}')
    for queue in ("other", ""):
        release.helm("upgrade", "--reuse-values", "--set", f"poolDefaults.queue={queue}")
        (moved,) = plane.get("jobs", "-n", namespace)
        assert moved["metadata"]["labels"][QUEUE] == "other"
        assert moved["spec"]["suspend"]


def test_null_at_any_value_renders_objects_that_the_api_server_accepts(plane: ControlPlane, namespace: str) -> None:
    def rendered(path: tuple[str, ...]) -> str:
        return text(values=merge(DEFAULTS, nested(path, None)))

    required = ("pools", "t4", "accelerator")
    with ThreadPoolExecutor(2) as pool:
        manifests = sorted(set(pool.map(rendered, [path for path in paths() if path != required])))
    assert len(manifests) > 10
    for manifest in manifests:
        here = manifest.replace('namespace: "bench"\n', f"namespace: {namespace}\n")
        words = ("--dry-run=server", "--validate=strict", "--server-side", "--force-conflicts", "-n", namespace)
        plane.kubectl("apply", *words, "-f", "-", stdin=here)


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


@dataclass
class Release:
    """A release in a namespace."""

    plane: ControlPlane
    namespace: str
    program: str
    folder: Path

    def helm(self, *words: str, values: Object | None = None, chart: Path = CHART) -> None:
        """Install or upgrade it. Values are those of a file, besides the Secret of a token."""
        file = self.folder / "values.json"
        file.write_text(json.dumps(merge(TOKEN, values or {})), encoding="utf-8")
        options = ("--values", str(file)) if values is not None else ()
        command, *rest = words
        place = ("devbench", str(chart), "--namespace", self.namespace)
        helm(self.program, command, *place, *rest, *options, kubeconfig=self.plane.kubeconfig)


def _suspended(plane: ControlPlane, namespace: str) -> bool:
    (job,) = plane.get("jobs", "-n", namespace)
    return not job["status"].get("active") and "startTime" not in job["status"]


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
