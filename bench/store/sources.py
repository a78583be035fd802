"""The results that an argument of a comparison names: files, folders, ids, or results themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.analyse.pairing import latest_runs
from bench.model.result import Result
from bench.store import files, headers

Argument = str | Path | Result | Sequence[Result]
"""A file, a folder, an id or a unique part of one, a result, or several results."""


@dataclass(frozen=True)
class Source:
    """The results that one argument names, the newest run of each spec only.

    Args:
        results: The results. Those from files are sorted by time, so the baseline of a run comes first, and have no
            samples, so that many fit in memory.
        paths: The file of each result that has one.
        count: Number of results that the argument names, repetitions included.
        several: Whether the argument names a set of results, such as a folder, even if it holds only one.
    """

    results: list[Result]
    paths: list[tuple[Result, Path]]
    count: int
    several: bool

    @classmethod
    def of(cls, argument: Argument, folder: Path) -> Source:
        """Find the results that an argument names.

        Args:
            argument: What to find.
            folder: Where ids are looked up.

        Raises:
            DataError: There is no such result, or a file is not a result.
        """
        if isinstance(argument, Result):
            return cls([argument], [], 1, False)
        if not isinstance(argument, str | Path):
            return cls(latest_runs(argument), [], len(argument), True)
        found = files.find(str(argument), folder)
        newest = [entry.path for entry in latest_runs([headers.index_entry(path) for path in found])]
        paths = [(headers.head(path), path) for path in newest]
        results = sorted((result for result, _ in paths), key=lambda result: (result.created, result.id))
        return cls(results, paths, len(found), Path(argument).is_dir())
