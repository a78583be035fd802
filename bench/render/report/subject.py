"""What a chapter is about: results, what they are called, and how they compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.analyse.outcome import comparisons_within
from bench.model.comparison import Comparison
from bench.model.result import Result
from bench.render.report.names import names
from bench.render.text import plain


@dataclass(frozen=True)
class Subject:
    """Results of one chapter.

    Args:
        results: in the order in which they are shown.
        names: a short name for each.
        comparisons: of each but the first, as against the one before it that is nearest (`within_group`).
    """

    results: Sequence[Result]
    names: Sequence[str]
    comparisons: Sequence[Comparison]

    @classmethod
    def of(cls, results: Sequence[Result], threshold: float) -> Subject:
        """Names and compares them.

        Args:
            results: at least one.
            threshold: relative difference that matters.
        """
        return cls(results, [plain(name) for name in names(results)], comparisons_within(results, threshold))

    @property
    def named(self) -> list[tuple[str, Result]]:
        """Name and result."""
        return list(zip(self.names, self.results, strict=True))

    @property
    def name_of(self) -> dict[str, str]:
        """A result's id: its name."""
        return {each.id: name for name, each in self.named}
