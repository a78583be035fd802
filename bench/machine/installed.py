"""Which packages are installed, read from their metadata: none of them is imported."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.model.framework import Build

TENSORFLOWS = ("tensorflow-cpu", "tensorflow", "tensorflow-intel", "tensorflow-macos", "tf-nightly", "tf-nightly-cpu")


def version(name: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def keras(tf: Any) -> str:
    """Return the version of `tf.keras`. If it is the package tf_keras, it has no `__version__` of its own."""
    version: str | None = getattr(tf.keras, "__version__", None)
    return version or str(sys.modules["tf_keras"].__version__)


def tensorflow() -> tuple[str, str] | None:
    """Return name and version of the distribution whose TensorFlow would be imported; None if there is none.

    A source build or a conda package may not have any of the names in `TENSORFLOWS`. It is reported as "tensorflow",
    version "unknown".
    """
    folder = _package()
    if folder is None:
        return None
    # On Windows, `tensorflow` only installs tensorflow-intel. Users know the plain name.
    for name in TENSORFLOWS:
        for distribution in metadata.distributions(name=name, path=[str(folder.parent)]):
            return name, distribution.version
    return "tensorflow", "unknown"


def tensorflow_version() -> str:
    """Return the version of TensorFlow that would be imported; "none" if there is none."""
    found = tensorflow()
    return found[1] if found else "none"


def _package() -> Path | None:
    """Return the folder of the package `tensorflow`, without importing it."""
    spec = util.find_spec("tensorflow")
    return Path(spec.origin).parent if spec and spec.origin else None


def site_packages() -> Path | None:
    """Return the folder that holds the package `tensorflow`; None if TensorFlow is not installed."""
    folder = _package()
    return folder.parent if folder else None


def build() -> Build:
    """Return how the installed TensorFlow was built, read from its source; without values if that cannot be read."""
    return build_of(build_info())


def build_info() -> dict[str, Any]:
    """Return what `build` returns as a plain dictionary, so that a list of backends needs no pydantic."""
    folder = _package()
    if folder is None:
        return {}
    try:
        tree = ast.parse((folder / "python/platform/build_info.py").read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Assign):
                # OrderedDict([…]) in most releases, {…} in some.
                info = ast.literal_eval(node.value.args[0] if isinstance(node.value, ast.Call) else node.value)
                return dict(info)
    except (OSError, ValueError, SyntaxError, IndexError, TypeError):
        pass
    return {}


def build_of(info: Mapping[str, Any]) -> Build:
    """Return how a TensorFlow was built.

    Args:
        info: what its `tf.sysconfig.get_build_info()` returns.
    """
    from bench.model.framework import Build

    plain = (bool, int, float, str, type(None))
    values = {key: value if isinstance(value, plain) else [str(part) for part in value] for key, value in info.items()}
    return Build(**values)


def extra_requirements(distribution: str, extra: str) -> list[str]:
    """Return the distributions that `distribution[extra]` requires, whether installed or not."""
    try:
        requirements = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return []
    mark = re.compile(rf"""extra\s*==\s*['"]{re.escape(extra)}['"]""")
    return [re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in requirements if mark.search(line)]
