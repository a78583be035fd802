"""Documents as they come in: what they must be, and what is said of those that are not.

Each is first asked for its schema's version, since a newer document would only seem wrong.
"""

from __future__ import annotations

import re
import sys
from datetime import datetime, timezone
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from bench.hub.problems import Problem
from bench.model.explanation import Explanation
from bench.model.result import SCHEMA_VERSION, Result
from bench.model.run_state import MESSAGE_VERSION, RunState

ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
"""What an id may be: it stands in addresses and names files."""

NOT_JSON = (b"NaN", b"Infinity")
"""Python's JSON has these; a text may hold them too."""

NUMBERED = re.compile(rb'"schema_version"\s*:\s*\d')

HUGE_POWER = re.compile(rb"e0000*[\s,\]}]")
HUGE_LENGTH = b"0" * 300
"""A number that no float holds has such a power or so many digits, here all zeros; a text may hold them too."""

DIGITS_TO_ZERO = bytes.maketrans(b"123456789E", b"000000000e")

LAST = datetime(9999, 12, 30, tzinfo=timezone.utc).timestamp()

FIGURE_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors that figures no run can have cause, although the document that holds them is valid."""

Model = TypeVar("Model", bound=BaseModel)


def result(body: bytes) -> Result:
    """The result in a body.

    Raises:
        Problem: it is none, or of a newer devbench.
    """
    found = _read(body, Result, "result", SCHEMA_VERSION)
    if not 0 <= found.created.timestamp() <= LAST:
        raise _wrong("result", "created", "it is no moment since 1970")
    return found


def run(body: bytes) -> RunState:
    """The state of a run in a body.

    Raises:
        Problem: it is none, or of a newer devbench.
    """
    found = _read(body, RunState, "run", MESSAGE_VERSION)
    if not 0 <= found.started.timestamp() <= LAST:
        raise _wrong("run", "started", "it is no moment since 1970")
    return found


def explanation(body: bytes) -> Explanation:
    """The explanation in a body.

    Raises:
        Problem: it is none, or of a newer devbench.
    """
    return _read(body, Explanation, "explanation", SCHEMA_VERSION)


def named(document: Result | RunState | Explanation, name: str) -> None:
    """Sees that a document is the one that the address names.

    Raises:
        Problem: it has another id, or one that can't stand in an address.
    """
    if document.id != name:
        raise _wrong(type(document).__name__.lower(), "id", f"the address says '{name}'")
    if not re.fullmatch(ID[1:-1], document.id):
        raise _wrong(type(document).__name__.lower(), "id", "it may hold letters, digits, '.', '_' and '-' only")


def _read(body: bytes, model: type[Model], what: str, version: int) -> Model:
    """The document: in one go where it is as it should be, which is fastest; else in steps that say what is wrong."""
    if NUMBERED.search(body) and not any(word in body for word in NOT_JSON) and not _may_be_huge(body):
        try:
            found = model.model_validate_json(body)
        except (ValidationError, RecursionError):
            pass
        else:
            if getattr(found, "schema_version", version) <= version:
                return found
    return _judged(body, model, what, version)


def _may_be_huge(body: bytes) -> bool:
    """Whether a number in it may be too large for a float."""
    zeros = body.translate(DIGITS_TO_ZERO, b"+")  # a pattern that begins with plain bytes is found ten times as fast
    return HUGE_POWER.search(zeros) is not None or HUGE_LENGTH in zeros


def _judged(body: bytes, model: type[Model], what: str, version: int) -> Model:
    try:
        document: Any = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise Problem(400, "no-json", f"the body is no JSON document: {error}") from None
    if not isinstance(document, dict):
        raise _wrong(what, "", "it is no object")
    if not _finite(document):
        raise _wrong(what, "", "it holds a number that is too large")
    _known(document, what, version)
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise _wrong(what, ".".join(map(str, first["loc"])), first["msg"]) from None
    except RecursionError:
        raise _wrong(what, "", "it is nested too deeply") from None


def _finite(document: Any) -> bool:
    """Whether all numbers of a document are such that a float holds them."""
    waiting = [document]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, int | float) and not abs(each) <= sys.float_info.max:
            return False
    return True


def _known(document: dict[str, Any], what: str, version: int) -> None:
    given = document.get("schema_version")
    if not isinstance(given, int) or isinstance(given, bool):
        raise _wrong(what, "schema_version", "it must be a whole number")
    if given > version:
        raise Problem(
            422,
            "newer-schema",
            f"the {what} has schema {given}, and this hub knows schemas up to {version}",
            "Upgrade the hub before its senders; they keep what it refused.",
        )


def _wrong(what: str, where: str, why: str) -> Problem:
    place = f" at {where}" if where else ""
    return Problem(422, "wrong-document", f"this is no {what} of devbench{place}: {why}")
