"""Stand-ins for the slim Python images, for machines that can ask no registry: made from Debian's packages.

As Docker Hub's they hold Debian without manuals and translations, a Python with pip or `venv`, and certificates. The
images use nothing else of them.
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
    """The image's name: Debian with its own Python 3.13.

    Args:
        folder: for what is needed on the way.
    """
    name = f"{NAME}-base:3.13-{_recipe()}"
    if podman("image", "exists", name, check=False).returncode:
        _debian(folder / "3.13.tar", "ca-certificates,python3,python3-venv")
        podman("import", "--quiet", str(folder / "3.13.tar"), name)
        (folder / "3.13.tar").unlink()
    return name


def python_3_10(folder: Path, python: Path) -> str:
    """The image's name: Debian with a copy of this machine's Python 3.10, which Debian has no package of.

    Args:
        folder: for what is needed on the way.
        python: the interpreter, or one of an environment made with it.
    """
    name = f"{NAME}-base:3.10-{_recipe()}"
    if podman("image", "exists", name, check=False).returncode:
        told = subprocess.run([python, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True)
        tree, local = folder / "3.10", folder / "3.10" / "usr" / "local"
        tree.mkdir()
        _debian(folder / "3.10.tar", f"ca-certificates,{PYTHON_3_10_LIBRARIES}")
        subprocess.run(["tar", "--extract", "--file", folder / "3.10.tar", "--directory", tree], check=True)
        _copy_python(Path(told.stdout.strip()), local)
        subprocess.run(["chroot", tree, "/sbin/ldconfig"], check=True)
        subprocess.run(["tar", "--create", "--file", folder / "3.10.tar", "--directory", tree, "."], check=True)
        podman("import", "--quiet", str(folder / "3.10.tar"), name)
        (folder / "3.10.tar").unlink()
        shutil.rmtree(tree)
    return name


def _copy_python(prefix: Path, local: Path) -> None:
    """Puts an interpreter and its library where the Python image has them; without what was installed beside them."""
    left_out = shutil.ignore_patterns("site-packages", "test", "tests", "__pycache__", "*.a", "idlelib", "tkinter")
    shutil.copytree(prefix / "lib", local / "lib", symlinks=True, ignore=left_out, dirs_exist_ok=True)
    (local / "lib" / "python3.10" / "site-packages").mkdir()
    shutil.copy2(prefix / "bin" / "python3.10", local / "bin" / "python3.10")
    for link in ("python", "python3"):
        (local / "bin" / link).symlink_to("python3.10")


def _debian(tar: Path, packages: str) -> None:
    options = [f"--dpkgopt={each}" for each in SLIM]
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}", *options, SUITE, str(tar)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _recipe() -> str:
    """Changes when what makes them does, so that an image that was made in another way is not taken."""
    made = [inspect.getsource(each) for each in (python_3_13, python_3_10, _copy_python)]
    return hashlib.sha256("".join([SUITE, *SLIM, PYTHON_3_10_LIBRARIES, *made]).encode()).hexdigest()[:12]
