"""The design of a session: what is compared, how many trials there are, and what is diagnosed.

Each study has its own: a run, the ladder and the what-ifs of an explanation, a point of a sweep, a scaling study, the
peaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from bench.analyse import stats
from bench.analyse.pairing import pairs_within_group
from bench.model.facts import Facts
from bench.model.result import Purpose, Result
from bench.model.spec import Spec
from bench.worker.protocol import ClusterRun

PILOT = 5
"""Trials of a pilot. Their variance shows how many trials the target needs."""

BASELINE_PURPOSES = ("level", "what-if", "scale")
"""Purposes of results that say something only beside the first one."""

Pairs = Callable[[Sequence[Result]], Iterable[tuple[Result, Result]]]
"""The comparisons within a group: pairs of baseline and other."""


def with_first(results: Sequence[Result]) -> Iterable[tuple[Result, Result]]:
    """Pair each result with the first, as what-ifs are paired with the unchanged program."""
    return ((results[0], other) for other in results[1:])


def neighbours(results: Sequence[Result]) -> Iterable[tuple[Result, Result]]:
    """Pair each result with the one before it, as on a ladder."""
    return pairwise(results)


@dataclass(frozen=True)
class Design:
    """How a session measures its group.

    Attributes:
        purpose: What the results are for.
        parent: Id of the sweep, explanation or scaling study that the results belong to. None if there is none.
        pairs: The comparisons that decide when to stop.
        pilot: Minimum number of trials, unless a comparison is clear earlier.
        clear_trials: Minimum number of trials of a clear comparison. None for two, or one if trials are long.
        confidence: Level of the intervals that will be published.
        separate_starts: Number of trials whose workers start one after another, so that each start is measured
            undisturbed. Later trials start their workers at once, which takes less time.
        cold_starts: Workers that are fresh even if others are forked, because their cold start is reported:
            those that start alone, or none.
        fit_pilot: Whether the rounds of a trial are limited so that the whole pilot fits into the time limit. If not,
            they take at most half as long as the start of the workers, apart from the minimum of rounds.
        default_max_time: Time limit in seconds if the user set none. None keeps the setting's own default.
        follow_projection: Whether the time limit of a single spec is a share of its projected training, if the user set
            none.
        inspect: Whether the first trial looks into the program and times the stages of its input pipeline.
        full: Whether `--full` applies.
        over_epochs: Whether a comparison also ends once one side is clearly faster over whole epochs, even if it is not
            known yet whether the steps differ.
        drop_decided: Whether the session stops measuring a result once its comparison with the first one is decided, so
            that trials are left for the others.
        after_recognition: Called with the result of each script and what was seen in its steps while they were found.
        after_trial: Called with the results after each trial.
        enough: Whether the results are known well enough to stop, whatever the comparisons say. None if only the
            comparisons decide.
        diagnosed: An earlier result of the baseline's spec, whose worker was diagnosed. The baseline's workers are then
            only timed, and the others measure no latencies and no waits between epochs.
        profiled: The results that `--profile` traces.
        deadline: Monotonic seconds by which the last trial should end. None if the study has no time limit of its own.
        last_moment: Monotonic seconds at which workers that still run are ended. None if they are never ended.
        cluster: Returns how the workers of a spec meet. None if no spec has workers.
    """

    purpose: Purpose = "run"
    parent: str | None = None
    pairs: Pairs = pairs_within_group
    pilot: int = PILOT
    clear_trials: int | None = None
    confidence: float = stats.CONFIDENCE
    separate_starts: int = 1
    cold_starts: Literal["alone", "none"] = "alone"
    fit_pilot: bool = False
    default_max_time: float | None = None
    follow_projection: bool = False
    inspect: bool = False
    full: bool = True
    over_epochs: bool = False
    drop_decided: bool = False
    after_recognition: Callable[[Result, Facts], None] | None = None
    after_trial: Callable[[Sequence[Result]], None] | None = None
    enough: Callable[[Sequence[Result]], bool] | None = None
    diagnosed: Result | None = None
    profiled: Literal["all", "first", "none"] = "all"
    deadline: float | None = None
    last_moment: float | None = None
    cluster: Callable[[Spec], ClusterRun] | None = None

    @property
    def ends_the_study(self) -> bool:
        """Whether the session may use all the time that the study has left, because no other session follows."""
        return self.purpose in ("run", "scale")

    @property
    def needs_baseline(self) -> bool:
        """Whether the results are worth nothing without the first one."""
        return self.purpose in BASELINE_PURPOSES
