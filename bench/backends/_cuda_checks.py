"""Everything that a CUDA run needs, looked at one by one without TensorFlow; cause and fix of what is missing.

The parts fail apart from each other: TensorFlow may be the CPU-only build, CUDA's libraries may not be installed, the
driver's library may be absent or a stand-in, the device's nodes may not have been given to the container, the driver
may be too old, and a variable may hide the GPU. So each has a line of its own.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.backends._probe import ask
from bench.backends._shared import files_named, install, library_folders
from bench.machine import installed, system
from bench.machine.system import ROOT, read
from bench.model.check import Check, guarded

LIBRARY = "libcuda.so.1"
EXTRA = "cuda"
INSTALL = install(EXTRA)

# The oldest driver that CUDA 12 runs with (NVIDIA's CUDA compatibility guide), and its number as CUDA counts.
OLDEST_DRIVER, OLDEST_CUDA = "525.60.13", 12000

# cuInit wakes every GPU: without persistence mode that takes seconds each, so a driver that is there is given time.
DRIVER_SECONDS = 60.0

_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/compat",
    "/run/opengl-driver/lib",
)
_UNCALLED = ("nvidia-curand-cu12",)  # TensorFlow asks for it and calls no function of it: our image leaves it out
_NAMED = ("libcudart.so.12", "libcublas.so.12", "libcudnn.so.9")


def checks(root: Path = ROOT, timeout: float = DRIVER_SECONDS) -> Iterator[Check]:
    """The lines for Linux, WSL included; never raises.

    Args:
        root: the folder that stands for `/` where device nodes and the like are looked for.
        timeout: seconds that a driver may take to answer.
    """
    yield from guarded("TensorFlow with CUDA", _build)
    yield from guarded("CUDA libraries", _libraries)
    yield from guarded("visible GPUs", _visible)
    yield from guarded("CUDA driver", lambda: _driver(root, timeout))


def _build() -> Iterator[Check]:
    name = "TensorFlow with CUDA"
    found = installed.tensorflow()
    if found is None:
        yield Check(name, "FAIL", "no TensorFlow is installed", INSTALL)
        return
    build = installed.build()
    if not build.get("is_cuda_build"):
        fix = INSTALL if system.image() else f"pip uninstall {found[0]}\n{INSTALL}"
        if platform.machine() == "aarch64":
            fix = "there is no such wheel for arm64: use NVIDIA's own TensorFlow container"
        yield Check(name, "FAIL", f"{found[0]} {found[1]} is built without CUDA", fix)
    else:
        versions = f"built for CUDA {build.get('cuda_version', '?')}, cuDNN {build.get('cudnn_version', '?')}"
        yield Check(name, "PASS", f"{found[0]} {found[1]}, {versions}")


def _libraries() -> Iterator[Check]:
    """CUDA's libraries come as wheels, or from the system where the loader finds them."""
    name = "CUDA libraries"
    found = installed.tensorflow()
    wanted = [each for each in (installed.extra(found[0], "and-cuda") if found else []) if each not in _UNCALLED]
    missing = [wheel for wheel in wanted if not installed.version(wheel)]
    if wanted and not missing:
        yield Check(name, "PASS", f"all {len(wanted)} nvidia-* wheels that {found[0] if found else ''} asks for")
        return
    answer = ask("load", *_NAMED, timeout=DRIVER_SECONDS)
    absent = [library for library in _NAMED if answer.get(library, "not tried") is not None]
    if not absent:
        yield Check(name, "PASS", f"the system's own: {', '.join(_NAMED)} load")
        return
    named = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
    wheels = f"not installed: {named}" if 0 < len(missing) < len(wanted) else "none of the nvidia-* wheels is installed"
    yield Check(name, "FAIL", f"{wheels}; and the system has no {', '.join(absent)}", INSTALL)


def _visible() -> Iterator[Check]:
    hiding = {"CUDA_VISIBLE_DEVICES": ("", "-1", "nodevfiles"), "NVIDIA_VISIBLE_DEVICES": ("void", "none")}
    for variable, nothing in hiding.items():
        value = os.environ.get(variable)
        # CUDA reads up to the first entry that names no device, so what comes first decides.
        if value is not None and value.split(",")[0].strip().lower() in nothing:
            yield Check("visible GPUs", "FAIL", f"{variable}='{value}' hides every GPU", f"unset {variable}")


