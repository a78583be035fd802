"""What this computer is: its CPU, hypervisor, container and WSL, read from system files.

Functions take a `root`, the folder to use as `/`, so that tests can read a prepared tree. On Windows and macOS these
files are absent, and the answers come from the platform.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")

IMAGE_VARIABLE = "DEVBENCH_IMAGE"
"""Environment variable that our container images set to their name."""

_START = "import runpy, sys; sys.path[0] = sys.argv.pop(1); runpy.run_module(sys.argv.pop(1), run_name='__main__')"

# The flags, by Linux's names, that decide which code paths of TensorFlow, oneDNN and XLA a CPU can run.
_CODE_PATH_FLAGS = re.compile(
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

_START_ELSEWHERE = (
    "import runpy, sys; from importlib import util; file, packages, module = sys.argv[1:4]; del sys.argv[1:4]; "
    "sys.path[:1] = [packages] if packages else []; "
    "spec = util.spec_from_file_location('bench', file); bench = util.module_from_spec(spec); "
    "sys.modules['bench'] = bench; spec.loader.exec_module(bench); runpy.run_module(module, run_name='__main__')"
)


def python_of(interpreter: str, module: str, packages: str = "") -> list[str]:
    """Return the command that runs one of devbench's modules in another Python environment.

    The environment gets the package `bench` and nothing else of this one: the folder that holds `bench` may also hold
    another TensorFlow.

    Args:
        interpreter: that of the environment.
        module: the module.
        packages: a folder with packages that the environment lacks. "" if there is none.
    """
    file = Path(__file__).parent.parent / "__init__.py"
    return [interpreter, "-c", _START_ELSEWHERE, str(file), packages, module]


def python(module: str) -> list[str]:
    """Return the command that runs one of devbench's modules in a fresh interpreter. Append the module's arguments.

    It does not use `-m`, which searches the working folder first and would find a user's `bench.py` there.
    """
    return [sys.executable, "-c", _START, str(Path(__file__).parent.parent.parent), module]


def read(path: Path) -> str | None:
    """Return the stripped text of a file; None if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, ValueError):
        return None


def _cpuinfo(root: Path) -> dict[str, str]:
    """Return the first block of /proc/cpuinfo, with keys in lower case."""
    first = (read(root / "proc/cpuinfo") or "").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines() if ":" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def cpu_model(root: Path = ROOT) -> str:
    """Return the CPU's name as its maker gives it, or its architecture if there is no name."""
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
    model = info.get("model name") or info.get("cpu model") or info.get("hardware")
    if model:
        return model
    if "cpu part" in info:  # arm64 reports only numbers
        return f"{platform.machine()} implementer {info.get('cpu implementer', '?')} part {info['cpu part']}"
    return platform.processor() or platform.machine()


def cpu_features(root: Path = ROOT) -> list[str]:
    """Return the CPU's vector and matrix extensions, by Linux's names and sorted; empty if not reported."""
    info = _cpuinfo(root)
    return sorted(
        {flag for flag in (info.get("flags") or info.get("features") or "").split() if _CODE_PATH_FLAGS.match(flag)}
    )


def wsl(root: Path = ROOT) -> str | None:
    """Return "wsl1" or "wsl2" inside the Windows Subsystem for Linux, else None."""
    release = read(root / "proc/sys/kernel/osrelease") or ""
    if "microsoft" not in release.lower():
        return None
    # WSL1 has no Linux kernel and reports "4.4.0-…-Microsoft", with a capital letter.
    return "wsl1" if release.endswith("-Microsoft") else "wsl2"


def hypervisor(root: Path = ROOT) -> str | None:
    """Return the hypervisor, such as "kvm"; "unknown" if only the CPU's flag shows one; None on bare metal."""
    if wsl(root):
        return "hyper-v"
    dmi = " ".join(read(root / f"sys/class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name")).lower()
    virtual = "hypervisor" in _cpuinfo(root).get("flags", "").split()
    for vendor, name in _VENDORS.items():
        # Bare-metal machines of EC2 and Google have the vendor's name too, but not the CPU's flag.
        if vendor in dmi and (virtual or vendor not in ("amazon ec2", "google")):
            return name
    kind = read(root / "sys/hypervisor/type")
    if kind:
        return kind
    return "unknown" if virtual else None


def container(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the container engine: "kubernetes", "podman", "docker" or another; None outside a container."""
    if "KUBERNETES_SERVICE_HOST" in environ or (root / "var/run/secrets/kubernetes.io").exists():
        return "kubernetes"
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / ".dockerenv").exists():
        return "docker"
    declared = environ.get("container")  # systemd's convention, which podman, LXC and systemd-nspawn follow
    if declared:
        return declared
    groups = read(root / "proc/1/cgroup") or ""
    # A pod without a service account and its variables can still be recognized by its cgroup's path.
    for engine, mark in (("kubernetes", "kubepods"), ("docker", "docker"), ("podman", "libpod"), ("lxc", "/lxc")):
        if mark in groups:
            return engine
    return None


def image(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the name of our container image that this runs in, such as "devbench:cpu"; None outside our images."""
    return environ.get(IMAGE_VARIABLE) or None


@dataclass(frozen=True)
class Mount:
    """A mounted file system.

    Attributes:
        top: the folder of the file system that the mount shows.
        point: where it is mounted.
        kind: the kind of file system, such as "tmpfs".
        options: options of the file system.
    """

    top: str
    point: str
    kind: str
    options: tuple[str, ...]


def mounts(root: Path = ROOT) -> Iterator[Mount]:
    """Yield all mounts in order (proc_pid_mountinfo(5))."""
    for line in (read(root / "proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) > 4 and len(kind) > 2:
            top, point = (_unescape(field) for field in fields[3:5])
            yield Mount(top, point, kind[0], tuple(kind[2].split(",")))


def _unescape(field: str) -> str:
    """Decode a path in which blanks and similar characters are three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


def is_mounted(path: Path) -> bool:
    """Return whether a path, or a folder above it other than `/`, is a mount point."""
    absolute = path.absolute()
    return any(os.path.ismount(parent) for parent in [absolute, *absolute.parents][:-1])


def is_ephemeral(folder: Path, root: Path = ROOT) -> bool:
    """Return whether a folder's files vanish with the container: it is not on a mount, or on one in memory.

    Args:
        folder: an existing folder.
        root: folder to use as `/` when reading the mounts.
    """
    absolute = folder.resolve()
    kinds = {Path(mount.point): mount.kind for mount in mounts(root)}
    point = next((parent for parent in [absolute, *absolute.parents] if parent in kinds), Path("/"))
    return point == Path("/") or kinds[point] in ("tmpfs", "ramfs")
