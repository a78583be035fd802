"""The outbox: what a hub has not received yet, kept as small notes beside the results.

Each note names a file and the hub it is for. Before a file changes, its writer leaves a note with the digest of the old
content. After the change it renames the note. If the writer is killed in between, the digest tells whether the file has
changed. Whoever delivers a file removes the notes that were there before it read the file. If the file changes in the
meantime, its writer leaves another note. There are no locks. Any number of processes may write and deliver, and may be
killed at any point. At worst a file is sent twice, which the hub treats as once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.model.run_state import RunState
from bench.store import atomic, files

FOLDER = "outbox"
RUNS = "runs"

ANNOUNCED, CHANGED = ".writing", ".note"
"""Suffixes of notes: of a file that is about to change, and of one that has changed."""

WRITING_SECONDS = 600.0
"""Age at which the writer of an unchanged file counts as gone."""


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
        self._latest_notes: dict[Path, Path] = {}

    @contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Note that a file is about to change. After the block, which writes it, note that it has changed.

        Raises:
            OutputError: The folder is full or cannot be written.
        """
        announcement = self._note(path, ANNOUNCED, before=_digest(path))
        yield
        note = announcement.with_suffix(CHANGED)
        try:
            announcement.replace(note)
        except OSError:  # somebody has delivered the file, perhaps before this change
            note = self._note(path, CHANGED)
        if path in self._latest_notes:
            _remove([self._latest_notes[path]])
        self._latest_notes[path] = note

    def _note(self, path: Path, suffix: str, **fields: Any) -> Path:
        note = self.notes / f"{path.stem}-{secrets.token_hex(4)}{suffix}"
        atomic.write_text(note, [json.dumps({"file": self._name(path), "hub": self.hub, **fields}), "\n"])
        return note

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def keep_run_state(self, run: RunState) -> None:
        """Keep the last state of a run until it is delivered.

        Raises:
            OutputError: The folder is full or cannot be written.
        """
        path = self.notes / RUNS / f"{run.id}{files.SUFFIX}"
        with self.writing(path):
            atomic.write_text(path, [run.model_dump_json(indent=1), "\n"])

    def pending(self) -> list[Pending]:
        """Return the files that this hub has not received, by name. Runs come last, since they list their results.

        Old notes of writers that were killed before they changed anything are removed.
        """
        notes: dict[Path, list[Path]] = {}
        for note, content in self._read():
            path = self.folder / content["file"]
            if note.suffix == CHANGED or _digest(path) != content.get("before"):
                notes.setdefault(path, []).append(note)
            elif _is_old(note):
                _remove([note])
        order = sorted(notes, key=lambda path: (path.parent == self.notes / RUNS, path.name))
        return [Pending(path, tuple(notes[path])) for path in order]

    def confirm(self, delivered: Pending) -> None:
        """Remove the notes of a delivered file. Remove the file of a run's state too, unless it has further notes."""
        _remove(delivered.notes)
        path = delivered.path
        if path.parent == self.notes / RUNS and self._name(path) not in (
            content["file"] for _, content in self._read()
        ):
            _remove([path])

    def prepare(self) -> None:
        """Make the folders, before anything is measured.

        Raises:
            OutputError: The folders cannot be made or written.
        """
        files.prepare(self.notes)
        files.prepare(self.notes / RUNS)

    def _read(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        for note in sorted([*self.notes.glob(f"*{ANNOUNCED}"), *self.notes.glob(f"*{CHANGED}")]):
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
                content = json.loads(note.read_text(encoding="utf-8"))
                file = content["file"]
                if content["hub"] == self.hub and isinstance(file, str) and "\0" not in file:
                    yield note, content


def _digest(path: Path) -> str | None:
    """Return the digest of a file's content. None if there is no file."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _is_old(note: Path) -> bool:
    with contextlib.suppress(OSError):
        return time.time() - note.stat().st_mtime > WRITING_SECONDS
    return False


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
