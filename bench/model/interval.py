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
"""A measured value that may be no number (NaN, infinite), which JSON can only hold as null."""


class Interval(Record):
    """An estimate with its two-sided confidence interval."""

    value: float = Field(description="the estimate")
    low: float | None = Field(None, description="lower bound; null if there is one unit only")
    high: float | None = Field(None, description="upper bound; null if there is one unit only")
    confidence: float = Field(0.95, description="level of the interval, from 0 to 1")
    n: int = Field(1, description="number of units (processes or trials) behind it")

    @property
    def relative_error(self) -> float | None:
        """Half of the interval's width divided by its value. None if a bound is missing or the value is 0."""
        if self.low is None or self.high is None or not self.value:
            return None
        return (self.high - self.low) / 2 / abs(self.value)

    @property
    def may_be_zero(self) -> bool:
        """Whether the interval contains 0, or has no bounds."""
        return self.low is None or self.high is None or self.low <= 0 <= self.high

    @property
    def inverse(self) -> Interval:
        """1 / the estimate of a ratio, with its bounds. A bound of 0 becomes infinite."""
        low, high = (None if v is None else 1 / v if v else math.inf for v in (self.high, self.low))
        return self.model_copy(update={"value": 1 / self.value, "low": low, "high": high})
