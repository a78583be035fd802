"""Runs `devbench` as a user does, in a process and a folder of its own, and holds what it ended with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import bench
from bench.model.result import Result
from bench.store import files

ROOT = Path(bench.__file__).parent.parent
USERFILES = Path(__file__).parent / "faulty_programs"
BRIEF = ("--max-processes", "1", "--max-time", "10s")
SECONDS = 900


def userfile(name: str) -> str:
    """Path of one of the small programs beside this file."""
    return str(USERFILES / f"{name}.py")


@dataclass(frozen=True)
class Ended:
    """What a run left behind."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def every(self) -> list[Result]:
        """All results, oldest first; none where it ended before there was a folder for them."""
        return files.results(self.folder) if self.folder.is_dir() else []

    @property
    def results(self) -> dict[str, Result]:
        """By the workload's name; in a group, by that with the loop: "half step"."""
        found = self.every
        alone = {each.group for each in found if sum(other.group == each.group for other in found) == 1}
        return {each.spec.workload + ("" if each.group in alone else f" {each.spec.loop}"): each for each in found}

    def said(self) -> str:
        """Everything that was shown, wrapped lines joined."""
        return " ".join(f"{self.out} {self.err}".split())


class Devbench:
    """A run under way, a session of its own; its output goes to files, so that it never waits for a reader.

    Args:
        folder: where it runs; its results go to `results` in it unless `words` say otherwise.
        words: what follows `devbench`.
        listen: whether stderr is a pipe, for `until`.
        environ: variables beside those of this process.
    """

    def __init__(self, folder: Path, *words: str, listen: bool = False, **environ: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.heard = ""
        flags: dict[str, Any] = {} if sys.platform == "win32" else {"start_new_session": True}
        variables = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "bench", *words],
                cwd=folder,
                env={**os.environ, **variables, **environ},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE if listen else err,
                **flags,
            )

    def until(self, text: str) -> None:
        """Waits for a line on stderr that holds `text`."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.heard += line.decode()
            if text in line.decode():
                return
        raise AssertionError(f"it ended without a line that holds {text!r}:\n{self.heard}")

    def workers(self) -> list[psutil.Process]:
        """The processes that it started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self) -> Ended:
        """Waits for its end."""
        if self.process.stderr is not None:
            with self.process.stderr as rest:
                self.heard += rest.read().decode()
        code = self.process.wait(timeout=SECONDS)
        err = self.heard or (self.folder / "err").read_text(encoding="utf-8")
        return Ended(code, (self.folder / "out").read_text(encoding="utf-8"), err, self.folder / "results")


@contextmanager
def started(*args: Any, **environ: Any) -> Iterator[Devbench]:
    """A run that does not outlive the test, whatever comes."""
    run = Devbench(*args, **environ)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            for each in [*run.workers(), psutil.Process(run.process.pid)]:
                each.kill()
            run.process.wait()
        if run.process.stderr is not None:
            run.process.stderr.close()


def devbench(folder: Path, *words: str, **environ: str) -> Ended:
    """Runs it and waits for its end."""
    with started(folder, *words, **environ) as run:
        return run.end()


def survivors(processes: list[psutil.Process], seconds: float = 20) -> list[psutil.Process]:
    """Those that are still alive after a while; they are ended, so that a failing test leaves nothing."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    living = [each for each in alive if each.status() != psutil.STATUS_ZOMBIE]
    for each in living:
        each.kill()
    return living
