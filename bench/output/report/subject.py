"""What a chapter is about: results, what they are called, and how they compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.analyse.compare import Comparison, compare
from bench.output.lines import plain
from bench.output.report.names import names
from bench.result import Result


@dataclass(frozen=True)
class Subject:
    """Results of one chapter.

    Args:
        results: the first is the one that the others are compared with.
        names: a short name for each.
        comparisons: each of the others as against the first.
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
        compared = [compare(results[0], each, threshold) for each in results[1:]]
        return cls(results, [plain(name) for name in names(results)], compared)

    @property
    def named(self) -> list[tuple[str, Result]]:
        """Name and result."""
        return list(zip(self.names, self.results, strict=True))

    @property
    def name_of(self) -> dict[str, str]:
        """A result's id: its name."""
        return {each.id: name for name, each in self.named}
