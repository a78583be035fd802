"""What a hub has not got yet: a folder of small notes beside the results, each naming a file and the hub it is for.

A note is made after each change of a file, under a name of its own. Whoever delivers a file takes away the notes that
were there before it was read, so a change that comes meanwhile keeps its own note. Nothing is locked: any number of
processes may note and deliver, and be killed at any point; at worst a file is sent twice, which at the hub is once.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.output import store
from bench.output.sending.messages import RunState

FOLDER = "spool"
RUNS = "runs"
SUFFIX = ".note"


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

    def note(self, path: Path) -> None:
        """Notes that a file has changed, once it is on the disk.

        Raises:
            OutputError: the folder is full or can't be written.
        """
        name = path.relative_to(self.folder).as_posix()
        older = self._of(name)
        line = json.dumps({"file": name, "hub": self.hub}) + "\n"
        store.write_text(self.notes / f"{path.stem}-{secrets.token_hex(4)}{SUFFIX}", [line])
        _remove(older)

    def keep_run(self, run: RunState) -> None:
        """Keeps the last state of a run until it is delivered."""
        path = self.notes / RUNS / f"{run.id}{store.SUFFIX}"
        store.write_text(path, [run.model_dump_json(indent=1), "\n"])
        self.note(path)

    def waiting(self) -> list[Waiting]:
        """What this hub has not got, by name; runs last, which say which results there are."""
        found: dict[Path, list[Path]] = {}
        for note, name in self._read():
            found.setdefault(self.folder / name, []).append(note)
        order = sorted(found, key=lambda path: (path.parent.name == RUNS, path.name))
        return [Waiting(path, tuple(found[path])) for path in order]

    def done(self, waiting: Waiting) -> None:
        """Takes the notes of what was delivered away, and a run's state, which nothing else needs."""
        _remove(waiting.notes)
        if waiting.path.parent == self.notes / RUNS and not self._of(waiting.path.relative_to(self.folder).as_posix()):
            _remove([waiting.path])

    def prepare(self) -> None:
        """Makes the folders, before anything is measured.

        Raises:
            OutputError: they can't be made or written.
        """
        store.prepare(self.notes)
        store.prepare(self.notes / RUNS)

    def _of(self, name: str) -> list[Path]:
        return [note for note, file in self._read() if file == name]

    def _read(self) -> Iterator[tuple[Path, str]]:
        for note in sorted(self.notes.glob(f"*{SUFFIX}")):
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
                said = json.loads(note.read_text(encoding="utf-8"))
                if said["hub"] == self.hub:
                    yield note, said["file"]


def _remove(paths: tuple[Path, ...] | list[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
