"""Types of the values of settings: how each is read, named in the help, and written back."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, get_origin

from pydantic import BeforeValidator, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_settings import NoDecode

from bench.config import syntax


@dataclass(frozen=True)
class Notation:
    """How a setting's value is written.

    Args:
        metavar: The placeholder for a value in the help, such as TIME.
        write: Returns a value as text, in the syntax that options accept.
        names: Returns the names that a value can contain. `--help` lists them. The documentation does not, so that it
            need not change with them.
    """

    metavar: str
    write: Callable[[Any], str] = str
    names: Callable[[], Iterable[str]] | None = None


def _optional(read: Callable[[Any], Any]) -> BeforeValidator:
    return BeforeValidator(lambda value: None if value is None else read(value))


NAMES = Notation("NAME,…", ",".join)
WORDS = Notation("ARGUMENTS", shlex.join)
STRINGS = WithJsonSchema({"type": "array", "items": {"type": "string"}})


def one_of(names: Iterable[str]) -> WithJsonSchema:
    """Return the JSON Schema of a list of these names."""
    return WithJsonSchema({"type": "array", "items": {"type": "string", "enum": list(names)}})


def _number(bounds: dict[str, float], text: str) -> WithJsonSchema:
    """Return the JSON Schema of a number that can also be a text."""
    return WithJsonSchema({"anyOf": [{"type": "number", **bounds}, {"type": "string", "pattern": text}]})


_ABOVE_0: dict[str, float] = {"exclusiveMinimum": 0}

Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(syntax.names), STRINGS, NAMES]
Assignments = Annotated[dict[str, str], NoDecode, BeforeValidator(syntax.pairs), Notation("NAME=VALUE")]
Words = Annotated[tuple[str, ...] | None, NoDecode, _optional(syntax.words), STRINGS, WORDS]
Share = Annotated[
    float,
    BeforeValidator(syntax.share),
    _number({**_ABOVE_0, "exclusiveMaximum": 1}, syntax.SHARE_TEXT),
    Notation("SHARE", syntax.write_share),
]
Seconds = Annotated[
    float,
    BeforeValidator(syntax.seconds),
    _number(_ABOVE_0, syntax.TIME_TEXT),
    Notation("TIME", syntax.write_seconds),
]
Pause = Annotated[
    float | None,
    _optional(syntax.pause),
    _number({"minimum": 0}, syntax.TIME_TEXT),
    Notation("TIME", syntax.write_seconds),
]
Days = Annotated[float | None, _optional(syntax.days), _number(_ABOVE_0, syntax.DAYS_TEXT), Notation("DAYS")]
Url = Annotated[str | None, _optional(syntax.url), Notation("URL")]
UrlPath = Annotated[
    str,
    BeforeValidator(syntax.url_path),
    WithJsonSchema({"type": "string", "pattern": syntax.PATH_TEXT}),
    Notation("PATH"),
]


def notation_of(field: FieldInfo) -> Notation | None:
    """Return how a field's values are written. None for plain text, numbers and choices."""
    return next((item for item in field.metadata if isinstance(item, Notation)), None)


def write(field: FieldInfo, value: Any) -> str:
    """Return a value as a person writes it: "on", "3%", "1m30s", "cpu,cuda"."""
    if isinstance(value, bool):
        return "on" if value else "off"
    notation = notation_of(field)
    return notation.write(value) if notation else str(value)


def default(field: FieldInfo) -> str:
    """Return a field's default as a person writes it, or "" if it has none or its description explains it."""
    if field.default in (None, "", (), {}) or "Default:" in (field.description or ""):
        return ""
    return write(field, field.default)


def option(name: str) -> str:
    """Return the option of a setting: "--data-dir" for data_dir."""
    return "--" + name.replace("_", "-")


def is_list(field: FieldInfo) -> bool:
    """Return whether a setting holds several values, so that its option can be repeated."""
    return get_origin(field.annotation) in (tuple, dict)
