"""What is installed, told without importing any of it: TensorFlow's distribution, its build, its parts."""

from __future__ import annotations

import ast
import re
from importlib import metadata, util
from pathlib import Path
from typing import Any

TENSORFLOWS = ("tensorflow-cpu", "tensorflow", "tensorflow-intel", "tensorflow-macos", "tf-nightly", "tf-nightly-cpu")


def version(name: str) -> str | None:
    """The version of an installed distribution, or none."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def tensorflow() -> tuple[str, str] | None:
    """Name and version of the distribution whose TensorFlow would be imported; none where there is none.

    A source build or a conda package may have no distribution of a name we know; it is called "tensorflow"
    with version "unknown".
    """
    folder = _package()
    if folder is None:
        return None
    # `tensorflow` on Windows is a shell around tensorflow-intel: the plain name is what a user knows.
    for name in TENSORFLOWS:
        for distribution in metadata.distributions(name=name, path=[str(folder.parent)]):
            return name, distribution.version
    return "tensorflow", "unknown"


def _package() -> Path | None:
    """The folder of the package `tensorflow`, found without importing it."""
    spec = util.find_spec("tensorflow")
    return Path(spec.origin).parent if spec and spec.origin else None


def build() -> dict[str, Any]:
    """What `tf.sysconfig.get_build_info()` would return, read from its file; empty where that can't be read.

    A build with CUDA says `is_cuda_build`, `cuda_version`, `cudnn_version` and `cuda_compute_capabilities`.
    """
    folder = _package()
    if folder is None:
        return {}
    try:
        tree = ast.parse((folder / "python/platform/build_info.py").read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Assign):
                # OrderedDict([…]) in most releases, {…} in some.
                return dict(ast.literal_eval(node.value.args[0] if isinstance(node.value, ast.Call) else node.value))
    except (OSError, ValueError, SyntaxError, IndexError, TypeError):
        pass
    return {}


def extra(distribution: str, name: str) -> list[str]:
    """Names of the distributions that `distribution[name]` asks for, installed or not."""
    try:
        wanted = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return []
    mark = re.compile(rf"""extra\s*==\s*['"]{re.escape(name)}['"]""")
    return [re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in wanted if mark.search(line)]
