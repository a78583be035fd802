"""Stand-ins for the slim Python images, made from packages of Debian, for machines without access to a registry.

Like the images of Docker Hub, they contain Debian without manuals and translations, a Python with pip or `venv`, and
certificates. The images of devbench use nothing else.
"""

from __future__ import annotations

import hashlib
import inspect
import shutil
import subprocess
from pathlib import Path

from images.engine import NAME, podman

SUITE = "trixie"
SLIM = (
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
)
PYTHON_3_10_LIBRARIES = "libbz2-1.0,libffi8,liblzma5,libsqlite3-0,libssl3t64,zlib1g"


def python_3_13(folder: Path) -> str:
    """Return the name of an image with Debian and its Python 3.13. Build it if it does not exist.

    Args:
        folder: for temporary files.
    """
    name = f"{NAME}-base:3.13-{_recipe()}"
    if podman("image", "exists", name, check=False).returncode:
        _debian(folder / "3.13.tar", "ca-certificates,python3,python3-venv")
        podman("import", "--quiet", str(folder / "3.13.tar"), name)
        (folder / "3.13.tar").unlink()
    return name


def python_3_10(folder: Path, python: Path) -> str:
    """Return the name of an image with Debian and a copy of this machine's Python 3.10. Build it if it does not exist.

    Debian has no package of Python 3.10.

    Args:
        folder: for temporary files.
        python: the interpreter, or that of an environment made with it.
    """
    name = f"{NAME}-base:3.10-{_recipe()}"
    if podman("image", "exists", name, check=False).returncode:
        process = subprocess.run([python, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True)
        tree, local = folder / "3.10", folder / "3.10" / "usr" / "local"
        tree.mkdir()
        _debian(folder / "3.10.tar", f"ca-certificates,{PYTHON_3_10_LIBRARIES}")
        subprocess.run(["tar", "--extract", "--file", folder / "3.10.tar", "--directory", tree], check=True)
        _copy_python(Path(process.stdout.strip()), local)
        subprocess.run(["chroot", tree, "/sbin/ldconfig"], check=True)
        subprocess.run(["tar", "--create", "--file", folder / "3.10.tar", "--directory", tree, "."], check=True)
        podman("import", "--quiet", str(folder / "3.10.tar"), name)
        (folder / "3.10.tar").unlink()
        shutil.rmtree(tree)
    return name


def _copy_python(prefix: Path, local: Path) -> None:
    """Copy an interpreter and its library to where the Python image has them, without installed packages."""
    ignored = shutil.ignore_patterns("site-packages", "test", "tests", "__pycache__", "*.a", "idlelib", "tkinter")
    shutil.copytree(prefix / "lib", local / "lib", symlinks=True, ignore=ignored, dirs_exist_ok=True)
    (local / "lib" / "python3.10" / "site-packages").mkdir()
    shutil.copy2(prefix / "bin" / "python3.10", local / "bin" / "python3.10")
    for link in ("python", "python3"):
        (local / "bin" / link).symlink_to("python3.10")


def _debian(tar: Path, packages: str) -> None:
    options = [f"--dpkgopt={option}" for option in SLIM]
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}", *options, SUITE, str(tar)]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


def _recipe() -> str:
    """Return a hash of the code that makes the images, so that an image of another version is not reused."""
    sources = [inspect.getsource(function) for function in (python_3_13, python_3_10, _copy_python)]
    return hashlib.sha256("".join([SUITE, *SLIM, PYTHON_3_10_LIBRARIES, *sources]).encode()).hexdigest()[:12]
