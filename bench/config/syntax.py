"""The syntax of settings: shares, times, lists of names, and parameters.

Each reader takes what an option, an environment variable or a settings file can hold. It returns the plain value, or
raises a ValueError whose text says how to write it. `write_share` and `write_seconds` write a value back.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SHARE = "use a share such as 3% or 0.03, above 0% and below 100%"
TIME = "use a time above 0, such as 90s, 2m or 1h30m, or a number of seconds"
PAUSE = "use a time such as 90s, 2m or 1h30m, a number of seconds, or 0 for none"
DAYS = "use a number of days above 0, such as 90, or a time such as 12h"
URL = "use a URL such as http://pushgateway:9091"
URL_PATH = "use a path such as /devbench"
NAMES = "use names separated by commas, such as cpu,cuda"
WORDS = "use arguments as in a shell, such as '--epochs 3 --lr 0.1'"
AXIS = "use a range such as 1..4096 (doubling), 1..4096*4 or 0..100+10, or values such as 16,64,256; at most 200 values"
PAIRS = "use NAME=VALUE such as batch=64, or several such as batch=64,epochs=2"

_DAY = 86_400
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_URL_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_PART = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(h|ms|m|s)", re.ASCII)


def _number(value: object, syntax: str) -> float:
    """Convert a number, or its text, to a float. A bool is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(syntax)
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise ValueError(syntax) from None


def share(value: object) -> float:
    """Read a share: "3%", "0.03" and 0.03 are all 0.03.

    A plain 3 is an error, because it could mean 3% or 300%.
    """
    text = value.strip() if isinstance(value, str) else value
    percent = isinstance(text, str) and text.endswith("%")
    number = _number(text[:-1] if isinstance(text, str) and percent else text, SHARE)
    number = number / 100 if percent else number
    if not 0 < number < 1:
        raise ValueError(SHARE)
    return number


def seconds(value: object) -> float:
    """Read a time in seconds, such as "90s", "1.5m", "1h30m", "90" or 90."""
    number = _time(value, TIME)
    if not number:
        raise ValueError(TIME)
    return number


def pause(value: object) -> float:
    """Read a time in seconds as `seconds` does, or 0."""
    return _time(value, PAUSE)


def days(value: object) -> float:
    """Read a number of days, such as 90 or "90d", or a time as `seconds` does. Return days."""
    text = str(value).strip().lower()
    try:
        number = _number(text.removesuffix("d"), DAYS)
    except ValueError:
        number = _time(text, DAYS) / _DAY
    if not 0 < number < math.inf:
        raise ValueError(DAYS)
    return number


def _time(value: object, syntax: str) -> float:
    """Read a time of 0 or more, in seconds."""
    if isinstance(value, str):
        text = value.strip().lower()
        parts = _PART.findall(text)
        if parts and not _PART.sub("", text).strip():
            units = [unit for _, unit in parts]
            if len(set(units)) < len(units):
                raise ValueError(syntax)
            return _bounded(sum(float(number) * _SECONDS[unit] for number, unit in parts), syntax)
    return _bounded(_number(value, syntax), syntax)


def _bounded(number: float, syntax: str) -> float:
    if not (0 <= number < math.inf):
        raise ValueError(syntax)
    return number


def url(value: object) -> str:
    """Read an HTTP URL. A slash at its end is removed."""
    text = value.strip().rstrip("/") if isinstance(value, str) else ""
    try:
        parts = urlsplit(text)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or any(character.isspace() for character in text):
        raise ValueError(URL)
    return text


def url_path(value: object) -> str:
    """Read the path of a URL. A slash at its end is removed, so "/" becomes ""."""
    text = str(value).strip().rstrip("/")
    if text and not _URL_PATH.fullmatch(text):
        raise ValueError(URL_PATH)
    return text


def expanded(path: Path) -> Path:
    """Return a path whose first part is no longer `~` or `~USER`."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError(f"use a path without '~', because the home folder of {path.parts[0]} is not known") from None


def names(value: object) -> tuple[str, ...]:
    """Read names: "cpu,cuda", ["cpu", "cuda"] and ["cpu,cuda"] are the same. A repeated name counts once."""
    parts: Iterable[object] = [value] if isinstance(value, str) else value if isinstance(value, Iterable) else [None]
    unique: dict[str, None] = {}
    for part in parts:
        if not isinstance(part, str):
            raise ValueError(NAMES)
        unique.update((name.strip(), None) for name in part.split(",") if name.strip())
    return tuple(unique)


def words(value: object) -> tuple[str, ...]:
    """Read the arguments of a program: a text as a shell takes it, or a list of arguments."""
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError:
            raise ValueError(WORDS) from None
    if not isinstance(value, list | tuple) or not all(isinstance(word, str) for word in value):
        raise ValueError(WORDS)
    return tuple(value)


def pairs(value: object) -> dict[str, str]:
    """Read parameters: "batch=64,epochs=2", ["batch=64"] or a table. A value may hold commas, as in sizes=1,2."""
    if isinstance(value, Mapping):
        return {str(key): _scalar(item) for key, item in value.items()}
    texts: Iterable[object] = [value] if isinstance(value, str) else value if isinstance(value, Iterable) else [None]
    parameters: dict[str, str] = {}
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(PAIRS)
        name = ""
        for part in text.split(","):
            if "=" in part:
                name, _, assigned = part.partition("=")
                name = name.strip()
                if not name:
                    raise ValueError(PAIRS)
                parameters[name] = assigned.strip()
            elif name:
                parameters[name] += "," + part.strip()
            elif part.strip():
                raise ValueError(PAIRS)
    return parameters


_RANGE = re.compile(r"(?P<low>[^.*+]+(?:\.\d+)?)\.\.(?P<high>[^*+]+)(?:(?P<how>[*+])(?P<by>.+))?", re.ASCII)
MOST_VALUES = 200

_SINGLE = re.compile(r"""[\[\](){}"']""")
"""Brackets or quotes. In a value that has them, commas and dots are part of the value."""

