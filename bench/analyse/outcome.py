"""What a set of results says: every comparison and matrix that the terminal, the JSON and the report show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.analyse.compare import compare
from bench.analyse.pairing import MATRIX, Pairing, all_pairs, pair_as_group
from bench.model.comparison import THRESHOLD, Comparison, Matrix, MatrixCell, Side, Verdict
from bench.model.result import Result

INVERSE: dict[Verdict, Verdict] = {"faster": "slower", "slower": "faster"}
"""The verdict with the two sides exchanged; every other verdict stays the same."""


def _as_is(result: Result) -> Result:
    return result


@dataclass(frozen=True)
class Outcome:
    """Results with everything that is computed from them for the outputs.

    Args:
        results: the results, in the order in which they are shown.
        comparisons: each of a result with its baseline.
        matrices: all results of a group with one another, for groups of three to twelve results.
        alone: results that cannot be compared with any other.
        explicit: whether each pair was named by the user.
        unchecked: of two sets, results that have no partner, so they may have become slower (see `Pairing`).
    """

    results: list[Result]
    comparisons: list[Comparison]
    matrices: list[Matrix]
    alone: list[Result] = field(default_factory=list)
    explicit: bool = False
    unchecked: list[Result] = field(default_factory=list)

    @classmethod
    def of(cls, pairing: Pairing, threshold: float = THRESHOLD, read: Callable[[Result], Result] = _as_is) -> Outcome:
        """Compare the pairs of a pairing, fair or not, and the results of each group that can have a matrix.

        Args:
            pairing: what to compare.
            threshold: smallest relative difference that matters.
            read: reads a result with its samples, if the results of the pairing lack them to save memory.
        """
        comparisons = [compare(read(base), read(other), threshold) for base, other in pairing.pairs]
        if pairing.explicit:
            candidates = [matrix(comparisons)]
        else:
            candidates = [matrix(_fair(list(map(read, members)), threshold)) for members in pairing.groups]
        matrices = [candidate for candidate in candidates if candidate is not None]
        return cls(pairing.results, comparisons, matrices, pairing.alone, pairing.explicit, pairing.unchecked)

    @classmethod
    def of_group(cls, results: Sequence[Result], threshold: float = THRESHOLD) -> Outcome:
        """Compare results as if they were one group, even if they were measured apart. There is no matrix."""
        return cls.of(pair_as_group(results), threshold)


def matrix(comparisons: Sequence[Comparison]) -> Matrix | None:
    """Arrange comparisons as a matrix, each with its inverse.

    Returns:
        None if the comparisons are of fewer than three or more than twelve results.
    """
    sides: dict[str, Side] = {}
    cells: dict[tuple[str, str], MatrixCell] = {}
    for comparison in comparisons:
        base, other, word = comparison.base.id, comparison.other.id, comparison.verdict
        whole = comparison.epoch_verdict if comparison.differs_over_epochs else None
        sides |= {side.id: side for side in (comparison.base, comparison.other) if side.id not in sides}
        if comparison.ratio is not None and not comparison.failed:
            cells[other, base] = MatrixCell(
                ratio=comparison.ratio, unit=comparison.unit, verdict=word, epoch_verdict=whole
            )
            cells[base, other] = MatrixCell(
                ratio=comparison.ratio.inverse,
                unit=comparison.unit,
                verdict=INVERSE.get(word, word),
                epoch_verdict=whole and INVERSE.get(whole, whole),
            )
    if len(sides) not in MATRIX:
        return None
    return Matrix(results=list(sides.values()), rows=[[cells.get((row, column)) for column in sides] for row in sides])


def _fair(members: Sequence[Result], threshold: float) -> list[Comparison]:
    comparisons = (compare(base, other, threshold) for base, other in all_pairs(members))
    return [comparison for comparison in comparisons if not comparison.unfair]
