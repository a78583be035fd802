"""Many runs of `devbench run` for the tests of measuring, two at a time; each test waits for its own only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from devbench_process import Ended, started

from bench.model.result import Result

USERFILES = Path(__file__).parent / "measured_programs"
ONCE = ("--max-processes", "1")
SECONDS = 1500
"""The longest that a run may take: six programs in one trial, on a slow and busy machine."""


def own(name: str) -> str:
    """Path of one of the programs that a user might write."""
    return str(USERFILES / f"{name}.py")


class Runs:
    """Runs under way, by name.

    Args:
        folder: each run's files go below it.
        asked: name: what follows `devbench run`.
        pool: what runs them.
    """

    def __init__(self, folder: Path, asked: Mapping[str, Sequence[str]], pool: ThreadPoolExecutor) -> None:
        self._ended = {name: pool.submit(_run, folder / name, words) for name, words in asked.items()}

    def __getitem__(self, name: str) -> Ended:
        """How a run ended, once it has."""
        return self._ended[name].result()

    def result(self, name: str, loop: str = "as-written") -> Result:
        """The one result of a run in that loop."""
        ended = self[name]
        found = [each for each in ended.every if each.spec.loop == loop]
        assert len(found) == 1, f"{len(found)} results in loop {loop}; it said: {ended.said()}"
        return found[0]


def _run(folder: Path, words: Sequence[str]) -> Ended:
    with started(folder, "run", *words, *ONCE) as run:
        run.process.wait(timeout=SECONDS)
        return run.end()


@contextmanager
def under_way(folder: Path, asked: Mapping[str, Sequence[str]]) -> Iterator[Runs]:
    """Starts the runs in their order, two at a time; what no test waited for is not begun."""
    pool = ThreadPoolExecutor(2)
    try:
        yield Runs(folder, asked, pool)
    finally:
        pool.shutdown(cancel_futures=True)