def _driver(root: Path, timeout: float) -> Iterator[Check]:
    answer = ask("cuda", LIBRARY, timeout=timeout)
    yield _driver_library(answer, root)
    if "status" not in answer or answer["status"] != 0:
        yield from _nodes(root)
        return
    offered = int(answer.get("driver", 0))
    text = f"driver {driver_version(root) or 'of unknown number'}, CUDA {dotted(offered)}"
    if offered < OLDEST_CUDA:
        fix = f"install NVIDIA's driver {OLDEST_DRIVER} or newer"
        yield Check("driver version", "FAIL", f"{text}; TensorFlow needs CUDA {dotted(OLDEST_CUDA)}", fix)
    else:
        yield Check("driver version", "PASS", text)
    if answer["devices"]:
        yield from _devices(answer["devices"], offered)
    else:
        yield Check("GPU", "FAIL", "the driver works and has no GPU to give", _give(root))


def _driver_library(answer: dict[str, Any], root: Path) -> Check:
    """What became of loading the driver's library and asking it to start."""
    name = "driver library"
    path = answer.get("path") or LIBRARY
    if answer.get("hung") or answer.get("crashed"):
        fix = "try nvidia-smi: if it fails too, look into dmesg and restart; if it is slow, enable persistence mode"
        return Check(name, "FAIL", f"{LIBRARY}: {answer['error']}", fix)
    if "error" in answer and not answer.get("path"):
        return _not_loaded(str(answer["error"]), root)
    if "error" in answer:
        return Check(name, "FAIL", f"{path}: {answer['error']}", _instead(path, root))
    if answer["status"] == 34:  # CUDA_ERROR_STUB_LIBRARY
        return Check(name, "FAIL", f"{path} is the CUDA toolkit's stub, made for linking only", _instead(path, root))
    if answer["status"] != 0:
        return Check(name, "FAIL", f"{path} loads, but cuInit says {answer['name']}", _give(root))
    return Check(name, "PASS", path)


def _not_loaded(error: str, root: Path) -> Check:
    folders = library_folders(*_FOLDERS)
    lying = files_named(LIBRARY, folders)
    if lying:
        fix = f"export LD_LIBRARY_PATH={lying[0].parent}:$LD_LIBRARY_PATH"
        return Check("driver library", "FAIL", f"{lying[0]} is there and does not load: {error}", fix)
    looked = ", ".join(map(str, folders))
    return Check("driver library", "FAIL", f"{LIBRARY} is not there (looked in {looked})", _give(root))


def _instead(path: str, root: Path) -> str:
    return f"take {Path(path).parent} out of LD_LIBRARY_PATH, or uninstall it\n{_give(root)}"


def _nodes(root: Path) -> Iterator[Check]:
    """The files through which the driver's library speaks to the kernel, and whether a container was given them."""
    if system.wsl(root):
        there = (root / "dev/dxg").exists()
        wanted = "/dev/dxg and /usr/lib/wsl/lib/libcuda.so.1"
        there = there and (root / "usr/lib/wsl/lib" / LIBRARY).exists()
    else:
        numbered = [path for path in (root / "dev").glob("nvidia[0-9]*") if re.fullmatch(r"nvidia\d+", path.name)]
        there = bool(numbered) and (root / "dev/nvidiactl").exists()
        wanted = "/dev/nvidia0 and /dev/nvidiactl"
    if there:
        yield Check("device nodes", "PASS", f"{wanted} are there")
        return
    yield Check("device nodes", "FAIL", f"{wanted} are not there", _give(root))
    engine = system.container(root)
    if engine:
        fix = f"{_give(root)}\n{_host(root)}"
        yield Check("container", "FAIL", f"this is a container ({engine}) that was given no GPU", fix)


