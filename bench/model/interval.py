"""Figures: an estimate with its confidence interval, and a number that JSON may not be able to hold."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from bench.model.record import Record

Number = Annotated[
    float,
    BeforeValidator(lambda value: float("nan") if value is None else value),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "null"}]}),
]
"""A measured value that may be NaN or infinite. JSON holds these as null, which is read as NaN."""


WIDE = 0.5
"""An interval is wide if half of its width is more than this share of its value. It is then shown by its bounds or by
the values that it comes from."""

LARGEST_FACTOR = 10.0
"""Largest factor within which a figure counts as known. An interval that reaches further is not shown."""


class Interval(Record):
    """An estimate with its two-sided confidence interval."""

    value: float = Field(description="the estimate")
    low: float | None = Field(None, description="lower bound; null if there is one unit only")
    high: float | None = Field(None, description="upper bound; null if there is one unit only")
    confidence: float = Field(0.95, description="level of the interval, from 0 to 1")
    n: int = Field(1, description="number of units (processes or trials) behind it")
    least: float | None = Field(None, description="smallest value, if there are two or three")
    most: float | None = Field(None, description="largest value, if there are two or three")

    @property
    def relative_error(self) -> float | None:
        """Half of the interval's width divided by its value. None if a bound is missing or the value is 0."""
        if self.low is None or self.high is None or not self.value:
            return None
        return (self.high - self.low) / 2 / abs(self.value)

    @property
    def is_wide(self) -> bool:
        """Whether half of its width is more than `WIDE` times its value."""
        error = self.relative_error
        return error is not None and error > WIDE

    @property
    def may_be_zero(self) -> bool:
        """Whether the interval contains 0, or has no bounds."""
        return self.low is None or self.high is None or self.low <= 0 <= self.high

    def is_apart(self, other: Interval) -> bool:
        """Return whether both intervals have bounds and do not overlap."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return False
        return self.high < other.low or other.high < self.low

    @property
    def inverse(self) -> Interval:
        """The inverse of a ratio, with its bounds. A bound of 0 becomes infinite. The value must not be 0."""
        low, high = (None if v is None else 1 / v if v else math.inf for v in (self.high, self.low))
        least, most = (None if v is None else 1 / v if v else math.inf for v in (self.most, self.least))
        return self.model_copy(update={"value": 1 / self.value, "low": low, "high": high, "least": least, "most": most})


def uncertainty(error: float) -> str:
    """Return how well a positive figure is known: "known to ±3.1%", "known within a factor of 2.6", or "hardly known".

    Args:
        error: half of the width of its interval divided by its value.
    """
    if error <= WIDE:
        return f"known to ±{error:.1%}" if error < 0.0995 else f"known to ±{error:.0%}"
    # An interval that is symmetric on a logarithmic scale reaches from value / factor to value * factor, so half of its
    # width divided by its value is error = (factor - 1 / factor) / 2.
    factor = error + math.hypot(1.0, error)
    return f"known within a factor of {factor:.2g}" if factor < LARGEST_FACTOR else "hardly known"
