"""A file of outcomes, one JSON document per line, to which the parts of a long measurement are added."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

Outcome = TypeVar("Outcome", bound=BaseModel)


def read(file: Path | None, kind: type[Outcome]) -> list[Outcome]:
    """Return the outcomes in a file. Empty if there is no file yet."""
    if file is None or not file.exists():
        return []
    return [kind.model_validate_json(line) for line in file.read_text(encoding="utf-8").splitlines()]


def append(file: Path | None, outcome: BaseModel) -> None:
    """Add an outcome to a file, if there is one."""
    if file is not None:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(outcome.model_dump_json() + "\n")
