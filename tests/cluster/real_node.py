"""A real node: containerd, kubelet, kube-proxy and CoreDNS in their own network namespace.

The control plane runs in the same namespace, because the pods of the node must reach it. A pair of virtual interfaces
connects the namespace with the tests. The addresses, routes and packet filters of the machine do not change. The pods
use the control groups of the machine, so their CPU limits are real.
"""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import programs
from control_plane import ControlPlane, Object, run_control_plane, wait_until
from images.engine import podman

HOST, NODE = "10.99.7.1", "10.99.7.2"
"""Addresses of the tests and of the node on the pair of interfaces between them."""

PODS, DNS = "10.244.0.0/24", "10.96.0.10"
CNI = Path("/usr/lib/cni")
NAME = "real"

PAUSE = """
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void end(int number) { _exit(0); }
static void reap(int number) { while (waitpid(-1, 0, WNOHANG) > 0) {} }
int main(void) {
  signal(SIGTERM, end); signal(SIGINT, end); signal(SIGCHLD, reap);
  for (;;) pause();
}
"""
"""Source of the program that holds the namespaces of a pod."""


@contextmanager
def run_node(folder: Path) -> Iterator[ControlPlane]:
    """Run a control plane with one real node.

    Args:
        folder: empty folder for its files. Its path must be short, because it holds sockets.
    """
    with ExitStack() as stack:
        prefix = stack.enter_context(_network(f"devbench-{os.getpid()}"))
        binaries = programs.control_plane(real_node=True)
        plane = stack.enter_context(run_control_plane(folder, NODE, prefix))
        _start_containerd(plane, stack)
        _start_node(plane, binaries)
        _start_dns(plane)
        yield plane


def load(plane: ControlPlane, image: str, name: str) -> None:
    """Copy an image from podman to the node, because there is no registry to pull it from.

    Args:
        plane: control plane of the node.
        image: name of the image in podman.
        name: name of the image in pods, such as docker.io/library/devbench:cpu.
    """
    archive = plane.folder / "image.tar"
    podman("tag", image, name)
    podman("save", "--format", "oci-archive", "--output", str(archive), name)
    try:
        # The archive contains the name. `--index-name` would give the index the same name and lose the image.
        _ctr(plane, "images", "import", "--snapshotter", "overlayfs", str(archive))
    finally:
        archive.unlink()


def kill(plane: ControlPlane, pod: Object) -> None:
    """Kill the processes of a pod's container, as the kernel does if memory is short."""
    (status,) = pod["status"]["containerStatuses"]
    _ctr(plane, "tasks", "kill", "--signal", "SIGKILL", "--all", status["containerID"].removeprefix("containerd://"))


def _ctr(plane: ControlPlane, *words: str) -> str:
    command = ["ctr", "--address", str(plane.folder / "containerd.sock"), "--namespace", "k8s.io", *words]
    completed = subprocess.run(command, capture_output=True, text=True)
    assert completed.returncode == 0, f"{' '.join(words)}: {completed.stdout}{completed.stderr}"
    return completed.stdout


@contextmanager
def _network(name: str) -> Iterator[tuple[str, ...]]:
    """Create a network namespace, and yield the command that runs a program in it.

    A pair of interfaces connects it to the namespace of the tests. `ip netns exec` does not work here: it mounts a new
    /sys, which hides the control groups.
    """
    host_interface, node_interface = f"db{os.getpid()}", "eth0"
    prefix = ("nsenter", f"--net=/run/netns/{name}", "--")
    _ip("netns", "add", name)
    try:
        _ip("link", "add", host_interface, "type", "veth", "peer", "name", node_interface, "netns", name)
        _ip("address", "add", f"{HOST}/30", "dev", host_interface)
        _ip("link", "set", host_interface, "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"{NODE}/30", "dev", node_interface),
            ("link", "set", node_interface, "up"),
            ("address", "add", f"{DNS}/32", "dev", "lo"),
            ("route", "add", "default", "via", HOST),
        ):
            _run(*prefix, "ip", *words)
        _run(*prefix, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        yield prefix
    finally:
        _ip("netns", "delete", name)


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*command: str) -> None:
    completed = subprocess.run(command, capture_output=True, text=True)
    assert completed.returncode == 0, f"{' '.join(command)}: {completed.stdout}{completed.stderr}"


