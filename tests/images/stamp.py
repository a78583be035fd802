"""Whether the cuda image that would be built now is the one whose tests passed last: a hash of what goes into it.

Its build fetches 3.4 GB. So it is built where one of its inputs has changed: what only it has, and what decides how it
looks for a device. The rest of the package is the same wheel as in the cpu image, which is built and run each time.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).parent / "cuda.passed"
INPUTS = (
    ".dockerignore",
    "Dockerfile.cuda",
    "bench/__main__.py",
    "bench/backends/*.py",
    "bench/model/check.py",
    "bench/errors.py",
    "bench/machine/installed.py",
    "bench/machine/gpu.py",
    "bench/model/device.py",
    "bench/model/spec.py",
    "bench/machine/system.py",
    "images/base",
    "images/build",
    "images/build.lock",
    "images/cuda.lock",
    "images/devbench",
    "images/packages",
    "images/tools.lock",
    "tests/images/test_cuda.py",
)


def inputs(root: Path = ROOT) -> list[Path]:
    """The files of a checkout that decide what the cuda image is, in a fixed order."""
    return sorted({path for pattern in INPUTS for path in root.glob(pattern)})


def current(root: Path = ROOT) -> str:
    """Their hash as they are now."""
    whole = hashlib.sha256()
    for path in inputs(root):
        whole.update(f"{path.relative_to(root).as_posix()}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def unchanged() -> bool:
    """Whether they are what they were when the tests passed last."""
    return FILE.exists() and FILE.read_text(encoding="utf-8").split()[-1:] == [current()]


def write() -> None:
    """Notes that the tests passed with the inputs as they are."""
    FILE.write_text(f"The tests of the cuda image passed with inputs of this hash:\n{current()}\n", encoding="utf-8")
