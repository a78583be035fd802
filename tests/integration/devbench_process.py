"""Run `devbench` as a user does, in a separate process and folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from warm_workers import WarmServer

import bench
from bench.model.result import Result
from bench.store import files

ROOT = Path(bench.__file__).parent.parent
FAULTY_PROGRAMS = Path(__file__).parent / "faulty_programs"
BRIEF = ("--max-processes", "1", "--max-time", "10s")
SECONDS = 900


def faulty_program(name: str) -> str:
    """Return the path of a program in `faulty_programs`."""
    return str(FAULTY_PROGRAMS / f"{name}.py")


@dataclass(frozen=True)
class CompletedRun:
    """The exit code, output and results of a run.

    Args:
        code: exit code.
        out: standard output.
        err: standard error.
        folder: folder of its results. It may not exist.
    """

    code: int
    out: str
    err: str
    folder: Path

    @property
    def results(self) -> list[Result]:
        """All results, oldest first. Empty if the run ended before it created the folder."""
        return files.results(self.folder) if self.folder.is_dir() else []

    @property
    def by_workload(self) -> dict[str, Result]:
        """Results by workload. In a group of several, by workload and loop, such as "raises step"."""
        results = self.results
        groups = [result.group for result in results]
        return {
            result.spec.workload + ("" if groups.count(result.group) == 1 else f" {result.spec.loop}"): result
            for result in results
        }

    def text(self) -> str:
        """Return both outputs, with wrapped lines joined."""
        return " ".join(f"{self.out} {self.err}".split())


class DevbenchProcess:
    """A running `devbench`, in its own session. Its output goes to files, so that it never waits for a reader.

    Args:
        folder: working directory. Results go to `results` in it, unless `arguments` name another folder.
        arguments: what follows `devbench`.
        pipe_stderr: make standard error a pipe, for `wait_for`.
        warm: the server from which workers are forked. None if they are fresh.
        python: interpreter. Default: that of this process.
        environ: variables in addition to those of this process.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        pipe_stderr: bool = False,
        warm: WarmServer | None = None,
        python: str = sys.executable,
        **environ: str,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.piped = ""
        flags: dict[str, Any] = {} if sys.platform == "win32" else {"start_new_session": True}
        variables = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            self.process = subprocess.Popen(
                [*(warm.devbench if warm else (python, "-m", "bench")), *arguments],
                cwd=folder,
                env={**os.environ, **variables, **environ},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE if pipe_stderr else err,
                pass_fds=[warm.descriptor] if warm else (),
                **flags,
            )

    def wait_for(self, text: str) -> None:
        """Wait for a line with this text on standard error."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.piped += line.decode()
            if text in line.decode():
                return
        raise AssertionError(f"devbench ended without a line that contains {text!r}:\n{self.piped}")

    def workers(self) -> list[psutil.Process]:
        """Return the processes that it started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        """Kill it and its workers, if it still runs."""
        with suppress(psutil.NoSuchProcess):
            running = [*self.workers(), psutil.Process(self.process.pid)] if self.process.poll() is None else []
            for process in running:
                with suppress(psutil.NoSuchProcess):
                    process.kill()

    def wait(self, seconds: float = SECONDS) -> CompletedRun:
        """Wait until it ends.

        Raises:
            subprocess.TimeoutExpired: it still runs after this time.
        """
        if self.process.stderr is not None:
            with self.process.stderr as pipe:
                self.piped += pipe.read().decode()
        code = self.process.wait(timeout=seconds)
        err = self.piped or (self.folder / "err").read_text(encoding="utf-8")
        return CompletedRun(code, (self.folder / "out").read_text(encoding="utf-8"), err, self.folder / "results")


@contextmanager
def start_devbench(*args: Any, **environ: Any) -> Iterator[DevbenchProcess]:
    """Start `devbench`, and kill it at the end if it still runs."""
    run = DevbenchProcess(*args, **environ)
    try:
        yield run
    finally:
        run.kill()
        run.process.wait()
        if run.process.stderr is not None:
            run.process.stderr.close()


def run_devbench(
    folder: Path, *arguments: str, seconds: float = SECONDS, warm: WarmServer | None = None, **environ: str
) -> CompletedRun:
    """Run `devbench` and wait until it ends."""
    with start_devbench(folder, *arguments, warm=warm, **environ) as run:
        return run.wait(seconds)


def survivors(processes: list[psutil.Process], seconds: float = 20) -> list[psutil.Process]:
    """Return the processes that are still alive after this time. Kill them, so that a failed test leaves none."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    living = [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
    for process in living:
        process.kill()
    return living