def _give(root: Path) -> str:
    """How a GPU gets here."""
    engine = system.container(root)
    if engine == "kubernetes":
        return "give the container resources.limits: {nvidia.com/gpu: 1}, on a node with NVIDIA's device plugin"
    if engine:
        return (
            "start the container with its GPU: docker run --gpus all …, or by CDI: "
            "podman run --device nvidia.com/gpu=all … (or docker with the same)"
        )
    if system.wsl(root):
        return f"install NVIDIA's driver for Windows ({OLDEST_DRIVER} or newer) and none inside WSL, then: wsl --update"
    return f"install NVIDIA's driver {OLDEST_DRIVER} or newer; nvidia-smi must then list the GPU"


def _host(root: Path) -> str:
    """What the machine below a container needs."""
    on_wsl = " (on WSL2: NVIDIA's driver for Windows)" if system.wsl(root) else ""
    return f"the host needs NVIDIA's driver {OLDEST_DRIVER} or newer{on_wsl} and the NVIDIA Container Toolkit"


def _devices(devices: list[dict[str, Any]], offered: int) -> Iterator[Check]:
    """The first GPU is the one that is used; the others are only named."""
    first, others = devices[0], len(devices) - 1
    major, minor = first["capability"]
    text = f"{first['name']}, compute capability {major}.{minor}, {first['memory'] / 2**30:.1f} GiB"
    text += f" (and {others} more, not used)" if others else ""
    build = installed.build()
    code = covered((major, minor), build.get("cuda_compute_capabilities", []))
    if code == "none":
        targets = ", ".join(build["cuda_compute_capabilities"])
        yield Check("GPU", "FAIL", f"{text}: TensorFlow has no code for it (it has {targets})", "use another GPU")
        return
    yield Check("GPU", "PASS", text)
    if code == "ptx":
        yield from _compiled(offered, str(build.get("cuda_version", "")))


def _compiled(offered: int, built: str) -> Iterator[Check]:
    """What it means that the driver must compile TensorFlow's kernels (PTX) at the first start."""
    kept = os.environ.get("CUDA_CACHE_PATH")
    found = "no machine code for this GPU: the first start compiles it, which takes minutes"
    if kept and system.image() and not system.mounted(Path(kept)):
        fix = f"start the container with -v devbench-cache:{kept}"
        yield Check("GPU code", "WARN", f"{found}; nothing is mounted at {kept}, so the next start does too", fix)
    elif kept:
        yield Check("GPU code", "PASS", f"{found}, and keeps it in {kept}")
    else:
        fix = "keep the compiled code between runs: set CUDA_CACHE_PATH to a folder that lasts"
        yield Check("GPU code", "WARN", found, fix)
    numbers = [int(part) for part in re.findall(r"\d+", built)[:2]]
    if len(numbers) == 2 and offered < numbers[0] * 1000 + numbers[1] * 10:
        found = f"the code was made with CUDA {built}, newer than the driver's {dotted(offered)}"
        yield Check("GPU code", "WARN", f"{found}: it may fail as unsupported PTX", "install a newer driver")


def covered(capability: tuple[int, int], targets: list[str]) -> str:
    """How a build serves a GPU: "code" (machine code), "ptx" (compiled at first start), "none", or "unknown".

    Machine code `sm_XY` runs on GPUs of the same X and a Y at least as high; `compute_XY` is compiled for any later.

    Args:
        capability: the GPU's, such as (7, 5).
        targets: the build's `cuda_compute_capabilities`.
    """
    if not targets:
        return "unknown"
    served = "none"
    for target in targets:
        kind, _, number = target.partition("_")
        if not number.isdigit():
            continue
        known = (int(number[:-1]), int(number[-1]))
        if kind == "sm" and known[0] == capability[0] and known <= capability:
            return "code"
        if kind == "compute" and known <= capability:
            served = "ptx"
    return served


def dotted(number: int) -> str:
    """CUDA's number of a version as people write it: 12040 is 12.4."""
    return f"{number // 1000}.{number % 1000 // 10}"


def driver_version(root: Path = ROOT) -> str | None:
    """The kernel driver's version, such as "550.54.14"; none where the kernel does not tell (WSL)."""
    match = re.search(r"Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)", read(root / "proc/driver/nvidia/version") or "")
    return match[1] if match else None
