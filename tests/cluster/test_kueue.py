"""The chart with Kueue's real controller, which writes the labels and tolerations of a flavor into admitted Jobs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import programs
import pytest
import yaml
from cluster_fixtures import go_module
from control_plane import HOLD, ControlPlane, Object, free_port, wait_until
from nodes import node
from rendering import CHART, TOKEN, helm, merge

pytestmark = [pytest.mark.once, pytest.mark.needs("control-plane"), pytest.mark.timeout(2400)]

API = "kueue.x-k8s.io/v1beta2"
FLAVOR = {"flavor": "spot"}
TAINT = {"key": "flavor", "value": "spot", "effect": "NoSchedule"}
QUOTAS = [{"name": name, "nominalQuota": "100Gi"} for name in ("memory", "ephemeral-storage")]
OBJECTS: list[Object] = [
    {
        "kind": "ResourceFlavor",
        "metadata": {"name": "spot"},
        "spec": {"nodeLabels": FLAVOR, "tolerations": [{"key": "flavor", "operator": "Exists"}]},
    },
    {
        "kind": "ClusterQueue",
        "metadata": {"name": "all"},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu", "memory", "ephemeral-storage"],
                    "flavors": [{"name": "spot", "resources": [{"name": "cpu", "nominalQuota": "100"}, *QUOTAS]}],
                }
            ],
        },
    },
]


@pytest.fixture(scope="module")
def kueue(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane with Kueue, a flavor with labels and a taint, and a node that has them."""
    folder = tmp_path_factory.mktemp("kueue")
    module = programs.TOOLS["kueue"].replace("/cmd/kueue", "")
    for file in sorted((go_module(module) / "config/components/crd/bases").glob("*.yaml")):
        plane.apply(_definition(file))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kueue-webhook-server-cert"}}
    plane.kubectl("apply", "-n", "default", "-f", "-", stdin=json.dumps(secret))
    for kind in ("mutating", "validating"):
        metadata = {"name": f"kueue-{kind}-webhook-configuration"}
        configuration = {"kind": f"{kind.title()}WebhookConfiguration", "metadata": metadata, "webhooks": []}
        plane.apply({"apiVersion": "admissionregistration.k8s.io/v1", **configuration})
    plane.apply(node("kueue-spot", {**FLAVOR, "pool": "own"}, [TAINT]))
    options = f"--config={_configuration(folder)}"
    kubeconfig = f"--kubeconfig={plane.kubeconfig}"
    plane.start_program(programs.tool("kueue"), options, kubeconfig, "--feature-gates=VisibilityOnDemand=false")
    plane.apply(*({"apiVersion": API, **item} for item in OBJECTS))
    yield plane
    process = plane.running.pop("kueue")
    process.kill()
    process.wait()
    plane.kubectl("delete", "node", "kueue-spot")


@pytest.mark.parametrize("program", ["helm-3", "helm-4"])
def test_an_admitted_job_runs_on_its_flavor_and_survives_an_upgrade_of_the_hub(
    kueue: ControlPlane, program: str, tmp_path: Path
) -> None:
    namespace = f"queued-{program}"
    kueue.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    queue = {"kind": "LocalQueue", "metadata": {"name": "benchmarks", "namespace": namespace}}
    kueue.apply({"apiVersion": API, **queue, "spec": {"clusterQueue": "all"}})
    pool = {
        "preset": "none",
        "nodeSelector": {"pool": "own"},
        "tolerations": [{"key": "team", "operator": "Exists"}],
        "queue": "benchmarks",
        "cpu": 1,
        "podAnnotations": {HOLD: "1"},
    }
    values = tmp_path / "values.json"
    values.write_text(json.dumps(merge(TOKEN, {"workloads": ["cifar"], "pools": {"cpu": pool}})), encoding="utf-8")
    place = ("devbench", str(CHART), "--namespace", namespace)
    helm(program, "install", *place, "--values", str(values), kubeconfig=kueue.kubeconfig)
    before = wait_until("Kueue has admitted the Job and its pod is bound", lambda: _admitted(kueue, namespace))
    helm(program, "upgrade", *place, "--reuse-values", "--set", "hub.service.port=82", kubeconfig=kueue.kubeconfig)
    after = _admitted(kueue, namespace)
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["template"]["spec"]["tolerations"] == before["spec"]["template"]["spec"]["tolerations"]
    (service,) = kueue.get("services", "-n", namespace)
    assert service["spec"]["ports"][0]["port"] == 82
    kueue.clear(namespace)


