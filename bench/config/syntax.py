"""How settings are written by hand: shares, times, lists of names, and parameters.

Each reader takes what an option, an environment variable or a settings file can hold, and either returns
the plain value or raises a ValueError whose text says how to write it; `shown` writes a value back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

SHARE = "write a share as 3% or 0.03, more than 0% and less than 100%"
TIME = "write a time as 90s, 2m, 1h30m, or a number of seconds, more than 0"
PAUSE = "write a time as 90s, 2m, 1h30m, or a number of seconds; 0 for none"
URL = "write a URL such as http://pushgateway:9091"
NAMES = "write names with commas between them, such as cpu,cuda"
AXIS = "write a range as 1..4096 (doubling), 1..4096*4, 0..100+10, or values as 16,64,256; at most 200 values"
PAIRS = "write parameters as batch=64, or several as batch=64,epochs=2"

_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(h|ms|m|s)", re.ASCII)


def _number(value: object, teach: str) -> float:
    """The plain number that a value is, or a ValueError that teaches; a bool is not a number here."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(teach)
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise ValueError(teach) from None


def share(value: object) -> float:
    """Reads a share: "3%", "0.03" or 0.03 are all 0.03.

    A bare 3 is refused, for nobody can tell whether it is 3% or 300%.
    """
    text = value.strip() if isinstance(value, str) else value
    percent = isinstance(text, str) and text.endswith("%")
    number = _number(text[:-1] if isinstance(text, str) and percent else text, SHARE)
    number = number / 100 if percent else number
    if not 0 < number < 1:
        raise ValueError(SHARE)
    return number


def seconds(value: object) -> float:
    """Reads a time in seconds: "90s", "1.5m", "1h30m", "90" and 90 are all times."""
    number = _time(value, TIME)
    if not number:
        raise ValueError(TIME)
    return number


def pause(value: object) -> float:
    """Reads a time as `seconds` does, or 0."""
    return _time(value, PAUSE)


def _time(value: object, teach: str) -> float:
    """A time of 0 or more, or a ValueError that teaches."""
    if isinstance(value, str):
        text = value.strip().lower()
        parts = _PART.findall(text)
        if parts and not _PART.sub("", text).strip():
            units = [unit for _, unit in parts]
            if len(set(units)) < len(units):
                raise ValueError(teach)
            return _bounded(sum(float(number) * _SECONDS[unit] for number, unit in parts), teach)
    return _bounded(_number(value, teach), teach)


def _bounded(number: float, teach: str) -> float:
    if not (0 <= number < math.inf):
        raise ValueError(teach)
    return number


def url(value: object) -> str:
    """Reads the URL of something that speaks HTTP, without a slash at its end."""
    text = value.strip().rstrip("/") if isinstance(value, str) else ""
    try:
        parts = urlsplit(text)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or any(each.isspace() for each in text):
        raise ValueError(URL)
    return text


def names(value: object) -> tuple[str, ...]:
    """Reads names: "cpu,cuda", ["cpu", "cuda"] and ["cpu,cuda"] are the same; a repeated name counts once."""
    parts: Iterable[object] = [value] if isinstance(value, str) else value if isinstance(value, Iterable) else [None]
    found: dict[str, None] = {}
    for part in parts:
        if not isinstance(part, str):
            raise ValueError(NAMES)
        found.update((name.strip(), None) for name in part.split(",") if name.strip())
    return tuple(found)


def pairs(value: object) -> dict[str, str]:
    """Reads parameters: "batch=64,epochs=2", ["batch=64"] or a table; a value may hold commas, as in sizes=1,2."""
    if isinstance(value, Mapping):
        return {str(key): _scalar(item) for key, item in value.items()}
    texts: Iterable[object] = [value] if isinstance(value, str) else value if isinstance(value, Iterable) else [None]
    found: dict[str, str] = {}
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(PAIRS)
        name = ""
        for part in text.split(","):
            if "=" in part:
                name, _, given = part.partition("=")
                name = name.strip()
                if not name:
                    raise ValueError(PAIRS)
                found[name] = given.strip()
            elif name:
                found[name] += "," + part.strip()
            elif part.strip():
                raise ValueError(PAIRS)
    return found


