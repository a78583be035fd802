"""What a user should know before a gate: which commits it races, and what both of them share."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from bench.study import checkout
from bench.study.checkout import Sides

PACKAGES = re.compile(
    r"(^|/)(requirements[^/]*\.(txt|in)|requirements/[^/]+\.(txt|in)|constraints[^/]*\.txt|pyproject\.toml|setup\.(py|cfg)"
    r"|environment\.ya?ml|Pipfile(\.lock)?|pylock[^/]*\.toml|(conda|pdm|poetry|uv)(\.|-)lock(\.yml)?)$"
)
"""Paths of files that say which packages a program needs."""

MOST_NAMED = 3
"""How many files a note names."""

OWN = "devbench-tf"


def notes(sides: Sides, base: str, program: Path, in_own_env: bool = True) -> Iterator[str]:
    """Yield the notes on a gate.

    Args:
        sides: The commits.
        base: The base as the user named it.
        program: The program.
        in_own_env: Whether the program runs in devbench's own Python environment.
    """
    if sides.base != sides.tip:
        yield f"the base is {sides.base[:12]}, where the current commit branched off {base}"
        points = checkout.branch_points(sides.root, sides.tip, sides.head)
        others = " or ".join(point[:12] for point in points if point != sides.base)
        if others:
            yield f"the base could also be {others}, because the branches were merged crosswise"
    elif sides.base == sides.head:
        yield f"{base} is the current commit, so the gate races this commit against itself"
    elif checkout.contains(sides.root, sides.tip, sides.head):
        yield f"{base} is newer than the current commit and contains it. The gate races the two nevertheless"
    elif not checkout.contains(sides.root, sides.head, sides.tip):
        reason = "shallow clone" if checkout.is_shallow(sides.root) else "repository"
        where = f"This {reason} does not have the commit at which the current commit branched off {base}"
        yield f"the base is {base} itself, with all of its commits. {where}"
    changed = [name for name in checkout.changed_files(sides.root, sides.base, sides.head) if PACKAGES.search(name)]
    if changed:
        more = f" and {len(changed) - MOST_NAMED} more" if len(changed) > MOST_NAMED else ""
        names = ", ".join(changed[:MOST_NAMED])
        yield f"both commits run with the installed packages, although these files differ: {names}{more}"
    for name in _installed_copies(sides.root, program) if in_own_env else ():
        yield f"both commits import the installed copy of {name}. With `pip install --editable`, each imports its own"


def _installed_copies(root: Path, program: Path) -> Iterator[str]:
    """Yield the names of packages that were copied from a checkout, and that the program imports instead of it.

    The folder of the program and `PYTHONPATH` come first.
    """
    folders = [program.parent, *map(Path, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))]
    for distribution in metadata.distributions():
        source = _source(distribution)
        if source is None or not source.is_relative_to(root) or (distribution.name or OWN).lower() == OWN:
            continue
        modules = {file.parts[0] for file in distribution.files or () if file.suffix == ".py"}
        if not all(any((folder / name).exists() for folder in folders) for name in modules):
            yield distribution.name


def _source(distribution: metadata.Distribution) -> Path | None:
    """Return the folder or file that a package was copied from when it was installed. None if it was not."""
    try:
        document = json.loads(distribution.read_text("direct_url.json") or "{}")
        url = urlsplit(document.get("url", ""))
        if url.scheme != "file" or document.get("dir_info", {}).get("editable"):
            return None
        return Path(url2pathname(url.path)).resolve()
    except (OSError, ValueError, AttributeError):
        return None
