"""What the backends have in common: TensorFlow itself, the variables every worker gets, advice for containers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.errors import DeviceAbsent, SettingsError
from bench.machine import installed, system
from bench.model.check import Check
from bench.model.spec import Spec


def common_environment(spec: Spec) -> dict[str, str]:
    """Variables that hold what a spec says for every backend; TensorFlow and OpenMP read them when they are loaded."""
    return {
        "TF_ENABLE_ONEDNN_OPTS": "1" if spec.onednn else "0",
        "TF_NUM_INTRAOP_THREADS": str(spec.threads.intra),
        "TF_NUM_INTEROP_THREADS": str(spec.threads.inter),
        # NumPy's BLAS would start a thread for each of the node's cores, whatever the container's limit.
        "OMP_NUM_THREADS": str(spec.threads.intra),
    }


def install(extra: str) -> str:
    """How to get what a backend needs: its extra, or from an image of ours the image that has it."""
    return f"use the image devbench:{extra}" if system.image() else f"pip install devbench[{extra}]"


def require_tensorflow(extra: str) -> tuple[str, str]:
    """Name and version of the TensorFlow installed.

    Args:
        extra: devbench's extra that brings the right one.

    Raises:
        SettingsError: there is none.
    """
    found = installed.tensorflow()
    if found is None:
        raise SettingsError("no TensorFlow is installed beside devbench", install(extra))
    return found


def tensorflow_check(extra: str) -> Iterator[Check]:
    """Whether there is a TensorFlow, and which."""
    found = installed.tensorflow()
    if found is None:
        yield Check("TensorFlow", "FAIL", "no TensorFlow is installed", install(extra))
    else:
        yield Check("TensorFlow", "PASS", f"{found[0]} {found[1]}")


def refuse(what: str, checks: Iterable[Check]) -> None:
    """Raises DeviceAbsent if a check failed, with every cause in the message and every fix in the hint.

    Args:
        what: what is absent, such as "no CUDA device".
        checks: the backend's checks.
    """
    failed = [check for check in checks if check.status == "FAIL"]
    if failed:
        causes = "; ".join(f"{check.name}: {check.found}" for check in failed)
        fixes = dict.fromkeys(line for check in failed for line in check.fix.splitlines())
        raise DeviceAbsent(f"{what}: {causes}", "\n".join(fixes))


def library_folders(*more: str) -> list[Path]:
    """Folders where a shared library may lie, those of LD_LIBRARY_PATH first; only the ones that exist."""
    named = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder]
    return [folder for folder in dict.fromkeys(map(Path, [*named, *more])) if folder.is_dir()]


def files_named(name: str, folders: Iterable[Path]) -> list[Path]:
    """The files of a name in some folders."""
    return [folder / name for folder in folders if (folder / name).exists()]
