"""The chart with JobSet's real controller and webhooks, which check, create and protect the Job of a run."""

from __future__ import annotations

import base64
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
from rendering import CHART, HELMS, TOKEN, helm, merge

pytestmark = [pytest.mark.once, pytest.mark.needs("control-plane"), pytest.mark.timeout(2400)]

NODES = ("jobset-a", "jobset-b")
POOL: Object = {
    "preset": "none",
    "nodeSelector": {"pool": "jobset"},
    "tolerations": [{"key": "team", "operator": "Exists"}],
    "workers": [2],
    "cpu": 1,
    "memory": "1Gi",
    "podAnnotations": {HOLD: "1"},
}
TEMPLATE = "/spec/replicatedJobs/0/template/spec/template/spec"


@pytest.fixture(scope="module")
def jobset(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane with JobSets, and two nodes."""
    folder = tmp_path_factory.mktemp("jobset")
    module = go_module(programs.TOOLS["jobset"])
    definition = module / "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"
    plane.kubectl("apply", "--server-side", "-f", str(definition))
    plane.apply(*(node(name, {"pool": "jobset"}) for name in NODES))
    port = _start(plane, folder)
    webhooks = _webhooks(module, folder, port)
    plane.apply(*webhooks)
    wait_until("the webhooks answer", lambda: _refuses_invalid(plane) or plane.check_programs())
    yield plane
    for item in webhooks:
        plane.kubectl("delete", item["kind"], item["metadata"]["name"])
    plane.kubectl("delete", "customresourcedefinition", "jobsets.jobset.x-k8s.io")
    process = plane.running.pop("jobset")
    process.kill()
    process.wait()
    plane.kubectl("delete", "nodes", *NODES)


@pytest.fixture
def namespace(jobset: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of its own."""
    name = f"j{abs(hash(request.node.nodeid)) % 10**8}"
    jobset.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    jobset.kubectl("delete", "jobsets", "--all", "-n", name)
    jobset.clear(name)


@pytest.mark.parametrize("program", HELMS)
def test_the_pods_of_a_jobset_have_the_names_that_they_are_told_and_survive_an_upgrade_of_the_hub(
    jobset: ControlPlane, namespace: str, program: str, tmp_path: Path
) -> None:
    _helm(jobset, namespace, program, tmp_path, "install")
    pods = wait_until("both workers have a node", lambda: _bound(jobset, namespace))
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    (job,) = jobset.get("jobs", "-n", namespace)
    (words,) = {tuple(pod["spec"]["containers"][0]["args"]) for pod in pods}
    hosts = words[words.index("--hosts") + 1].replace("$(DEVBENCH_JOB_NAME)", job["metadata"]["name"])
    assert sorted(f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}" for pod in pods) == hosts.split(",")
    service = json.loads(jobset.kubectl("get", "service", hosts.split(".")[-1], "-n", namespace, "-o", "json"))
    assert service["spec"]["publishNotReadyAddresses"]
    assert service["metadata"]["ownerReferences"][0]["kind"] == "JobSet"
    _helm(jobset, namespace, program, tmp_path, "upgrade", "--reuse-values", "--set", "hub.service.port=82")
    (after,) = jobset.get("jobs", "-n", namespace)
    assert after["metadata"]["uid"] == job["metadata"]["uid"]
    _helm(jobset, namespace, program, tmp_path, "upgrade", "--reuse-values", "--set", "poolDefaults.jobSet=false")
    (after,) = jobset.get("jobs", "-n", namespace)
    assert after["metadata"]["uid"] == job["metadata"]["uid"], "a run keeps its kind"


@pytest.mark.parametrize("program", HELMS)
def test_a_jobset_that_kueue_has_admitted_does_not_keep_the_release_from_an_upgrade(
    jobset: ControlPlane, namespace: str, program: str, tmp_path: Path
) -> None:
    """Kueue writes the labels and tolerations of a flavor into a suspended JobSet, which cannot change later."""
    _helm(jobset, namespace, program, tmp_path, "install")
    (before,) = jobset.get("jobsets", "-n", namespace)
    patch = ("patch", "jobset", before["metadata"]["name"], "-n", namespace, "--field-manager=kueue")
    jobset.kubectl(*patch, "--type=merge", "-p", '{"spec": {"suspend": true}}')
    wait_until("the Job is suspended", lambda: jobset.get("jobs", "-n", namespace)[0]["spec"]["suspend"])
    tolerations = [*POOL["tolerations"], {"key": "flavor", "operator": "Exists"}]
    changes = [
        {"op": "add", "path": f"{TEMPLATE}/nodeSelector", "value": {"pool": "jobset"}},
        {"op": "replace", "path": f"{TEMPLATE}/tolerations", "value": tolerations},
    ]
    jobset.kubectl(*patch, "--type=json", "-p", json.dumps(changes))
    jobset.kubectl(*patch, "--type=merge", "-p", '{"spec": {"suspend": false}}')
    _helm(jobset, namespace, program, tmp_path, "upgrade", "--reuse-values", "--set", "hub.service.port=82")
    (after,) = jobset.get("jobsets", "-n", namespace)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    (replicated,) = after["spec"]["replicatedJobs"]
    spec = replicated["template"]["spec"]["template"]["spec"]
    assert (spec["nodeSelector"], spec["tolerations"]) == ({"pool": "jobset"}, tolerations)
    assert after["spec"]["suspend"] is False


def _helm(plane: ControlPlane, namespace: str, program: str, folder: Path, *words: str) -> None:
    """Install or upgrade a release with one run of two workers."""
    file = folder / "values.json"
    values = {"workloads": ["cifar"], "pools": {"cpu": None, "t4": None, "own": POOL}}
    file.write_text(json.dumps(merge(TOKEN, values)), encoding="utf-8")
    command, *rest = words
    options = ("--values", str(file)) if command == "install" else ()
    place = ("devbench", str(CHART), "--namespace", namespace)
    helm(program, command, *place, *rest, *options, kubeconfig=plane.kubeconfig)


def _bound(plane: ControlPlane, namespace: str) -> list[Object] | None:
    plane.check_programs()
    pods = [pod for pod in plane.get("pods", "-n", namespace, "-l", "devbench/pool") if pod["spec"].get("nodeName")]
    return pods if len(pods) == 2 else None


def _start(plane: ControlPlane, folder: Path) -> int:
    """Start the controller with a certificate for its webhooks, and return their port."""
    names = ("-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt"))
    subject = ("-subj", "/CN=jobset", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-nodes")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", *subject, *names]
    subprocess.run(command, check=True, capture_output=True)
    port = free_port()
    configuration = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(folder)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
    }
    file = folder / "configuration.yaml"
    file.write_text(json.dumps(configuration), encoding="utf-8")
    options = (f"--config={file}", f"--kubeconfig={plane.kubeconfig}", "--metrics-bind-address=0")
    plane.start_program(programs.tool("jobset"), *options)
    return port


