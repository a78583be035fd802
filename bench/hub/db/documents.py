"""Parsing of the documents that the hub receives, and what it says of those it rejects.

The schema version is checked first: otherwise a document of another version would only look invalid.
"""

from __future__ import annotations

import math
import re
import sys
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import repeat
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from bench.hub.db.first_errors import validator
from bench.hub.problems import Problem
from bench.model.explanation import Explanation
from bench.model.result import SCHEMA_VERSION, Result
from bench.model.run_state import MESSAGE_VERSION, RunState

ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
"""Pattern of an id. Ids are parts of addresses and file names."""

KINDS: dict[type[BaseModel], tuple[str, int]] = {
    Result: ("result", SCHEMA_VERSION),
    RunState: ("run", MESSAGE_VERSION),
    Explanation: ("explanation", SCHEMA_VERSION),
}
"""What each document is called, and the schema version that the hub supports."""

LAST_TIME = datetime(9999, 12, 30, tzinfo=timezone.utc).timestamp()

FIGURE_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of a computation with figures that no run can have. A document with such figures is valid."""

_NOT_JSON = (b"NaN", b"Infinity")
"""Numbers that Python's JSON accepts. A text may contain these words too."""

_HAS_VERSION = re.compile(rb'"schema_version"\s*:\s*\d')

_LARGE_EXPONENT = re.compile(rb"e0000*[\s,\]}]")
_MANY_DIGITS = b"0" * 300
"""A number that is too large for a float has such an exponent or so many digits, after all its digits were replaced by
zeros. A text may have them too."""

LONGEST = 10_000
"""Maximum length of a text in a document, in characters. Texts are shown on pages and in charts."""

RUN_BYTES = 256 * 2**10
"""Maximum size of the state of a run. Each page of runs reads up to 100 of them."""

FEW_ERRORS = 1_000
"""Only of so many errors, the first one is named: pydantic describes all of them, which takes a lot of memory."""

_ONE_AT_A_TIME = threading.Lock()
"""Held while a document is parsed in steps, which takes more memory than in one pass."""

_DIGITS_TO_ZERO = bytes.maketrans(b"123456789E", b"000000000e")

Model = TypeVar("Model", bound=BaseModel)


def result(body: bytes, long_texts: bool = False) -> Result:
    """Parse a result.

    Args:
        body: the document.
        long_texts: accept texts longer than `LONGEST`, as a hub of an older version did.

    Raises:
        Problem: the document is invalid or has another schema version.
    """
    parsed = _parse(body, Result, long_texts)
    _check_time("result", "created", parsed.created)
    return parsed


def run(body: bytes, long_texts: bool = False) -> RunState:
    """Parse the state of a run.

    Args:
        body: the document.
        long_texts: as for `result`.

    Raises:
        Problem: the document is invalid, too large or has another schema version.
    """
    if len(body) > RUN_BYTES and not long_texts:
        raise Problem(413, "too-large", f"the state of a run has more than {RUN_BYTES // 2**10} kB")
    parsed = _parse(body, RunState, long_texts)
    _check_time("run", "started", parsed.started)
    return parsed


def explanation(body: bytes, long_texts: bool = False) -> Explanation:
    """Parse an explanation.

    Args:
        body: the document.
        long_texts: as for `result`.

    Raises:
        Problem: the document is invalid or has another schema version.
    """
    return _parse(body, Explanation, long_texts)


def stored(body: bytes | str, model: type[Model]) -> Model:
    """Parse a document that was valid when it was stored, maybe by another version of devbench.

    Raises:
        Problem: the document has another schema version.
    """
    try:
        parsed = model.model_validate_json(body)
    except ValidationError:
        return _parse_in_steps(body.encode() if isinstance(body, str) else body, model)
    _check_version(getattr(parsed, "schema_version", None), model)
    return parsed


def check_id(document: Result | RunState | Explanation, id_: str) -> None:
    """Check that a document has the id that its address names.

    Raises:
        Problem: it has another id, or its id is invalid.
    """
    kind, _ = KINDS[type(document)]
    if document.id != id_:
        raise _invalid(kind, "id", f"it differs from '{id_}' in the address")
    if not re.fullmatch(ID[1:-1], document.id):
        raise _invalid(kind, "id", "use letters, digits, '.', '_' and '-' only")


def _check_time(kind: str, field: str, time: datetime) -> None:
    aware = time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)  # as `records.microseconds` reads it
    if not 0 <= aware.timestamp() <= LAST_TIME:
        raise _invalid(kind, field, "the time must lie between 1970 and 9999")


