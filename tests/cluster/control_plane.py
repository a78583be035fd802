"""A local control plane: etcd, API server, controller manager, scheduler and simulated nodes.

It listens only on 127.0.0.1, on free ports, and keeps all its files in one folder. For the node of `real_node`, it
listens on an address of a network namespace. `existing_cluster` uses the cluster of KUBECONFIG instead.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import programs

Value = TypeVar("Value")
Object = dict[str, Any]
LOOPBACK = "127.0.0.1"
HOLD = "test/hold"
"""Annotation of a pod that kwok leaves alone after it is bound, so that a test can act as its kubelet."""

WAIT_SECONDS = 120.0
"""Time limit of `wait_until`, in seconds."""


@dataclass
class ControlPlane:
    """A control plane.

    Attributes:
        folder: folder of its files: kubeconfig, logs and certificates.
        kubeconfig: file with its address and credentials.
        kubectl_program: path of kubectl.
        url: address of its API server. Empty for the cluster of KUBECONFIG.
        token: token of a user with all rights.
        prefix: command that starts its programs, for example in a network namespace.
        running: its programs by name, in the order of their start.
    """

    folder: Path
    kubeconfig: Path
    kubectl_program: Path
    url: str = ""
    token: str = ""
    prefix: tuple[str, ...] = ()
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def kubectl(self, *words: str, stdin: str | None = None, check: bool = True) -> str:
        """Run kubectl and return its output.

        Args:
            words: its arguments.
            stdin: its standard input.
            check: whether to raise an error with its output if it fails.
        """
        completed = subprocess.run(
            [str(self.kubectl_program), f"--kubeconfig={self.kubeconfig}", *words],
            input=stdin,
            capture_output=True,
            text=True,
        )
        if check and completed.returncode:
            raise AssertionError(f"kubectl {' '.join(words)}\n{completed.stdout}{completed.stderr}")
        return completed.stdout if check else completed.stdout + completed.stderr

    def get(self, *words: str) -> list[Object]:
        """Return objects, such as `get("pods", "-n", "bench")`."""
        return list(json.loads(self.kubectl("get", *words, "-o", "json"))["items"])

    def apply(self, *objects: Object) -> None:
        """Create or update objects."""
        items = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=items)

    def clear(self, namespace: str) -> None:
        """Delete a namespace: first the controllers of pods, then the pods by force, because no kubelet stops them."""
        every = ("--all", "-n", namespace, "--wait=false")
        self.kubectl("delete", "cronjobs,deployments,replicasets,jobs", *every)
        self.kubectl("delete", "pods", *every, "--force", "--grace-period=0")
        wait_until("the namespace has no pods", lambda: not self.get("pods", "-n", namespace))
        self.kubectl("delete", "namespace", namespace, "--wait=false")

    def start_program(self, program: Path, *options: str) -> None:
        """Start a program that ends with the control plane. Its output goes to a file in the folder."""
        with (self.folder / f"{program.name}.log").open("wb") as log:
            command = [*self.prefix, str(program), *options]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.running[program.name] = process

    def check_programs(self) -> bool:
        """Check that all programs run, and return False, so that a condition can end with `or plane.check_programs()`.

        Raises:
            AssertionError: a program has ended. The message has its last lines.
        """
        for name, process in self.running.items():
            if process.poll() is not None:
                lines = (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace").splitlines()[-8:]
                raise AssertionError(f"{name} ended with {process.returncode}:\n" + "\n".join(lines))
        return False

    def stop(self) -> None:
        """Stop all programs, the last one first."""
        for process in reversed(self.running.values()):
            process.terminate()
        for process in reversed(self.running.values()):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until(description: str, check: Callable[[], Value | None], limit: float = WAIT_SECONDS) -> Value:
    """Call a function until its value is true, and return that value.

    Raises:
        AssertionError: this took longer than the limit, in seconds. The message has the description.
    """
    end = time.monotonic() + limit
    while not (value := check()):
        if time.monotonic() > end:
            raise AssertionError(f"not true after {limit:.0f} s: {description}")
        time.sleep(0.2)
    return value


@contextmanager
def run_control_plane(folder: Path, address: str = LOOPBACK, prefix: tuple[str, ...] = ()) -> Iterator[ControlPlane]:
    """Run a control plane.

    Args:
        folder: empty folder for its files.
        address: address of its API server.
        prefix: command that starts its programs.
    """
    binaries = programs.control_plane()
    plane = _configure(folder, binaries, address, prefix)
    try:
        _start_api_server(plane, binaries)
        _start_controllers(plane, binaries, _stages(folder, binaries))
        yield plane
    finally:
        plane.stop()


@contextmanager
def existing_cluster() -> Iterator[ControlPlane]:
    """Use the cluster of KUBECONFIG."""
    file = Path(os.environ["KUBECONFIG"])
    yield ControlPlane(file.parent, file, programs.control_plane() / "kubectl")


def _configure(folder: Path, binaries: Path, address: str, prefix: tuple[str, ...]) -> ControlPlane:
    port, token = free_port(), secrets.token_hex(16)
    url = f"https://{address}:{port}"
    (folder / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n", encoding="utf-8")
    subprocess.run(["openssl", "genrsa", "-out", folder / "account.key", "2048"], check=True, capture_output=True)
    kubeconfig = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "own", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "own", "context": {"cluster": "own", "user": "admin"}}],
        "current-context": "own",
    }
    kubeconfig.write_text(json.dumps(config), encoding="utf-8")
    return ControlPlane(folder, kubeconfig, binaries / "kubectl", url, token, prefix)


def _start_api_server(plane: ControlPlane, binaries: Path) -> None:
    client, peer = free_port(), free_port()
    plane.start_program(
        binaries / "etcd",
        f"--data-dir={plane.folder / 'etcd'}",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
        "--unsafe-no-fsync",
    )
    key = plane.folder / "account.key"
    address, _, port = plane.url.removeprefix("https://").partition(":")
    # Pods reach the API server through its Service. An endpoint of a Service cannot be a loopback address.
    reconciler = "none" if address == LOOPBACK else "lease"
    plane.start_program(
        binaries / "kube-apiserver",
        f"--etcd-servers=http://127.0.0.1:{client}",
        f"--bind-address={address}",
        f"--secure-port={port}",
        f"--cert-dir={plane.folder / 'certificates'}",
        f"--token-auth-file={plane.folder / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        f"--endpoint-reconciler-type={reconciler}",
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=2000",
    )
    wait_until(
        "the API server is ready",
        lambda: plane.kubectl("get", "--raw", "/readyz", check=False).strip() == "ok" or plane.check_programs(),
    )


def _start_controllers(plane: ControlPlane, binaries: Path, stages: Sequence[Path]) -> None:
    common = [f"--kubeconfig={plane.kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1"]
    fast = ["--kube-api-qps=500", "--kube-api-burst=1000"]
    certificates = f"--cert-dir={plane.folder / 'certificates'}"
    plane.start_program(
        binaries / "kube-controller-manager",
        *common,
        *fast,
        certificates,
        f"--secure-port={free_port()}",
        f"--service-account-private-key-file={plane.folder / 'account.key'}",
        f"--root-ca-file={plane.folder / 'certificates' / 'apiserver.crt'}",
        "--concurrent-job-syncs=10",
    )
    plane.start_program(binaries / "kube-scheduler", *common, *fast, certificates, f"--secure-port={free_port()}")
    plane.start_program(
        binaries / "kwok",
        f"--kubeconfig={plane.kubeconfig}",
        *(f"--config={file}" for file in stages),
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=40",
        f"--server-address=127.0.0.1:{free_port()}",
    )
    wait_until(
        "the default service account exists",
        lambda: (
            "default" in plane.kubectl("get", "serviceaccounts", "-o", "name", check=False) or plane.check_programs()
        ),
    )


def _stages(folder: Path, binaries: Path) -> list[Path]:
    """Write and return kwok's stages, which run every pod to completion except those with the annotation HOLD."""
    paths = []
    for name in programs.STAGED:
        for file in sorted((binaries / "stages" / name).glob("*-*.yaml")):
            text = file.read_text(encoding="utf-8")
            if name.startswith("pod") and "delete" not in file.stem:
                condition = f"    - key: '.metadata.annotations[\"{HOLD}\"]'\n      operator: 'DoesNotExist'\n"
                text = text.replace("    matchExpressions:\n", "    matchExpressions:\n" + condition)
            paths.append(folder / file.name)
            paths[-1].write_text(text, encoding="utf-8")
    return paths


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