def _webhooks(module: Path, folder: Path, port: int) -> list[Object]:
    """Return the configurations of the webhooks for JobSets. Those for pods serve only exclusive JobSets."""
    authority = base64.b64encode((folder / "tls.crt").read_bytes()).decode()
    text = (module / "config/components/webhook/manifests.yaml").read_text(encoding="utf-8")
    found: list[Object] = list(yaml.safe_load_all(text))
    for item in found:
        item["metadata"]["name"] = f"jobset-{item['metadata']['name']}"
        item["webhooks"] = [hook for hook in item["webhooks"] if "jobset" in hook["name"]]
        for hook in item["webhooks"]:
            url = f"https://127.0.0.1:{port}{hook['clientConfig']['service']['path']}"
            hook["clientConfig"] = {"url": url, "caBundle": authority}
    return found


def _refuses_invalid(plane: ControlPlane) -> bool:
    """Return whether the webhook refuses a JobSet whose pods would have too long a name."""
    template = {"spec": {"containers": [{"name": "a", "image": "a"}], "restartPolicy": "Never"}}
    replicated = {
        "name": "x",
        "template": {"spec": {"completions": 1, "completionMode": "Indexed", "template": template}},
    }
    item = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "a" * 60},
        "spec": {"replicatedJobs": [replicated]},
    }
    words = ("create", "--dry-run=server", "-n", "default", "-f", "-")
    return "too long" in plane.kubectl(*words, stdin=json.dumps(item), check=False)