def _parse(body: bytes, model: type[Model], long_texts: bool) -> Model:
    """Parse a document in one pass if it is valid, which is fastest. Otherwise, use steps that find what is wrong."""
    needs_steps = any(word in body for word in _NOT_JSON) or _may_overflow(body)
    needs_steps = needs_steps or (not long_texts and _may_be_long(body))
    if _HAS_VERSION.search(body) and not needs_steps:
        try:
            parsed: Model = validator(model).validate_json(body)
        except (ValidationError, RecursionError):
            pass
        else:
            if getattr(parsed, "schema_version", None) == KINDS[model][1]:
                return parsed
    return _parse_in_steps(body, model, long_texts)


def _may_overflow(body: bytes) -> bool:
    """Return whether a number in the body may be too large for a float."""
    zeros = body.translate(_DIGITS_TO_ZERO, b"+")  # a pattern that starts with a literal is found ten times as fast
    return _LARGE_EXPONENT.search(zeros) is not None or _MANY_DIGITS in zeros


def _may_be_long(body: bytes) -> bool:
    """Return whether a text in the body may be too long. Escapes and the encoding make it longer in the body."""
    without_escapes = body.replace(rb"\\", b"__").replace(rb"\"", b"__") if b"\\" in body else body
    half = LONGEST // 2  # a text that is too long fills one of these parts, so most documents need no exact search
    if all(without_escapes.find(b'"', start, start + half) >= 0 for start in range(0, len(without_escapes), half)):
        return False
    return max(map(len, without_escapes.split(b'"')[1::2]), default=0) > LONGEST


def _parse_in_steps(body: bytes, model: type[Model], long_texts: bool = False) -> Model:
    kind, _ = KINDS[model]
    with _ONE_AT_A_TIME:
        try:
            document: Any = from_json(body, allow_inf_nan=False)
        except ValueError as error:
            raise Problem(400, "not-json", f"the body is not valid JSON: {error}") from None
        if not isinstance(document, dict):
            raise _invalid(kind, "", "it is not a JSON object")
        _check_values(kind, document, math.inf if long_texts else LONGEST)
        _check_version(document.get("schema_version"), model)
        try:
            parsed: Model = validator(model).validate_python(document)
            return parsed
        except ValidationError as error:
            raise _described(kind, error) from None
        except RecursionError:
            raise _invalid(kind, "", "it is nested too deeply") from None


def _described(kind: str, error: ValidationError) -> Problem:
    if error.error_count() > FEW_ERRORS:
        return _invalid(kind, "", f"it has {error.error_count():,} errors")
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return _invalid(kind, ".".join(map(str, first["loc"])), first["msg"])


def _check_values(kind: str, document: dict[str, Any], longest: float) -> None:
    """Check that all numbers of a document fit into a float, and that no text is too long.

    Raises:
        Problem: one does not.
    """
    for field, item in _values(document):
        if len(field) > longest or (isinstance(item, str) and len(item) > longest):
            raise _invalid(kind, field[:100], f"a text has more than {LONGEST:,} characters")
        if isinstance(item, int | float) and not abs(item) <= sys.float_info.max:
            raise _invalid(kind, field, "a number is too large")


def _values(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each value in a document with the name of its field, without a copy of them."""
    pending: list[Iterator[tuple[str, Any]]] = [iter(document.items())]
    while pending:
        entry = next(pending[-1], None)
        if entry is None:
            pending.pop()
            continue
        yield entry
        field, value = entry
        if isinstance(value, dict):
            pending.append(iter(value.items()))
        elif isinstance(value, list):
            pending.append(zip(repeat(field), value))


def _check_version(given: Any, model: type[BaseModel]) -> None:
    kind, version = KINDS[model]
    if not isinstance(given, int) or isinstance(given, bool):
        raise _invalid(kind, "schema_version", "it must be a whole number")
    if given > version:
        raise Problem(
            422,
            "newer-schema",
            f"the {kind} has schema version {given}, but this hub supports version {version}",
            "Upgrade the hub before its senders. They keep what it rejected.",
        )
    if given < version:
        raise Problem(
            422,
            "older-schema",
            f"the {kind} is too old: it has schema version {given}, but this hub supports version {version}",
            "Upgrade the sender." if model is RunState else "Measure again with this version of devbench.",
        )


def _invalid(kind: str, field: str, why: str) -> Problem:
    at = f" at '{field}'" if field else ""
    return Problem(422, "invalid-document", f"invalid {kind}{at}: {why}")
