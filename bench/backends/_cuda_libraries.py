"""CUDA's libraries: which ones TensorFlow loads before it uses a GPU, and where it finds them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bench.backends._probe import QueryFailed, query_libraries
from bench.backends._shared import install
from bench.machine import installed
from bench.model.check import Check

if TYPE_CHECKING:
    from bench.model.spec import Env

LIBRARIES = (
    "libcudart.so.12",
    "libcublas.so.12",
    "libcublasLt.so.12",
    "libcufft.so.11",
    "libcusolver.so.11",
    "libcusparse.so.12",
    "libcudnn.so.9",
)
"""What TensorFlow loads before it uses a GPU (`TryDlopenCUDALibraries`). If one is absent, it uses none."""

_UNUSED = ("nvidia-curand-cu12",)  # a requirement of TensorFlow that it never calls; our image does not contain it


def search_path(env: Env | None = None) -> dict[str, str]:
    """Return `LD_LIBRARY_PATH` for a worker, with the folder of cuSOLVER's package at its end; {} without the package.

    TensorFlow loads CUDA's libraries from the folders that `libtensorflow_framework.so.2` names. In the wheel of
    TensorFlow 2.21, it names those of all packages but this one, so TensorFlow lists no GPU without this variable
    (tensorflow/tensorflow#112973).

    Args:
        env: the Python environment of the worker, which has its own libraries. None for devbench's own.
    """
    folder = _cusolver(Path(env.site_packages) if env.site_packages else None) if env else _own_cusolver()
    if folder is None:
        return {}
    own = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": f"{own}{os.pathsep}{folder}" if own else str(folder)}


def _own_cusolver() -> Path | None:
    return _cusolver(installed.site_packages())


def _cusolver(packages: Path | None) -> Path | None:
    """Return the folder of the library in cuSOLVER's package, which is beside TensorFlow; None without the package."""
    folder = packages / "nvidia" / "cusolver" / "lib" if packages else None
    return folder if folder and folder.is_dir() else None


def checks(timeout: float) -> Iterator[Check]:
    """Check CUDA's libraries, which come as Python packages or from the system's loader path.

    Args:
        timeout: seconds to wait until the loader has tried the system's libraries.
    """
    name = "CUDA libraries"
    distribution = installed.tensorflow()
    required = installed.extra_requirements(distribution[0], "and-cuda") if distribution else []
    packages = [package for package in required if package not in _UNUSED]
    missing = [package for package in packages if not installed.version(package)]
    if packages and not missing:
        text = f"all {len(packages)} nvidia-* packages that TensorFlow requires are installed"
        folder = _own_cusolver()
        text += f"; runs add {folder} to LD_LIBRARY_PATH" if folder else ""
        yield Check(name, "PASS", text)
        return
    try:
        errors = query_libraries(*LIBRARIES, timeout=timeout).errors
        absent = [library for library in LIBRARIES if errors[library] is not None]
    except QueryFailed:
        absent = list(LIBRARIES)
    if not absent:
        yield Check(name, "PASS", f"from the system: {', '.join(LIBRARIES)}")
        return
    listed = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
    if not 0 < len(missing) < len(packages):
        listed = "the nvidia-* packages"
    yield Check(name, "FAIL", f"not installed: {listed}; not on the system: {', '.join(absent)}", install("cuda"))
