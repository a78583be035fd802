"""The results of one chapter, with their labels and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.model.comparison import Comparison
from bench.model.result import Result
from bench.render.labels import short_labels


@dataclass(frozen=True)
class ResultSet:
    """Results that are shown together.

    Args:
        members: the results, in the order in which they are shown.
        labels: a short label for each.
        comparisons: comparisons of members with their baselines.
    """

    members: Sequence[Result]
    labels: Sequence[str]
    comparisons: Sequence[Comparison] = ()

    @classmethod
    def of(cls, results: Sequence[Result], comparisons: Sequence[Comparison] = ()) -> ResultSet:
        """Label results."""
        return cls(results, short_labels(results), comparisons)

    @property
    def labelled(self) -> list[tuple[str, Result]]:
        """Label and result of each member."""
        return list(zip(self.labels, self.members, strict=True))

    @property
    def label_of(self) -> dict[str, str]:
        """Label by the result's id."""
        return {result.id: label for label, result in self.labelled}