def test_all_workers_of_a_run_are_admitted_or_none(kueue: ControlPlane, tmp_path: Path) -> None:
    """The quota has 100 CPUs: enough for two workers of 40 CPUs, but not for three."""
    namespace = "queued-workers"
    kueue.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    queue = {"kind": "LocalQueue", "metadata": {"name": "benchmarks", "namespace": namespace}}
    kueue.apply({"apiVersion": API, **queue, "spec": {"clusterQueue": "all"}})
    pool = {"preset": "none", "queue": "benchmarks", "cpu": 40, "podAnnotations": {HOLD: "1"}}
    pools = {"cpu": None, "two": {**pool, "workers": [2]}, "three": {**pool, "workers": [3]}}
    values = tmp_path / "values.json"
    values.write_text(json.dumps(merge(TOKEN, {"workloads": ["cifar"], "pools": pools})), encoding="utf-8")
    place = ("devbench", str(CHART), "--namespace", namespace)
    helm("helm-4", "install", *place, "--values", str(values), kubeconfig=kueue.kubeconfig)

    def pods(pool: str) -> list[Object]:
        return kueue.get("pods", "-n", namespace, "-l", f"devbench/pool={pool}")

    def refused() -> bool:
        workloads = kueue.get("workloads.kueue.x-k8s.io", "-n", namespace)
        conditions = [item for workload in workloads for item in workload.get("status", {}).get("conditions", [])]
        return any(item["type"] == "QuotaReserved" and item["status"] == "False" for item in conditions)

    wait_until("both workers of the run that fits have a pod", lambda: len(pods("two")) == 2)
    wait_until("Kueue has no quota for the other run", refused)
    (job,) = kueue.get("jobs", "-n", namespace, "-l", "devbench/pool=three")
    assert job["spec"]["suspend"]
    assert pods("three") == []
    kueue.clear(namespace)


def _admitted(plane: ControlPlane, namespace: str) -> Object | None:
    """Return the Job if Kueue has admitted it with the flavor and its pod has a node."""
    plane.check_programs()
    (job,) = plane.get("jobs", "-n", namespace)
    selector = job["spec"]["template"]["spec"].get("nodeSelector", {})
    bound = [pod for pod in plane.get("pods", "-n", namespace, "-l", "devbench/pool") if pod["spec"].get("nodeName")]
    return job if bound and not job["spec"].get("suspend") and FLAVOR.items() <= selector.items() else None


def _definition(file: Path) -> Object:
    """Return a custom resource of Kueue with a webhook that converts it.

    Kueue waits until it can write its authority there. Nobody calls it, because all objects have the stored version.
    """
    definition: Object = yaml.safe_load(file.read_text(encoding="utf-8"))
    service = {"name": "kueue-webhook-service", "namespace": "default", "path": "/convert"}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service}}
    if len(definition["spec"]["versions"]) > 1:
        definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return definition


def _configuration(folder: Path) -> Path:
    """Write Kueue's configuration and a certificate for its webhooks, which nobody calls in this cluster."""
    names = ("-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt"))
    subject = ("-subj", "/CN=kueue", "-days", "2", "-nodes")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", *subject, *names], check=True, capture_output=True
    )
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "default",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": free_port(), "certDir": str(folder)},
        "leaderElection": {"leaderElect": False},
        "integrations": {"frameworks": ["batch/job"]},
    }
    file = folder / "configuration.yaml"
    file.write_text(json.dumps(configuration), encoding="utf-8")
    return file
