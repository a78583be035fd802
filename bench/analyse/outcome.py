"""What a set of results says: every comparison and matrix that the terminal, the JSON and the report show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.analyse import stats
from bench.analyse.compare import compare
from bench.analyse.pairing import MATRIX, Pairing, all_pairs, grouped, matrix_groups, within_group
from bench.model.comparison import THRESHOLD, Cell, Comparison, Matrix, Side, Verdict
from bench.model.result import Result

INVERSE: dict[Verdict, Verdict] = {"faster": "slower", "slower": "faster"}
"""The verdict with the two sides exchanged; every other verdict stays the same."""


@dataclass(frozen=True)
class Outcome:
    """Results with everything that is computed from them for the outputs.

    Args:
        results: the results that were compared.
        comparisons: each of a result with its baseline.
        matrices: all results of a group with one another, for groups of three to twelve results.
    """

    results: list[Result]
    comparisons: list[Comparison]
    matrices: list[Matrix]

    @classmethod
    def of(cls, results: Sequence[Result], threshold: float = THRESHOLD) -> Outcome:
        """Compare the results of each group.

        Args:
            results: of any number of groups.
            threshold: smallest relative difference that matters.
        """
        groups = matrix_groups(grouped(results))
        measured = ([result for result in members if result.status != "failed"] for members in groups)
        return cls(list(results), comparisons_of(results, threshold), matrices_of(measured, threshold))

    @classmethod
    def of_pairing(cls, pairing: Pairing, read: Callable[[Result], Result], threshold: float = THRESHOLD) -> Outcome:
        """Compare the pairs of a pairing, fair or not, and the groups that it has for matrices.

        Args:
            pairing: results whose samples may be missing, so that many fit in memory.
            read: returns the same result with its samples.
            threshold: smallest relative difference that matters.
        """
        comparisons = [compare(read(base), read(other), threshold) for base, other in pairing.pairs]
        if pairing.explicit:
            matrix = matrix_of(comparisons)
            matrices = [] if matrix is None else [matrix]
        else:
            matrices = matrices_of((list(map(read, members)) for members in pairing.groups), threshold)
        results = {result.id: result for pair in pairing.pairs for result in pair}
        return cls(list(results.values()), comparisons, matrices)


def comparisons_of(results: Sequence[Result], threshold: float = THRESHOLD) -> list[Comparison]:
    """Compare each result with its baseline, group by group."""
    return [comparison for members in grouped(results) for comparison in comparisons_within(members, threshold)]


def comparisons_within(members: Sequence[Result], threshold: float = THRESHOLD) -> list[Comparison]:
    """Compare each result except the first with its baseline (`within_group`), as if all were of one group."""
    return [compare(base, other, threshold) for base, other in within_group(members)]


def matrices_of(groups: Iterable[Sequence[Result]], threshold: float = THRESHOLD) -> list[Matrix]:
    """Compare all results of each group with one another; return the matrices of the groups that can have one."""
    matrices = (matrix_of(_fair(members, threshold)) for members in groups)
    return [matrix for matrix in matrices if matrix is not None]


def matrix_of(comparisons: Sequence[Comparison]) -> Matrix | None:
    """Arrange comparisons as a matrix, each with its inverse.

    Returns:
        None if the comparisons are of fewer than three or more than twelve results.
    """
    sides: dict[str, Side] = {}
    cells: dict[tuple[str, str], Cell] = {}
    for comparison in comparisons:
        base, other, word = comparison.base.id, comparison.other.id, comparison.verdict
        sides |= {side.id: side for side in (comparison.base, comparison.other) if side.id not in sides}
        if comparison.ratio is not None:
            cells[other, base] = Cell(ratio=comparison.ratio, unit=comparison.unit, verdict=word)
            inverse = stats.inverse(comparison.ratio)
            cells[base, other] = Cell(ratio=inverse, unit=comparison.unit, verdict=INVERSE.get(word, word))
    if len(sides) not in MATRIX:
        return None
    return Matrix(results=list(sides.values()), rows=[[cells.get((row, column)) for column in sides] for row in sides])


def _fair(members: Sequence[Result], threshold: float) -> list[Comparison]:
    comparisons = (compare(base, other, threshold) for base, other in all_pairs(members))
    return [comparison for comparison in comparisons if not comparison.unfair]
