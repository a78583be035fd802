"""The analysis of a set of results for the report and the hub: a comparison, explanation, sweep or scaling study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.analyse.outcome import Outcome
from bench.analyse.scaling import scaling_of
from bench.analyse.scaling_levels import is_size
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
        results: the results of its levels. Empty if they were removed.
        threshold: smallest relative difference that matters, as a share.
    """

    explanation: Explanation
    results: Sequence[Result]
    threshold: float


@dataclass(frozen=True)
class Swept:
    """A sweep with its results.

    Args:
        sweep: the curves of the sweep.
        results: the results of all its points, at least one.
        first_points: the first result of each curve. All results of a curve ran in the same place.
    """

    sweep: Sweep
    results: Sequence[Result]
    first_points: Sequence[Result]

    @classmethod
    def of(cls, results: Sequence[Result], threshold: float) -> Swept:
        """Return the sweep whose points are these results."""
        return cls(sweep_of(results, threshold), results, first_points(results))


@dataclass(frozen=True)
class Scaled:
    """A scaling study with its results.

    Args:
        study: the scaling study.
        results: the results of all its levels. At least one is a size: the program with a number of workers.
    """

    study: ScalingStudy
    results: Sequence[Result]

    @classmethod
    def of(cls, results: Sequence[Result], threshold: float) -> Scaled:
        """Return the scaling study whose levels are these results. At least one of them is a size."""
        return cls(scaling_of(results, threshold), results)

    @property
    def sizes(self) -> list[Result]:
        """The results of the sizes, without the levels that only divide a step."""
        return [result for result in self.results if is_size(result.spec)]


Analysis = Outcome | Explained | Swept | Scaled


def analyse(
    results: Sequence[Result], threshold: float, explanation: Explanation | None = None, is_sweep: bool = False
) -> Analysis:
    """Return the analysis of a set of results.

    Results with the same parent are a scaling study if at least one of them is a size.

    Args:
        results: at least one.
        threshold: smallest relative difference that matters, as a share.
        explanation: the explanation whose levels are the results. None if there is none.
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
