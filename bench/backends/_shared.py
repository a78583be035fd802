"""What the backends share: the check for TensorFlow, variables for every worker, and how to install a backend."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import DeviceAbsent, SettingsError
from bench.machine import installed, system
from bench.model.check import Check
from bench.version import install_command

if TYPE_CHECKING:
    from bench.model.spec import Spec


def common_environment(spec: Spec) -> dict[str, str]:
    """Return the environment variables that carry a spec to a worker, whatever the backend.

    TensorFlow and OpenMP read them when they are loaded.
    """
    return {
        "TF_ENABLE_ONEDNN_OPTS": "1" if spec.onednn else "0",
        "TF_NUM_INTRAOP_THREADS": str(spec.threads.intra),
        "TF_NUM_INTEROP_THREADS": str(spec.threads.inter),
        # NumPy's BLAS would start one thread per core of the node, whatever the container's limit.
        "OMP_NUM_THREADS": str(spec.threads.intra),
    }


def install(backend: str) -> str:
    """Return how to install what a backend needs: its extra, or inside one of our images the right image."""
    if system.image():
        return f"Use the image devbench:{backend}."
    return f"In a checkout of devbench, run: {install_command(backend)}"


def require_tensorflow(backend: str) -> tuple[str, str]:
    """Return the name and version of the installed TensorFlow.

    Args:
        backend: the backend that needs it.

    Raises:
        SettingsError: TensorFlow is not installed.
    """
    distribution = installed.tensorflow()
    if distribution is None:
        raise SettingsError("TensorFlow is not installed", install(backend))
    return distribution


def tensorflow_check(backend: str) -> Iterator[Check]:
    """Check whether TensorFlow is installed, and which one."""
    distribution = installed.tensorflow()
    if distribution is None:
        yield Check("TensorFlow", "FAIL", "TensorFlow is not installed", install(backend))
    else:
        yield Check("TensorFlow", "PASS", " ".join(distribution))


def refuse(problem: str, checks: Iterable[Check]) -> None:
    """Raise `DeviceAbsent` if a check failed. The message names every cause, the hint every fix.

    Args:
        problem: what is absent, such as "no CUDA device".
        checks: the backend's checks.
    """
    failed = [check for check in checks if check.status == "FAIL"]
    if failed:
        causes = "; ".join(f"{check.name}: {check.detail}" for check in failed)
        fixes = dict.fromkeys(line for check in failed for line in check.fix.splitlines())
        raise DeviceAbsent(f"{problem}: {causes}", "\n".join(fixes))


def gpu_of(tf: Any) -> Any:
    """Return the GPU that this process uses, or the first one if the program hides them all."""
    return [*tf.config.get_visible_devices("GPU"), *tf.config.list_physical_devices("GPU")][0]


def library_folders(*system_folders: str) -> list[Path]:
    """Return the existing folders that may hold a shared library, those of LD_LIBRARY_PATH first."""
    listed = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder]
    return [folder for folder in dict.fromkeys(map(Path, [*listed, *system_folders])) if folder.is_dir()]


def files_named(name: str, folders: Iterable[Path]) -> list[Path]:
    """Return the files with a given name in these folders."""
    return [folder / name for folder in folders if (folder / name).exists()]