_PATH = re.compile(r"[/\\]|^\s*\.\.")
"""A path, such as ../data. Its dots do not mean a range."""


def sweep_values(text: str) -> list[str] | None:
    """Return the values of a swept parameter, or None for a single value.

    "1..4096" doubles, "1..4096*4" multiplies by 4, "0..100+10" adds 10, "16,64,256" is a list. The end of a range is
    always one of its values. "[4,8]" and "../data" are single values.

    Raises:
        ValueError: The range is invalid.
    """
    if _SINGLE.search(text):
        return None
    if ".." not in text or _PATH.search(text):
        return [item.strip() for item in text.split(",") if item.strip()] if "," in text else None
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise ValueError(AXIS)
    given = [match["low"], match["high"], *([match["by"]] if match["how"] == "+" else [])]
    integers = all(re.fullmatch(r"-?\d+", number.strip()) for number in given)
    low, high = (_number(match[name].strip(), AXIS) for name in ("low", "high"))
    times = match["how"] != "+"
    by = _number((match["by"] or "2").strip(), AXIS)
    if high <= low or (times and (low <= 0 or by <= 1)) or (not times and by <= 0):
        raise ValueError(AXIS)
    values = [low]
    while values[-1] < high:
        values.append(min(high, values[-1] * by if times else values[-1] + by))
        if len(values) > MOST_VALUES:
            raise ValueError(AXIS)
    return list(dict.fromkeys(str(round(value)) if integers else f"{value:.6g}" for value in values))


def _scalar(value: object) -> str:
    """Return a parameter's value as text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return ",".join(_scalar(item) for item in value)
    raise ValueError(PAIRS)


def write_share(value: float) -> str:
    """Write a share: 0.03 is "3%"."""
    return f"{value * 100:.6g}%"


def write_seconds(value: float) -> str:
    """Write a time in seconds: 5400 is "1h30m", 0.5 is "500ms"."""
    if value < 1:
        return f"{value * 1000:.6g}ms"
    hours, rest = divmod(value, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [f"{hours:.0f}h" if hours else "", f"{minutes:.0f}m" if minutes else "", f"{rest:.6g}s" if rest else ""]
    return "".join(parts)


# The same as patterns of a JSON Schema, which Helm reads too. They refuse exponents and signs, unlike the readers.
_N = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_TIME = rf"({_N}\s*([hHsS]|[mM][sS]?)\s*)+"
SHARE_TEXT = rf"^\s*({_N}\s*%|0*\.[0-9]+|{_N}[eE]-[0-9]+)\s*$"
TIME_TEXT = rf"^\s*({_TIME}|{_N})\s*$"
DAYS_TEXT = rf"^\s*({_TIME}|{_N}\s*[dD]?)\s*$"
PATH_TEXT = r"^\s*(/[A-Za-z0-9._~-]+)*/*\s*$"

ADDRESS = r"^https?://[^/\s]+\S*$"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
CURRENCY = "^[A-Z]{3}$"

_PATTERNS = {
    ADDRESS: "use a URL such as http://hub:8080",
    NAME: "use letters, digits, '.', '_' and '-', starting with a letter or digit; at most 100 characters",
    CURRENCY: "use three capital letters, such as EUR",
}

_BOUNDS = {
    "greater_than_equal": ("ge", "use a {kind} of {bound} or more"),
    "greater_than": ("gt", "use a {kind} above {bound}"),
    "less_than_equal": ("le", "use a {kind} of {bound} or less"),
    "less_than": ("lt", "use a {kind} below {bound}"),
}

_KINDS = {"bool": "use on or off", "int": "use a whole number", "float": "use a number"}


def requirement(error: Mapping[str, Any]) -> str:
    """Return how to write a value that pydantic rejected.

    Args:
        error: One of the errors of a `ValidationError`.
    """
    kind, context = error["type"], error.get("ctx", {})
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        bound = context[name]
        return words.format(kind="whole number" if isinstance(bound, int) else "number", bound=f"{bound:.10g}")
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"use {context['expected']}".replace("'", "")
    if kind == "string_pattern_mismatch":
        return _PATTERNS[context["pattern"]]
    for start, words in _KINDS.items():
        if kind.startswith(start):
            return words
    return NAMES if kind == "too_short" else str(error["msg"])
