"""What this computer is, read from the few files that tell it: CPU, hypervisor, container, WSL; and its Python.

Shared by the machine's environment and the backends' advice, which are independent of each other.
Everything takes a `root`, the folder that stands for `/`, so that a laid-out tree can be read as well as
the real one; on Windows and macOS those files are absent and the answer comes from the platform.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path("/")

IMAGE_VARIABLE = "DEVBENCH_IMAGE"
"""Set in our container images, to the image's name."""

_START = "import runpy, sys; sys.path[0] = sys.argv.pop(1); runpy.run_module(sys.argv.pop(1), run_name='__main__')"

# What decides which of TensorFlow's, oneDNN's and XLA's code paths a CPU can take (Linux' names of the flags).
_TELLING = re.compile(
    r"^(sse4_[12]|avx.*|fma|f16c|amx_.*|asimd(dp|hp|fhm)?|sve.*|sme(2|_.*)?|bf16|i8mm|fphp)$",
)

_VENDORS = {
    "amazon ec2": "nitro",
    "google": "kvm",
    "kvm": "kvm",
    "qemu": "kvm",
    "red hat": "kvm",
    "openstack": "kvm",
    "digitalocean": "kvm",
    "vmware": "vmware",
    "innotek": "virtualbox",
    "oracle corporation virtualbox": "virtualbox",
    "xen": "xen",
    "parallels": "parallels",
    "microsoft corporation virtual machine": "hyper-v",
}


def python(module: str) -> list[str]:
    """The command that runs one of our modules in a fresh interpreter, to be followed by its arguments.

    Not by `-m`, which looks into the working folder first: a user's `bench.py` there would be taken for ours.
    """
    return [sys.executable, "-c", _START, str(Path(__file__).parent.parent.parent), module]


def read(path: Path) -> str | None:
    """The stripped text of a file, or none where it can't be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, ValueError):
        return None


def _cpuinfo(root: Path) -> dict[str, str]:
    """The first block of /proc/cpuinfo, keys in lower case."""
    first = (read(root / "proc/cpuinfo") or "").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines() if ":" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def cpu_model(root: Path = ROOT) -> str:
    """The CPU's name as its maker gives it, or its architecture where it tells no more."""
    if sys.platform == "darwin":
        try:
            command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return platform.machine()
    if sys.platform == "win32":
        import winreg

        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"HARDWARE\DESCRIPTION\System\CentralProcessor\0") as key:
                return str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()
        except OSError:
            return platform.processor() or platform.machine()
    info = _cpuinfo(root)
    named = info.get("model name") or info.get("cpu model") or info.get("hardware")
    if named:
        return named
    if "cpu part" in info:  # arm64 gives numbers only
        return f"{platform.machine()} implementer {info.get('cpu implementer', '?')} part {info['cpu part']}"
    return platform.processor() or platform.machine()


def cpu_features(root: Path = ROOT) -> list[str]:
    """The CPU's vector and matrix extensions, sorted, by Linux' names; empty where the system does not list them."""
    info = _cpuinfo(root)
    return sorted({flag for flag in (info.get("flags") or info.get("features") or "").split() if _TELLING.match(flag)})


def wsl(root: Path = ROOT) -> str | None:
    """Inside the Windows Subsystem for Linux "wsl1" or "wsl2", else none."""
    release = read(root / "proc/sys/kernel/osrelease") or ""
    if "microsoft" not in release.lower():
        return None
    # WSL1 has no kernel of its own and reports "4.4.0-…-Microsoft", with a capital letter.
    return "wsl1" if release.endswith("-Microsoft") else "wsl2"


def hypervisor(root: Path = ROOT) -> str | None:
    """What the machine runs under, such as "kvm"; "unknown" where only the CPU's flag tells; none on bare metal."""
    if wsl(root):
        return "hyper-v"
    dmi = " ".join(read(root / f"sys/class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name")).lower()
    virtual = "hypervisor" in _cpuinfo(root).get("flags", "").split()
    for vendor, name in _VENDORS.items():
        # EC2's and Google's bare-metal machines carry the vendor's name too; there the CPU's flag is off.
        if vendor in dmi and (virtual or vendor not in ("amazon ec2", "google")):
            return name
    kind = read(root / "sys/hypervisor/type")
    if kind:
        return kind
    return "unknown" if virtual else None


def container(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> str | None:
    """The engine of the container: "kubernetes", "podman", "docker" or another; none outside of one."""
    if "KUBERNETES_SERVICE_HOST" in environ or (root / "var/run/secrets/kubernetes.io").exists():
        return "kubernetes"
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / ".dockerenv").exists():
        return "docker"
    named = environ.get("container")  # systemd's convention, kept by podman, LXC and systemd-nspawn
    if named:
        return named
    groups = read(root / "proc/1/cgroup") or ""
    # A pod without a service account and its variables still shows in the cgroup's path, if that is visible.
    for engine, mark in (("kubernetes", "kubepods"), ("docker", "docker"), ("podman", "libpod"), ("lxc", "/lxc")):
        if mark in groups:
            return engine
    return None


def image(environ: Mapping[str, str] = os.environ) -> str | None:
    """The name of the container image of ours that this runs in, such as "devbench:cpu"; none elsewhere."""
    return environ.get(IMAGE_VARIABLE) or None


def mounted(path: Path) -> bool:
    """Whether something is mounted at a path or at a folder above it, the root left out."""
    whole = path.absolute()
    return any(os.path.ismount(each) for each in [whole, *whole.parents][:-1])


def fleeting(folder: Path, root: Path = ROOT) -> bool:
    """Whether what is written to a folder ends with the container: nothing is mounted there, or memory is.

    Args:
        folder: that exists.
        root: the folder that stands for `/` where the mounts are read.
    """
    here = folder.resolve()
    kinds: dict[Path, str] = {}
    for line in (read(root / "proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) > 4 and kind:
            kinds[Path(fields[4])] = kind[0]
    point = next((each for each in [here, *here.parents] if each in kinds), Path("/"))
    return point == Path("/") or kinds[point] in ("tmpfs", "ramfs")
