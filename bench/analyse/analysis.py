"""What a set of results says, as the report and the hub show it: a comparison, explanation, sweep or scaling study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.analyse.outcome import Outcome
from bench.analyse.scaling import is_size, scaling_of
from bench.analyse.sweep import first_points, sweep_of
from bench.model.explanation import Explanation
from bench.model.result import Result
from bench.model.scaling import ScalingStudy
from bench.model.sweep import Sweep


@dataclass(frozen=True)
class Explained:
    """An explanation with the results of its levels.

    Args:
        explanation: the explanation.
        results: of its levels; none if they have been removed.
        threshold: smallest relative difference that matters, as a share.
    """

    explanation: Explanation
    results: Sequence[Result]
    threshold: float


@dataclass(frozen=True)
class Swept:
    """A sweep with its results.

    Args:
        sweep: its curves.
        results: of all points, at least one.
        first_points: the first result of each curve. All results of a curve ran in the same place.
    """

    sweep: Sweep
    results: Sequence[Result]
    first_points: Sequence[Result]

    @classmethod
    def of(cls, results: Sequence[Result], threshold: float) -> Swept:
        """Return the sweep that these results are the points of."""
        return cls(sweep_of(results, threshold), results, first_points(results))


@dataclass(frozen=True)
class Scaled:
    """A scaling study with its results.

    Args:
        study: its sizes.
        results: of all its levels, at least one of a size.
    """

    study: ScalingStudy
    results: Sequence[Result]

    @classmethod
    def of(cls, results: Sequence[Result], threshold: float) -> Scaled:
        """Return the scaling study that these results are the levels of. At least one is of a size."""
        return cls(scaling_of(results, threshold), results)

    @property
    def sizes(self) -> list[Result]:
        """The results of the sizes."""
        return [result for result in self.results if is_size(result.spec)]


Analysis = Outcome | Explained | Swept | Scaled


def analyse(
    results: Sequence[Result], threshold: float, explanation: Explanation | None = None, is_sweep: bool = False
) -> Analysis:
    """Return what a set of results says. Results with the same parent, some of which are sizes, are a scaling study.

    Args:
        results: at least one.
        threshold: smallest relative difference that matters, as a share.
        explanation: the explanation that the results are the levels of. None if there is none.
        is_sweep: whether the results are the points of a sweep.
    """
    if is_sweep:
        return Swept.of(results, threshold)
    if explanation is not None:
        return Explained(explanation, results, threshold)
    parents = {result.parent for result in results}
    if len(parents) == 1 and None not in parents and any(is_size(result.spec) for result in results):
        return Scaled.of(results, threshold)
    return Outcome.of_group(results, threshold)
