"""Numbers as a person reads them: three digits, SI prefixes, minutes for what lasts, and errors beside values."""

from __future__ import annotations

import math

from bench.model.result import Interval

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def quantity(value: float, unit: str) -> str:
    """A value with an SI prefix: 129e9 FLOP/s is "129 GFLOP/s", 1740 examples/s is "1.74 k examples/s"."""
    if not math.isfinite(value):
        return f"{value} {unit}"
    scale, prefix = _scale(value, _PREFIXES)
    # A unit that is a word keeps its prefix apart.
    glue = " " if prefix and unit[:1].islower() else ""
    return f"{_digits(value / scale)} {prefix}{glue}{unit}".rstrip()


def time(value: float, error: float | None = None) -> str:
    """Seconds as "18.4 ms", "12.3 s", "8 min 5 s" or "2 h 5 min", with "± …" in the same unit where it is known."""
    if not math.isfinite(value):
        return f"{value} s"
    if error is not None and not math.isfinite(error):
        error = None
    if abs(value) >= 60:
        return _minutes(value) + ("" if error is None else f" ± {whole(error)}")
    scale, prefix = _scale(value, _SMALL)
    if error is None:
        return f"{_digits(value / scale)} {prefix}s"
    decimals = _decimals(error / scale)
    return f"{value / scale:.{decimals}f} ± {error / scale:.{decimals}f} {prefix}s"


def several(count: int, thing: str) -> str:
    """So many things, such as "1 result" and "2,000 results"."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def whole(value: float) -> str:
    """Seconds to the next whole one, as for time that is left: "45 s", "1 min 3 s"."""
    return _minutes(math.ceil(value)) if value > 59 else f"{max(0, math.ceil(value))} s"


def interval(found: Interval) -> str:
    """A time with half its confidence interval, or with nothing where one process is all there is."""
    if found.low is None or found.high is None:
        return time(found.value)
    return time(found.value, (found.high - found.low) / 2)


def money(amount: float) -> str:
    """An amount of whichever currency: cents from one on, three digits below."""
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.3g}"


def percent(share: float) -> str:
    """A share in percent: two digits below 10%, and whole percents above."""
    value = share * 100
    return f"{value:.0f}%" if abs(value) >= 9.95 else f"{value:.2g}%"


def signed_percent(share: float) -> str:
    """A difference in percent, with its sign."""
    return ("+" if share >= 0 else "") + percent(share)


def size(count: int) -> str:
    """Bytes, in powers of 1024 as transfers are sized: "4 B", "256 KiB", "1.5 MiB"."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.4g} {unit}"


WIDE = 1000.0
"""An interval that ends so many times its value away bounds nothing: two trials that lie far apart make one."""


def factor(ratio: Interval) -> str:
    """A factor with its interval, where it has one: "12.3 [11.8, 12.9]"."""
    return times(ratio).replace(" times", "")


def times(ratio: Interval) -> str:
    """A factor with its interval, where that has bounds: "12.3 times [11.8, 12.9]"."""
    if ratio.low is None or ratio.high is None:
        return f"{_digits(ratio.value)} times"
    if ratio.high > WIDE * ratio.value:
        return f"{_digits(ratio.value)} times [too wide to tell]"
    width = max((ratio.high - ratio.low) / 2, 1e-4 * ratio.value)
    # To the first digit of the interval, but never fewer than two of the value, however wide the interval is.
    digits = min(4, max(0, -math.floor(math.log10(width)), 1 - math.floor(math.log10(ratio.value))))
    return f"{ratio.value:.{digits}f} times [{ratio.low:.{digits}f}, {ratio.high:.{digits}f}]"


def _scale(value: float, table: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    """The largest prefix that leaves at least 1 once rounded to three digits; the smallest if none does."""
    if value == 0:
        return 1.0, ""
    return next((each for each in table if abs(value) >= 0.9995 * each[0]), table[-1])


def _digits(value: float) -> str:
    """Three significant digits, trailing zeros kept, never an exponent."""
    if value == 0:
        return "0"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value) * 1.0005)))}f}"


def _decimals(error: float) -> int:
    """Decimals that show an error's first two digits, but never more than 3."""
    return min(3, max(0, 1 - math.floor(math.log10(error)))) if error > 0 else 3


def _minutes(value: float) -> str:
    sign, whole = ("-" if value < 0 else ""), round(abs(value))
    hours, rest = divmod(whole, 3600)
    minutes, seconds = divmod(rest, 60)
    return sign + (f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s")
