"""Several runs of `devbench run` in the background, two at a time. A test waits only for the run that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from devbench_process import CompletedRun, DevbenchProcess, start_devbench
from warm_workers import WarmServer

from bench.model.result import Result

MEASURED_PROGRAMS = Path(__file__).parent / "measured_programs"
ONE_PROCESS = ("--max-processes", "1")
SECONDS = 1500
"""Time limit of a run. Six programs in one trial on a slow and busy machine need most of it."""


def measured_program(name: str) -> str:
    """Return the path of a program in `measured_programs`."""
    return str(MEASURED_PROGRAMS / f"{name}.py")


Warm = Callable[[str], WarmServer | None]


class Runs:
    """Runs by name.

    Args:
        folder: holds a folder for each run.
        commands: name: what follows `devbench run`.
        warm: from a name to the server from which workers are forked. None if they are fresh.
        pool: runs them.
    """

    def __init__(
        self, folder: Path, commands: Mapping[str, Sequence[str]], warm: Warm, pool: ThreadPoolExecutor
    ) -> None:
        self._started: list[DevbenchProcess] = []
        self._futures = {
            name: pool.submit(self._run, folder / name, command, warm(name)) for name, command in commands.items()
        }

    def __getitem__(self, name: str) -> CompletedRun:
        """Wait for a run."""
        return self._futures[name].result()

    def result(self, name: str, loop: str = "as-written") -> Result:
        """Return the only result of a run in this loop."""
        run = self[name]
        results = [result for result in run.results if result.spec.loop == loop]
        assert len(results) == 1, f"{len(results)} results in loop {loop}. Output: {run.text()}"
        return results[0]

    def _run(self, folder: Path, command: Sequence[str], warm: WarmServer | None) -> CompletedRun:
        with start_devbench(folder, "run", *command, *ONE_PROCESS, warm=warm) as run:
            self._started.append(run)
            return run.wait(SECONDS)

    def kill(self) -> None:
        """Kill what still runs."""
        for run in self._started:
            run.kill()


@contextmanager
def start_runs(folder: Path, commands: Mapping[str, Sequence[str]], warm: Warm = lambda name: None) -> Iterator[Runs]:
    """Start runs in their order, two at a time. At the end, no test needs those that have not ended."""
    pool = ThreadPoolExecutor(2)
    runs = Runs(folder, commands, warm, pool)
    try:
        yield runs
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        runs.kill()
        pool.shutdown()
