"""Sentences about what a script did, for the reader of the result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import FrameType


def place_of(frame: FrameType) -> str:
    """Return the file and the line that a frame runs, in words."""
    return f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"


def once(note: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that passes each sentence on once."""
    noted: set[str] = set()

    def note_once(sentence: str) -> None:
        if sentence not in noted:
            noted.add(sentence)
            note(sentence)

    return note_once
