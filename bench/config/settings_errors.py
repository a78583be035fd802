"""Errors about settings: the value, where it was set, and how to write it."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError

from bench.config import syntax
from bench.errors import SettingsError
from bench.machine.urls import without_user


def from_validation(error: ValidationError, origin: Callable[[str], str]) -> SettingsError:
    """Convert an error of pydantic to the error that the user sees.

    Args:
        error: The error of pydantic, which may concern several settings.
        origin: Takes the name of a setting and returns where it was set: "--threads", "DEVBENCH_THREADS" or
            "'threads' in devbench.toml".
    """
    messages = [_message(detail["input"], origin(str(detail["loc"][0]))) for detail in error.errors()]
    return SettingsError(
        "; ".join(messages), "\n".join(_sentence(syntax.requirement(detail)) for detail in error.errors())
    )


def invalid(value: object, origin: str, allowed: str) -> SettingsError:
    """Return the error for one value.

    Args:
        value: The value as it was set.
        origin: Where it was set, such as "--param".
        allowed: How to write the value.
    """
    return SettingsError(_message(value, origin), _sentence(allowed))


def _message(value: object, origin: str) -> str:
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        value = ",".join(value)
    return f"invalid value '{without_user(str(value))}' for {origin}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")
