"""Numbers for readers: three significant digits, SI prefixes, minutes and hours, and errors beside values."""

from __future__ import annotations

import math
from datetime import datetime

from bench.model.interval import LARGEST_FACTOR, Interval
from bench.model.words import count as count

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def quantity(value: float, unit: str) -> str:
    """Return a value with an SI prefix: 129e9 FLOP/s is "129 GFLOP/s", 1740 examples/s is "1.74 k examples/s"."""
    if not math.isfinite(value):
        return f"{value} {unit}"
    scale, prefix = _scale(value, _PREFIXES)
    glue = " " if prefix and unit[:1].islower() else ""  # a space before a unit that is a word
    return f"{_digits(value / scale)} {prefix}{glue}{unit}".rstrip()


def time(value: float, error: float | None = None) -> str:
    """Return seconds as "18.4 ms", "12.3 s", "8 min 5 s" or "2 h 5 min", followed by "± …" if there is an error."""
    if not math.isfinite(value):
        return f"{value} s"
    if error is not None and not math.isfinite(error):
        error = None
    if abs(value) >= 60:
        return _minutes(value) + ("" if error is None else f" ± {whole_seconds(error)}")
    scale, prefix = _scale(value, _SMALL)
    if error is None:
        return f"{_digits(value / scale)} {prefix}s"
    decimals = _decimals(error / scale)
    return f"{value / scale:.{decimals}f} ± {error / scale:.{decimals}f} {prefix}s"


def rounded(value: float, digits: int = 3) -> str:
    """Return a number with at most `digits` significant digits and no exponent: "0.689", "1.5" or "15,400"."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    text = f"{round(value, decimals):,.{max(0, decimals)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def timestamp(when: datetime, seconds: bool = False) -> str:
    """Return a date and time to the minute, or to the second, such as "2026-01-02 03:04"."""
    return f"{when:%Y-%m-%d %H:%M:%S}" if seconds else f"{when:%Y-%m-%d %H:%M}"


def period(first: datetime, last: datetime, word: str = "to") -> str:
    """Return two dates and times to the minute, joined by a word. If both texts are equal, return only one."""
    return f" {word} ".join(dict.fromkeys((timestamp(first), timestamp(last))))


def whole_seconds(value: float) -> str:
    """Return a time rounded up to whole seconds, such as "45 s" or "1 min 3 s"."""
    return _minutes(math.ceil(value)) if value > 59 else f"{max(0, math.ceil(value))} s"


def interval(time_interval: Interval) -> str:
    """Return a time with the half-width of its interval: "18.40 ± 0.30 ms". Without an interval, return only the time.

    A wide interval is shown by its bounds. If it comes from two or three values, it is shown by the smallest and the
    largest: "2 runs: 0.61–0.74 s".
    """
    value, low, high = time_interval.value, time_interval.low, time_interval.high
    if low is None or high is None or not math.isfinite(value):
        return time(value)
    if not time_interval.is_wide:
        return time(value, (high - low) / 2)
    if time_interval.least is not None and time_interval.most is not None:
        return f"{count(time_interval.n, 'run')}: {_span(time_interval.least, time_interval.most)}"
    return f"{time(value)} [{time(low)}, {time(high)}]"


def _span(least: float, most: float) -> str:
    """Return two times in the same unit, such as "0.61–0.74 s"."""
    if most >= 60 or not math.isfinite(most):
        return f"{time(least)} – {time(most)}"
    scale, prefix = _scale(most, _SMALL)
    return f"{_digits(least / scale)}–{_digits(most / scale)} {prefix}s"


def rate(value: Interval, unit: str) -> str:
    """Return a rate with its interval if it has one: "783 examples/s [771, 795]"."""
    text = quantity(value.value, unit)
    if value.low is None or value.high is None:
        return text
    if value.high > LARGEST_FACTOR * value.value:
        return f"{text} [too wide to tell]"
    return f"{text} [{quantity(value.low, '')}, {quantity(value.high, '')}]"


def money(amount: float) -> str:
    """Return an amount of money: with cents from 1 upwards, with three digits below."""
    return f"{amount:,.2f}" if amount >= 1 else rounded(amount)


def percent(share: float) -> str:
    """Return a share in percent: with two digits below 10%, in whole percents above."""
    value = share * 100
    return f"{value:.0f}%" if abs(value) >= 9.95 else f"{rounded(value, 2)}%"


def share(value: Interval) -> str:
    """Return a share in percent with its interval if that has bounds: "83% [82, 85]"."""
    if value.low is None or value.high is None or value.high > LARGEST_FACTOR * value.value:
        return percent(value.value)
    return f"{percent(value.value)} [{100 * value.low:.0f}, {100 * value.high:.0f}]"


def signed_time(value: float) -> str:
    """Return a difference of times with its sign: "+1.20 s" or "-35.0 ms"."""
    return ("-" if value < 0 else "+") + time(abs(value))


def signed_percent(share: float) -> str:
    """Return a difference in percent, with its sign."""
    return ("+" if share >= 0 else "") + percent(share)


def size(bytes_: int) -> str:
    """Return bytes in powers of 1024: "4 B", "256 KiB", "1.5 MiB"."""
    value, unit = float(bytes_), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{rounded(value, 4)} {unit}"


def factor(ratio: Interval) -> str:
    """Return a factor with its interval if that has bounds: "12.3 [11.8, 12.9]"."""
    return times(ratio).replace(" times", "")


def times(ratio: Interval) -> str:
    """Return a factor with its interval if that has bounds: "12.3 times [11.8, 12.9]"."""
    if ratio.low is None or ratio.high is None:
        return f"{_digits(ratio.value)} times"
    if ratio.high > LARGEST_FACTOR * ratio.value:
        return f"{_digits(ratio.value)} times [too wide to tell]"
    width = max((ratio.high - ratio.low) / 2, 1e-4 * ratio.value)
    # Down to the first digit of the interval, but at least two digits of the value.
    digits = min(4, max(0, -math.floor(math.log10(width)), 1 - math.floor(math.log10(ratio.value))))
    return f"{ratio.value:.{digits}f} times [{ratio.low:.{digits}f}, {ratio.high:.{digits}f}]"


def _scale(value: float, table: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    """Return the largest entry that keeps the value at 1 or more after rounding to three digits, else the smallest."""
    if value == 0:
        return 1.0, ""
    return next((entry for entry in table if abs(value) >= 0.9995 * entry[0]), table[-1])


def _digits(value: float) -> str:
    """Return three significant digits with trailing zeros, without an exponent."""
    if value == 0:
        return "0"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value) * 1.0005)))}f}"


def _decimals(error: float) -> int:
    """Return how many decimals show the first two digits of an error, at most 3."""
    return min(3, max(0, 1 - math.floor(math.log10(error)))) if error > 0 else 3


def _minutes(value: float) -> str:
    sign = "-" if value < 0 else ""
    hours, rest = divmod(round(abs(value)), 3600)
    minutes, seconds = divmod(rest, 60)
    return sign + (f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s")
