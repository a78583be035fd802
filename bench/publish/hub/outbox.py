"""What a hub has not got yet: a folder of small notes beside the results, each naming a file and the hub it is for.

A note is made before each change of a file, in case its writer is killed in between, and another after it, each under a
name of its own; the first says whether the file was there, which tells one that was never written from one that is
gone. Whoever delivers a file takes away the notes that were there before it was read, but for those of a writer that
lives, so a change that comes meanwhile keeps a note. Nothing is locked: any number of processes may note and deliver,
and be killed at any point; at worst a file is sent twice, which at the hub is once.
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

FOLDER = "spool"
RUNS = "runs"
SUFFIX = ".note"

CHANGING = 600.0
"""Seconds for which a writer in another container, whose life can't be seen from here, may be changing a file."""


@dataclass(frozen=True)
class Waiting:
    """A file that a hub has not got in its present state.

    Args:
        path: of a result, an explanation or a run's state.
        notes: what goes once it is delivered.
    """

    path: Path
    notes: tuple[Path, ...]


class Spool:
    """The notes of one hub in one folder of results.

    Args:
        folder: of results, as `run` writes them.
        hub: the hub's address.
    """

    def __init__(self, folder: Path, hub: str) -> None:
        self.folder = folder
        self.notes = folder / FOLDER
        self.hub = hub.rstrip("/")

    @contextmanager
    def changing(self, path: Path) -> Iterator[None]:
        """Notes that a file changes, within, and that it has changed.

        Raises:
            OutputError: the folder is full or can't be written.
        """
        writer = {"writer": os.getpid(), "since": _since(os.getpid()), "space": _space()}
        self._note(path, {**writer, "there": path.exists()})
        yield
        older = self._of(self._name(path))
        self._note(path, {})
        _remove(older)

    def _note(self, path: Path, more: dict[str, Any]) -> None:
        line = json.dumps({"file": self._name(path), "hub": self.hub, **more}) + "\n"
        files.write_text(self.notes / f"{path.stem}-{secrets.token_hex(4)}{SUFFIX}", [line])

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def keep_run(self, run: RunState) -> None:
        """Keeps the last state of a run until it is delivered."""
        path = self.notes / RUNS / f"{run.id}{files.SUFFIX}"
        with self.changing(path):
            files.write_text(path, [run.model_dump_json(indent=1), "\n"])

    def waiting(self) -> list[Waiting]:
        """What this hub has not got, by name; runs last, which say which results there are.

        Takes away the notes of files whose writer was killed before there was a file to deliver.
        """
        found: dict[Path, list[Path]] = {}
        was_there: set[Path] = set()
        for note, said in self._read():
            path = self.folder / said["file"]
            if not _writes(note, said):
                found.setdefault(path, []).append(note)
                if said.get("there", True):
                    was_there.add(path)
            elif path.exists():
                found.setdefault(path, [])  # sent as it is now; the note is its writer's
        for path in [path for path in found if path not in was_there and not path.exists()]:
            _remove(found.pop(path))
        order = sorted(found, key=lambda path: (path.parent == self.notes / RUNS, path.name))
        return [Waiting(path, tuple(found[path])) for path in order]

    def done(self, waiting: Waiting) -> None:
        """Takes the notes of what was delivered away, and a run's state, which nothing else needs."""
        _remove(waiting.notes)
        if waiting.path.parent == self.notes / RUNS and not self._of(self._name(waiting.path)):
            _remove([waiting.path])

    def prepare(self) -> None:
        """Makes the folders, before anything is measured.

        Raises:
            OutputError: they can't be made or written.
        """
        files.prepare(self.notes)
        files.prepare(self.notes / RUNS)

    def _of(self, name: str) -> list[Path]:
        return [note for note, said in self._read() if said["file"] == name]

    def _read(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        for note in sorted(self.notes.glob(f"*{SUFFIX}")):
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
                said = json.loads(note.read_text(encoding="utf-8"))
                if said["hub"] == self.hub and isinstance(said["file"], str):
                    yield note, said


def _writes(note: Path, said: dict[str, Any]) -> bool:
    """Whether a note is of another process that is about to change the file."""
    writer, since = said.get("writer"), said.get("since")
    if not isinstance(writer, int):
        return False
    if said.get("space", _space()) != _space():
        with contextlib.suppress(OSError):
            return time.time() - note.stat().st_mtime < CHANGING
        return False
    if writer == os.getpid():
        return False
    now = _since(writer)
    return now is not None and (since is None or now == since)


@cache
def _space() -> str:
    """Where a process's number means this process: each container counts its own, and each machine since it started."""
    with contextlib.suppress(OSError):
        booted = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{booted} {Path('/proc/self/ns/pid').readlink()}"
    return ""


def _since(pid: int) -> int | None:
    """When a process was started, in seconds since 1970: another one of the same number was at another time."""
    import psutil

    try:
        return round(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def _remove(paths: tuple[Path, ...] | list[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
