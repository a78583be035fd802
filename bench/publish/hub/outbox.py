"""The outbox: what a hub has not received yet, kept as small notes beside the results.

Each note names a file and the hub it is for. One note is written before a file changes, in case the writer is killed
while it writes, and another one after it, each under its own name. The first note says whether the file existed. This
tells a file that was never written from one that was deleted. Whoever delivers a file removes the notes that existed
before the file was read, except those of a writer that is still alive. So a file that changes in the meantime keeps a
note. There are no locks. Any number of processes may write and deliver, and may be killed at any point. At worst a file
is sent twice, which the hub treats as once.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.model.run_state import RunState
from bench.store import files

FOLDER = "outbox"
RUNS = "runs"
SUFFIX = ".note"

WRITING = 600.0
"""Seconds that a writer in another container, which cannot be seen from here, may take to write a file."""


@dataclass(frozen=True)
class Pending:
    """A file that a hub has not received in its current state.

    Attributes:
        path: The file of a result, an explanation or a run's state.
        notes: The notes to remove once it is delivered.
    """

    path: Path
    notes: tuple[Path, ...]


class Outbox:
    """The notes for one hub in one folder of results.

    Args:
        folder: The folder of results.
        hub: The hub's address.
    """

    def __init__(self, folder: Path, hub: str) -> None:
        self.folder = folder
        self.notes = folder / FOLDER
        self.hub = hub.rstrip("/")

    @contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Note that a file is being written within, and that it was written.

        Raises:
            OutputError: The folder is full or cannot be written.
        """
        writer = {"writer": os.getpid(), "since": _start_time(os.getpid()), "space": _pid_namespace()}
        self._note(path, {**writer, "existed": path.exists()})
        yield
        older = self._of(self._name(path))
        self._note(path, {})
        _remove(older)

    def _note(self, path: Path, more: dict[str, Any]) -> None:
        line = json.dumps({"file": self._name(path), "hub": self.hub, **more}) + "\n"
        files.write_text(self.notes / f"{path.stem}-{secrets.token_hex(4)}{SUFFIX}", [line])

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def keep_run_state(self, run: RunState) -> None:
        """Keep the last state of a run until it is delivered."""
        path = self.notes / RUNS / f"{run.id}{files.SUFFIX}"
        with self.writing(path):
            files.write_text(path, [run.model_dump_json(indent=1), "\n"])

    def pending(self) -> list[Pending]:
        """Return the files that this hub has not received, by name. Runs come last, since they list their results.

        Notes of files whose writer was killed before it wrote anything are removed.
        """
        notes: dict[Path, list[Path]] = {}
        existed: set[Path] = set()
        for note, content in self._read():
            path = self.folder / content["file"]
            if not _is_being_written(note, content):
                notes.setdefault(path, []).append(note)
                if content.get("existed", True):
                    existed.add(path)
            elif path.exists():
                notes.setdefault(path, [])  # the file is sent as it is now; its writer owns the note
        for path in [path for path in notes if path not in existed and not path.exists()]:
            _remove(notes.pop(path))
        order = sorted(notes, key=lambda path: (path.parent == self.notes / RUNS, path.name))
        return [Pending(path, tuple(notes[path])) for path in order]

    def done(self, waiting: Pending) -> None:
        """Remove the notes of a delivered file, and a run's state, which nothing else needs."""
        _remove(waiting.notes)
        if waiting.path.parent == self.notes / RUNS and not self._of(self._name(waiting.path)):
            _remove([waiting.path])

    def prepare(self) -> None:
        """Make the folders, before anything is measured.

        Raises:
            OutputError: They cannot be made or written.
        """
        files.prepare(self.notes)
        files.prepare(self.notes / RUNS)

    def _of(self, name: str) -> list[Path]:
        return [note for note, content in self._read() if content["file"] == name]

    def _read(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        for note in sorted(self.notes.glob(f"*{SUFFIX}")):
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
                content = json.loads(note.read_text(encoding="utf-8"))
                if content["hub"] == self.hub and isinstance(content["file"], str):
                    yield note, content


def _is_being_written(note: Path, content: dict[str, Any]) -> bool:
    """Return whether a note belongs to another process that is about to write the file."""
    writer, since = content.get("writer"), content.get("since")
    if not isinstance(writer, int):
        return False
    if content.get("space", _pid_namespace()) != _pid_namespace():
        with contextlib.suppress(OSError):
            return time.time() - note.stat().st_mtime < WRITING
        return False
    if writer == os.getpid():
        return False
    now = _start_time(writer)
    return now is not None and (since is None or now == since)


@cache
def _pid_namespace() -> str:
    """Return what makes a process id unique: the machine's boot and the container's namespace."""
    with contextlib.suppress(OSError):
        booted = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{booted} {Path('/proc/self/ns/pid').readlink()}"
    return ""


def _start_time(pid: int) -> int | None:
    """Return when a process started, in seconds since 1970. It tells two processes with the same id apart."""
    import psutil

    try:
        return round(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def _remove(paths: tuple[Path, ...] | list[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