_RANGE = re.compile(r"(?P<low>[^.*+]+(?:\.\d+)?)\.\.(?P<high>[^*+]+)(?:(?P<how>[*+])(?P<by>.+))?", re.ASCII)
MOST_VALUES = 200

_ONE = re.compile(r"""[\[\](){}"']""")
"""What a list, a tuple, a table or a text in quotes has: a value whose commas and dots are its own."""

_PATH = re.compile(r"[/\\]|^\s*\.\.")
"""What a path has, such as ../data: its dots lie between no two values."""


def axis(text: str) -> list[str] | None:
    """The values that a swept parameter takes, or none for a single value.

    "1..4096" doubles, "1..4096*4" takes every fourth power, "0..100+10" goes by tens, "16,64,256" is itself. The end of
    a range is always one of its values. "[4,8]" and "../data" are single values.

    Raises:
        ValueError: a range that is none.
    """
    if _ONE.search(text):
        return None
    if ".." not in text or _PATH.search(text):
        return [each.strip() for each in text.split(",") if each.strip()] if "," in text else None
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise ValueError(AXIS)
    whole = all(re.fullmatch(r"-?\d+", found[name].strip()) for name in ("low", "high"))
    low, high = (_number(found[name].strip(), AXIS) for name in ("low", "high"))
    times = found["how"] != "+"
    by = _number((found["by"] or "2").strip(), AXIS)
    if high <= low or (times and (low <= 0 or by <= 1)) or (not times and by <= 0):
        raise ValueError(AXIS)
    values = [low]
    while values[-1] < high:
        values.append(min(high, values[-1] * by if times else values[-1] + by))
        if len(values) > MOST_VALUES:
            raise ValueError(AXIS)
    if whole:
        return list(dict.fromkeys(str(round(value)) for value in values))
    return [f"{value:.6g}" for value in values]


def _scalar(value: object) -> str:
    """A parameter's value as its text, whichever form a table or a caller gave it in."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return ",".join(_scalar(item) for item in value)
    raise ValueError(PAIRS)


def written_share(value: float) -> str:
    """A share as a person writes it: 0.03 is "3%"."""
    return f"{value * 100:.6g}%"


def written_seconds(value: float) -> str:
    """A time as a person writes it: 5400 is "1h30m", 0.5 is "500ms"."""
    if value < 1:
        return f"{value * 1000:.6g}ms"
    hours, rest = divmod(value, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [f"{hours:.0f}h" if hours else "", f"{minutes:.0f}m" if minutes else "", f"{rest:.6g}s" if rest else ""]
    return "".join(parts)


ADDRESS = r"^https?://[^/\s]+\S*$"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
CURRENCY = "^[A-Z]{3}$"

_PATTERNS = {
    ADDRESS: "write an address, such as http://hub:8080",
    NAME: "write letters, digits, '.', '_' and '-', a hundred at most",
    CURRENCY: "write three capital letters, such as EUR",
}

_BOUNDS = {
    "greater_than_equal": ("ge", "write {} or more"),
    "greater_than": ("gt", "write more than {:g}"),
    "less_than_equal": ("le", "write {} or less"),
    "less_than": ("lt", "write less than {}"),
}

_KINDS = {"bool": "write on or off", "int": "write a whole number", "float": "write a number"}


def allowed(error: Mapping[str, Any]) -> str:
    """What pydantic would have taken where it found this error, in words."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return words.format(context[name])
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"allowed: {context['expected']}".replace("'", "")
    if kind == "string_pattern_mismatch":
        return _PATTERNS[context["pattern"]]
    for start, words in _KINDS.items():
        if kind.startswith(start):
            return words
    return NAMES if kind == "too_short" else str(error["msg"])
