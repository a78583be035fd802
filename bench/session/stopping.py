"""When to stop: when the target is reached, or a limit.

A single spec stops when its typical step is known to `--target-error`. A comparison stops when the verdict of each pair
is settled. The session looks at the intervals after each trial. If it stopped at the first one that decides, it would
be wrong more often than the level of that interval says. So a look requires a higher level (`LOOK`) than the published
intervals have, and before the pilot ends a still higher one (`CLEAR`).

Two trainings whose steps take the same time may differ between their epochs. If it is clear that one is faster over
whole epochs, a run need not show that their steps are the same, which takes several times as many trials. This is a
second chance to stop at a wrong verdict, so it requires the level `CLEAR` at every look.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bench.analyse import stats
from bench.analyse.compare import epoch_factor
from bench.analyse.epoch_ratio import epoch_contrast
from bench.analyse.explain.gains import gain_of
from bench.analyse.samples import process_totals
from bench.analyse.verdict import units_for_verdict, verdict
from bench.config.settings import RunSettings
from bench.model.explanation import USEFUL_GAIN
from bench.model.result import Projection, Result, StopReason
from bench.session.design import Pairs

PILOT_SECONDS = 90.0
"""Seconds in which the pilot should end, however many trials follow."""

IN_TIME = 0.95
"""Share of the time limit that trials are planned for. Some trials take longer than the ones before."""

COMPARING_SECONDS = 300.0
"""Default time limit of a comparison. To show that two specs are the same takes several times as many trials as to show
that they differ."""

PROJECTION_SHARE = 0.2
"""Default time limit of a single spec, as a share of its projected training."""

SHORTEST_SECONDS = 45.0
"""Lower bound of that limit. The step time of a short training should be known too."""

LOOK = 0.99
"""Confidence of the interval that must decide before a comparison stops."""

CLEAR = 0.999
"""Confidence at which a comparison may stop before the pilot ends, for example if one side is twice as fast, and at
which the ratio over whole epochs may settle it."""

CLEAR_TRIALS = 2
"""Minimum number of trials of a clear comparison, if they fit into `CLEAR_SECONDS`. If not, one is enough."""

CLEAR_SECONDS = 35.0
"""Seconds of the session in which a clear comparison should end. With the start of the command, these are 40."""


@dataclass(frozen=True)
class Accuracy:
    """How accurate the results are.

    Attributes:
        error: The worst relative half-width of a 95% interval.
        needed: Trials that the target needs, judged by the variance so far. None if no number is enough.
        settled: Whether the target is reached, so that the session may stop.
        decided: Whether the published intervals decide. Their level is lower, because they are looked at once.
        clear: Whether a comparison is so clear that it may stop before the pilot ends.
        by_epochs: Whether at least one verdict is settled only over whole epochs. That of its steps is undecided.
    """

    error: float
    needed: int | None
    settled: bool
    decided: bool = False
    clear: bool = False
    by_epochs: bool = False


def accuracy(
    results: Sequence[Result],
    target: float,
    pairs: Pairs,
    confidence: float = stats.CONFIDENCE,
    over_epochs: bool = False,
) -> Accuracy | None:
    """Return the accuracy after the trials so far. None if it is not known, as that of one process alone.

    Args:
        results: The open results of a group.
        target: Relative error of one spec's step, or the threshold if several are compared.
        pairs: Which results are compared.
        confidence: Level of the intervals that will be published.
        over_epochs: Whether the ratio over whole epochs may settle a comparison.
    """
    if len(results) > 1:
        compared = list(pairs(results))
        over = [_over_epochs(*pair) if over_epochs else None for pair in compared]
        return accuracy_of_contrasts([gain_of(*pair)[1] for pair in compared], target, confidence, over)
    columns = [process_totals(result) for result in results]
    if not columns or min(map(len, columns)) < 2:
        return None
    error = max(stats.interval(values).relative_error or 0.0 for values in columns)
    reached = error <= target
    trials = max(stats.units_for_target(values, target) for values in columns)
    return Accuracy(error, trials, settled=reached, decided=reached)


def _over_epochs(base: Result, other: Result) -> stats.Contrast | None:
    """Return the logarithm of the ratio over whole epochs, per unit of the comparison. None if it is not known."""
    contrast = epoch_contrast(base, other)
    return replace(contrast, mean=contrast.mean + math.log(epoch_factor(base, other))) if contrast else None


def accuracy_of_contrasts(
    contrasts: Sequence[stats.Contrast | None],
    threshold: float,
    confidence: float = stats.CONFIDENCE,
    over_epochs: Sequence[stats.Contrast | None] = (),
) -> Accuracy | None:
    """Return how accurate comparisons are.

    Args:
        contrasts: Logarithms of ratios. None where there is no step to compare.
        threshold: Smallest relative difference that matters.
        confidence: Level of the intervals that will be published.
        over_epochs: The same over whole epochs. A comparison is settled if one of these is clear. None where it is not
            known. Default: none is.
    """
    measured = [contrast for contrast in contrasts if contrast is not None]  # a workload of probes has no step
    if not measured or not all(contrast.is_known for contrast in measured):
        return None
    differ = [_differs(whole, max(CLEAR, confidence), threshold) for whole in over_epochs or [None] * len(contrasts)]
    by_steps = [c for c, differs in zip(contrasts, differ, strict=True) if c is not None and not differs]
    by_epochs = [c for c, differs in zip(contrasts, differ, strict=True) if c is not None and differs]
    looks = [contrast.ratio(max(LOOK, confidence)) for contrast in by_steps]
    undecided = [
        (look, contrast)
        for look, contrast in zip(looks, by_steps, strict=True)
        if verdict(look, threshold) == "undecided"
    ]
    trials = [units_for_verdict(look, threshold, contrast.prior_freedom) for look, contrast in undecided]
    return Accuracy(
        error=max(contrast.ratio().relative_error or 0.0 for contrast in measured),
        needed=None if None in trials else max((n for n in trials if n), default=min(c.n for c in measured)),
        settled=not undecided,
        decided=_decide(by_steps, confidence, threshold),
        clear=_decide(by_steps, max(CLEAR, confidence), threshold),
        by_epochs=not _decide(by_epochs, confidence, threshold),
    )


def _differs(contrast: stats.Contrast | None, confidence: float, threshold: float) -> bool:
    return contrast is not None and verdict(contrast.ratio(confidence), threshold) in ("faster", "slower")


def _decide(contrasts: Iterable[stats.Contrast], confidence: float, threshold: float) -> bool:
    return all(verdict(contrast.ratio(confidence), threshold) != "undecided" for contrast in contrasts)


def is_decided(base: Result, other: Result, settings: RunSettings, pilot: int, confidence: float) -> bool:
    """Return whether a comparison needs no more trials, although others of its group may.

    It needs none once its verdict is clear, or once it is clear that the other saves less than `USEFUL_GAIN`.

    Args:
        base: The baseline.
        other: What is compared with it.
        settings: The threshold.
        pilot: Trials of the pilot. Before it ends, a higher confidence is needed.
        confidence: Level of the intervals that will be published.
    """
    contrast = gain_of(base, other)[1]
    if contrast is None:
        return False
    ratio = contrast.ratio(max(LOOK if contrast.n >= pilot else CLEAR, confidence))
    word = verdict(ratio, settings.threshold)
    if word == "faster":  # its gain will be published, so it should be known well
        return contrast.n >= min(pilot, CLEAR_TRIALS)
    return word in ("same", "slower") or (ratio.low is not None and ratio.low > 1 - USEFUL_GAIN)


def with_time_limit(settings: RunSettings, seconds: float) -> RunSettings:
    """Return the settings with this time limit, unless the user set one."""
    if "max_time" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"max_time": seconds})


def with_projected_limit(settings: RunSettings, projection: Projection | None) -> RunSettings:
    """Return the settings with a time limit that is a share of the projected training, unless the user set one."""
    if projection is None:
        return settings
    seconds = max(SHORTEST_SECONDS, PROJECTION_SHARE * projection.build_and_fit_seconds.value)
    return with_time_limit(settings, min(settings.max_time, seconds))


def minimum_trials(current: Accuracy, pilot: int, fewest: int | None = None, seconds_for_another: float = 0.0) -> int:
    """Return how many trials there must be, unless a limit comes first.

    Args:
        current: The accuracy so far.
        pilot: Trials of the pilot.
        fewest: Trials that a clear comparison has. None for `CLEAR_TRIALS`, or one if they are long.
        seconds_for_another: Seconds of the session at the end of another trial.
    """
    if not current.clear:
        return pilot
    if fewest is None:
        fewest = 1 if seconds_for_another > CLEAR_SECONDS else CLEAR_TRIALS
    return min(pilot, fewest)


def trial_seconds(trial: int, elapsed: float, minimum_seconds: float, settings: RunSettings, pilot: int) -> float:
    """Return how many seconds a trial may take, so that the pilot ends in time.

    The trials that still fit share what the limit leaves.

    Args:
        trial: Its number, from 1.
        elapsed: Seconds of the session so far.
        minimum_seconds: Seconds of this trial so far, with the minimum of rounds. Another trial would take as long.
        settings: The limits.
        pilot: Trials of the pilot.
    """
    limit = IN_TIME * min(PILOT_SECONDS, settings.max_time)
    if trial == 1 or trial >= pilot:
        return limit / pilot
    seconds_left = max(0.0, limit - elapsed)
    others = min(pilot - trial, int(seconds_left / minimum_seconds))
    if others < pilot - trial and settings.max_time > PILOT_SECONDS:
        return minimum_seconds  # the session continues after the pilot
    return minimum_seconds + (seconds_left - others * minimum_seconds) / (others + 1)


def has_time_for_pilot(trial_seconds: float, settings: RunSettings, pilot: int) -> bool:
    """Return whether a pilot fits into the time limit if each trial takes this long."""
    return pilot * trial_seconds <= settings.max_time


def reason(
    current: Accuracy | None,
    trials: int,
    elapsed: float,
    last_trial: float,
    settings: RunSettings,
    pilot: int,
    fewest: int | None = None,
) -> StopReason | None:
    """Return the reason to stop now. None to continue.

    Args:
        current: The accuracy so far. None if it is not known.
        trials: Number of trials so far.
        elapsed: Seconds since the session began.
        last_trial: Seconds of the last trial. The next one is assumed to take as long.
        settings: The limits.
        pilot: Trials of the pilot.
        fewest: Trials that a clear comparison has (`minimum_trials`).
    """
    needed = minimum_trials(current, pilot, fewest, elapsed + last_trial) if current is not None else pilot
    if current is not None and current.settled and trials >= needed:
        return "target"
    if trials >= settings.max_processes:
        return "max-processes"
    if elapsed > settings.max_time or (trials >= 2 and elapsed + last_trial > settings.max_time):
        return "max-time"
    return None
