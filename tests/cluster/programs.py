"""Programs for the tests of the chart, built from Go modules and cached.

`python tests/cluster/programs.py` builds all of them, which takes about fifteen minutes on two cores. With names as
arguments, it builds only those tools. The programs are in `devbench-tests` in the user's cache folder. A tool is cached
by its version, which pins its dependencies. The control plane is cached by the hash of `go/go.sum`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

MODULE = Path(__file__).parent / "go"

TOOLS = {
    "coredns": "github.com/coredns/coredns@v1.15.0",
    "crane": "github.com/google/go-containerregistry/cmd/crane@v0.22.1",
    "helm-3": "helm.sh/helm/v3/cmd/helm@v3.22.0",
    "helm-4": "helm.sh/helm/v4/cmd/helm@v4.3.1",
    "jobset": "sigs.k8s.io/jobset@v0.12.0",
    "kube-score": "github.com/zegl/kube-score/cmd/kube-score@v1.20.0",
    "kueue": "sigs.k8s.io/kueue/cmd/kueue@v0.17.0",
}
"""Packages that `go install` builds on their own."""

MODULES = ("jobset",)
"""Tools that are built in their module's folder. `go install` needs the list of versions, which not every proxy has."""

CONTROL_PLANE = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}
REAL_NODE = {
    "kubelet": "k8s.io/kubernetes/cmd/kubelet",
    "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
}

STAGED = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
"""Stages of kwok that simulate a node which runs every pod to completion."""


def cache() -> Path:
    """Return the folder of the built programs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "devbench-tests"


def tool(name: str) -> Path:
    """Return the path of a program of `TOOLS`. Build it if necessary.

    Raises:
        subprocess.CalledProcessError: the build failed. The output of the compiler is on stderr.
    """
    package, _, version = TOOLS[name].partition("@")
    program = package.rsplit("/", 1)[-1]
    path = cache() / f"{program}-{version}" / program
    with _lock(path.parent):
        if not path.exists():
            with _temporary_folder(path) as folder:
                flags = ["-trimpath", "-ldflags=-s -w"]
                if name in MODULES:
                    module = json.loads(_go(["mod", "download", "-json", TOOLS[name]], folder))
                    _go(["build", *flags, "-o", str(folder / program), "."], Path(module["Dir"]))
                else:
                    _go(["install", *flags, TOOLS[name]], Path.cwd(), GOBIN=str(folder))
                (folder / program).rename(path)
    return path


def control_plane(real_node: bool = False) -> Path:
    """Return a folder with the programs of a control plane and the stages of kwok. Build them if necessary.

    Args:
        real_node: whether to include a kubelet and a kube-proxy.

    Raises:
        subprocess.CalledProcessError: a build failed. The output of the compiler is on stderr.
    """
    folder = cache() / f"cluster-{hashlib.sha256((MODULE / 'go.sum').read_bytes()).hexdigest()[:12]}"
    with _lock(folder):
        for name, package in {**CONTROL_PLANE, **(REAL_NODE if real_node else {})}.items():
            path = folder / name
            if not path.exists():
                with _temporary_folder(path) as work:
                    _go(["build", "-trimpath", f"-ldflags={_version_flags()}", "-o", str(work / name), package], MODULE)
                    (work / name).rename(path)
        _stages(folder)
    return folder


def kubernetes_version() -> str:
    """Return the version of the control plane, such as 1.36.3."""
    match = re.search(r"^\tk8s\.io/kubernetes v(\S+)$", (MODULE / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    assert match, "go.mod requires no k8s.io/kubernetes"
    return match[1]


def _stages(folder: Path) -> None:
    """Copy the stages of kwok from its module."""
    missing = [name for name in STAGED if not (folder / "stages" / name).is_dir()]
    if missing:
        module = _go(["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"], MODULE)
        for name in missing:
            shutil.copytree(Path(module.strip()) / "kustomize/stage" / name, folder / "stages" / name)


def _version_flags() -> str:
    """Return linker flags that set the version of Kubernetes. Its programs have version 0 otherwise."""
    version = kubernetes_version()
    major, minor = version.split(".")[:2]
    prefix = "-X k8s.io/component-base/version"
    return f"-s -w {prefix}.gitVersion=v{version} {prefix}.gitMajor={major} {prefix}.gitMinor={minor}"


def _go(words: list[str], folder: Path, **variables: str) -> str:
    environ = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", **variables}
    return subprocess.run(["go", *words], cwd=folder, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Lock a folder against other builds."""
    if sys.platform == "win32":
        raise OSError("the tests build Helm only on Linux and macOS")
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _temporary_folder(target: Path) -> Iterator[Path]:
    """Create a folder on the disk of the target, so that a finished build can be moved there in one step."""
    with TemporaryDirectory(dir=target.parent, prefix=".build-") as name:
        yield Path(name)


if __name__ == "__main__":
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    for name in names or TOOLS:
        print(tool(name))
    if not names:
        print(control_plane("--real-node" in sys.argv))