def _start_containerd(plane: ControlPlane, stack: ExitStack) -> None:
    """Start containerd and load the image that holds the namespaces of pods."""
    folder = plane.folder
    network = {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "dataDir": str(folder / "addresses"),
                    "ranges": [[{"subnet": PODS}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
    (folder / "cni").mkdir()
    (folder / "cni" / "pods.conflist").write_text(json.dumps(network), encoding="utf-8")
    config = f"""
version = 2
root = "{folder}/containerd"
state = "{folder}/containerd-run"
[grpc]
address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI}"
conf_dir = "{folder}/cni"
"""
    (folder / "containerd.toml").write_text(config, encoding="utf-8")
    stack.callback(_clean_up, plane)
    plane.start_program(Path("containerd"), f"--config={folder}/containerd.toml")
    wait_until("containerd responds", lambda: (folder / "containerd.sock").exists() and _ctr(plane, "version"))
    _load_pause_image(plane)


def _load_pause_image(plane: ControlPlane) -> None:
    program, archive = plane.folder / "pause", plane.folder / "pause.tar"
    command = ["gcc", "-static", "-Os", "-x", "c", "-", "-o", str(program)]
    subprocess.run(command, input=PAUSE.encode(), check=True)
    with tarfile.open(archive, "w") as tar:
        tar.add(program, "pause")
    podman("import", "--change", 'ENTRYPOINT ["/pause"]', str(archive), "localhost/pause:1")
    load(plane, "localhost/pause:1", "localhost/pause:1")


def _start_node(plane: ControlPlane, binaries: Path) -> None:
    """Start a kubelet and a kube-proxy, and wait until the node is ready."""
    folder = plane.folder
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\n", encoding="utf-8")
    config: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "clusterDNS": [DNS],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock",
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "failCgroupV1": False,
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "podLogsDir": str(folder / "logs"),
        "resolvConf": str(folder / "resolv.conf"),
    }
    (folder / "kubelet.json").write_text(json.dumps(config), encoding="utf-8")
    plane.start_program(
        binaries / "kubelet", f"--config={folder}/kubelet.json", f"--kubeconfig={plane.kubeconfig}",
        f"--root-dir={folder}/kubelet", f"--cert-dir={folder}/kubelet-certificates", f"--hostname-override={NAME}",
        f"--node-ip={NODE}",
    )  # fmt: skip
    plane.start_program(
        binaries / "kube-proxy", f"--kubeconfig={plane.kubeconfig}", f"--hostname-override={NAME}",
        "--proxy-mode=iptables", "--conntrack-max-per-core=0", "--masquerade-all", "--bind-address=127.0.0.1",
    )  # fmt: skip
    wait_until("the node is ready", lambda: _ready(plane))


def _ready(plane: ControlPlane) -> bool:
    nodes = [node for node in plane.get("nodes") if node["metadata"]["name"] == NAME]
    conditions = nodes[0]["status"].get("conditions", []) if nodes else []
    return plane.check_programs() or any(
        (condition["type"], condition["status"]) == ("Ready", "True") for condition in conditions
    )


def _start_dns(plane: ControlPlane) -> None:
    """Start CoreDNS, which resolves the names of Services for pods."""
    file = plane.folder / "Corefile"
    file.write_text(
        f"""cluster.local:53 {{
  bind {DNS}
  errors
  kubernetes cluster.local {{
    kubeconfig {plane.kubeconfig} own
  }}
}}
""",
        encoding="utf-8",
    )
    plane.start_program(programs.tool("coredns"), f"-conf={file}")


def _clean_up(plane: ControlPlane) -> None:
    """Stop the containers of the node, and remove its mounts and control groups."""
    plane.kubectl("delete", "jobs,deployments", "--all", "--all-namespaces", "--wait=false", check=False)
    plane.kubectl("delete", "pods", "--all", "--all-namespaces", "--force", "--grace-period=0", check=False)
    with suppress(AssertionError):
        wait_until("all pods are gone", lambda: not _ctr(plane, "containers", "list", "--quiet").split(), 60)
    if kubelet := plane.running.get("kubelet"):  # missing if the start failed before
        kubelet.terminate()
        kubelet.wait()
    for kind in ("tasks", "containers"):
        for name in _ctr(plane, kind, "list", "--quiet").split():
            _ctr(plane, kind, "delete", *(["--force"] if kind == "tasks" else []), name)
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    for mount in reversed([mount for mount in mounts if mount.startswith(f"{plane.folder}/")]):
        subprocess.run(["umount", "--lazy", mount], check=False)
    for groups in Path("/sys/fs/cgroup").glob("*/kubepods"):
        for folder in sorted((path for path in groups.rglob("*") if path.is_dir()), reverse=True):
            folder.rmdir()
        groups.rmdir()
