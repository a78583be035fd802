"""Lets a program import the modules of its own checkout, and not those of another checkout of the same project.

`PYTHONPATH` and editable installations name one checkout. Without this, a program at another commit would import the
modules from there, and a comparison of two commits would run the same modules twice.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.machine import git_worktree

BENCH = Path(__file__).resolve().parent.parent
"""The package `bench`. This process needs it as it is, even if the program belongs to a checkout of devbench."""


def import_from_own_checkout(program: Path, copy_root: Path | None = None) -> None:
    """Replace each place where this process finds modules by the same place in the program's checkout.

    A place belongs to another checkout of the project if that checkout has the same program. A place that the
    program's checkout lacks is left out.

    Args:
        program: absolute path of the program in its checkout. If it is in no git repository, nothing is replaced.
        copy_root: a folder with a copy of the checkout under its absolute path. None if the program is not copied.
    """
    own = git_worktree.top(program.parent)
    if own is None:
        return
    file = program.relative_to(own)

    def moved(place: str) -> str | None:
        """Return a place in the program's checkout. None if there is no such place."""
        if not Path(place).is_absolute() or Path(place).resolve() in (BENCH, BENCH.parent):
            return place
        folders = (Path(place), *Path(place).parents)  # the place may be in a submodule
        other = next((each for each in folders if (each / ".git").exists() and (each / file).is_file()), None)
        if other is None or other == own:
            return place
        found = own / Path(place).relative_to(other)
        if copy_root is not None:
            found = copy_root / found.relative_to(found.anchor)
        return str(found) if found.exists() else None

    _move(moved)


def import_from_copy(folder: Path, copy: Path, copied: Sequence[Path]) -> None:
    """Replace each place in a folder where this process finds modules by the same place in a copy of the folder.

    Editable installations and `PYTHONPATH` name the original. Modules may write files beside their own.

    Args:
        folder: absolute path of the folder.
        copy: absolute path of its copy. What its links lead to is not replaced.
        copied: the folders within `folder` that were copied. A Python installation within them is not replaced.
    """
    inside = copy.resolve()
    prefixes = {Path(prefix) for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    installations = [prefix for prefix in prefixes if any(root in prefix.parents for root in copied)]

    def moved(place: str) -> str:
        path = Path(place)
        if not path.is_absolute() or path.resolve() in (BENCH, BENCH.parent) or not path.is_relative_to(folder):
            return place
        if any(path.is_relative_to(installation) for installation in installations):
            return place
        found = copy / path.relative_to(folder)
        return str(found) if found.exists() and found.resolve().is_relative_to(inside) else place

    _move(moved)


def _move(moved: Callable[[str], str | None]) -> None:
    """Replace the places where this process, and those that it starts, find modules.

    Args:
        moved: returns what replaces a place. None to leave it out.
    """
    sys.path[:] = [found for place in sys.path if (found := moved(place)) is not None]
    if "PYTHONPATH" in os.environ:  # for the processes that the program starts
        places = os.environ["PYTHONPATH"].split(os.pathsep)
        os.environ["PYTHONPATH"] = os.pathsep.join(found for place in places if (found := moved(place)) is not None)
    for mapping in _editable():
        for name, place in [*mapping.items()]:
            found = moved(place)
            if found is None:
                del mapping[name]
            else:
                mapping[name] = found


def _editable() -> Iterator[dict[str, str]]:
    """Yield where setuptools finds the packages of each editable installation, by their names."""
    for name, module in sys.modules.items():
        if name.startswith("__editable___") and isinstance(mapping := getattr(module, "MAPPING", None), dict):
            yield mapping
