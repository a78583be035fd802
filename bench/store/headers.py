"""The first part of a result's file, for folders that hold more results than are looked at closely.

Both readings rely on how `store.write` puts a file down, and read it whole where it is not so.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from datetime import datetime, timezone
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError
from pydantic_core import from_json

from bench.model.result import SCHEMA_VERSION, Purpose, Result
from bench.store import files

SAMPLES = b'\n "samples": ['
"""Begins the samples in a file that `write` made; within a text of it a line never breaks."""

HEAD = 2**16
"""Bytes that hold everything before them, mostly."""

FIRST_LINES = 2**13
"""Bytes that hold what tells a result from its repetitions, mostly."""

REST = b'\n "environment": {'
"""Begins what comes after that, in a file that `write` made."""


@dataclass(frozen=True)
class Entry:
    """What tells a result from its repetitions, read from the first lines of its file."""

    path: Path
    id: str
    created: datetime
    key: str
    fingerprint: str
    purpose: Purpose


def entry(path: Path) -> Entry:
    """A result's entry, at some twentieth of what `store.read` costs, for folders that hold years of them.

    Raises:
        DataError: as for `store.read`.
    """
    with contextlib.suppress(OSError, ValueError, TypeError, LookupError), path.open("rb", buffering=0) as file:
        begun = from_json(file.read(FIRST_LINES).partition(REST)[0], allow_partial=True)
        known = isinstance(begun, dict) and {"id", "created", "key", "fingerprint", "purpose"} <= begun.keys()
        if known and _is_whole(file) and begun["schema_version"] == SCHEMA_VERSION:
            created = datetime.fromisoformat(begun["created"].replace("Z", "+00:00")).astimezone(timezone.utc)
            return Entry(path, begun["id"], created, begun["key"], begun["fingerprint"], begun["purpose"])
    found = files.read(path)
    return Entry(path, found.id, found.created, found.key, found.fingerprint, found.purpose)


def head(path: Path) -> Result:
    """The result in a file without its samples, which are most of it: for a folder that holds more than is looked at.

    Raises:
        DataError: as for `store.read`.
    """
    with contextlib.suppress(OSError, ValidationError), path.open("rb") as file:
        begun = file.read(HEAD)
        cut = begun.find(SAMPLES)
        if cut > 0 and _is_whole(file):
            found = Result.model_validate_json(begun[:cut].rstrip(b",") + b"}")
            if found.schema_version == SCHEMA_VERSION:
                return found
    return files.read(path)


def _is_whole(file: BinaryIO | FileIO) -> bool:
    """Whether a file ends as one that `write` made."""
    file.seek(-2, os.SEEK_END)
    return file.read() == b"}\n"
