"""Wrong settings in words: where each was given, what was written there, and what is allowed."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError

from bench.config import syntax
from bench.errors import SettingsError


def of_all(error: ValidationError, origin: Callable[[str], str]) -> SettingsError:
    """What is wrong with settings, as a user meets it.

    Args:
        error: pydantic's.
        origin: says of a setting where its value was given.
    """
    messages = [_message(each["input"], origin(str(each["loc"][0]))) for each in error.errors()]
    return SettingsError("; ".join(messages), "\n".join(_sentence(syntax.allowed(each)) for each in error.errors()))


def of_value(value: object, origin: str, allowed: str) -> SettingsError:
    """That one value can't be.

    Args:
        value: as it was given.
        origin: where, such as "option --param".
        allowed: how to write it.
    """
    return SettingsError(_message(value, origin), _sentence(allowed))


def _message(value: object, origin: str) -> str:
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        value = ",".join(value)
    return f"{origin} can't be '{value}'"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")
