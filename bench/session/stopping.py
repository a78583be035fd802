"""When to stop: enough trials for the target, judged by what the pilot varied, or a limit.

A single spec stops when its typical step is known to `--target-error`. A comparison stops when the verdict of each pair
is settled. Looking after each trial and stopping at the first interval that decides would be wrong more often than the
level of that interval says. So a look asks for a higher level (`LOOK`) than what is published, and for a still higher
one before the pilot ends (`CLEAR`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.analyse import stats
from bench.analyse.explain.gains import gain_of
from bench.analyse.samples import process_totals
from bench.analyse.verdict import units_for_verdict, verdict
from bench.config.settings import RunSettings
from bench.model.result import Projection, Result, StopReason
from bench.session.design import Pairs

PILOT_SECONDS = 90.0
"""Seconds in which the pilot should end, however many trials follow."""

IN_TIME = 0.95
"""Share of that time that is planned for. No trial takes exactly as long as the one before."""

COMPARING_SECONDS = 300.0
"""Default time limit of a comparison. To show that two are the same takes several times as many trials as to show that
they differ."""

PROJECTION_SHARE = 0.2
"""Default time limit of a single spec, as a share of its projected training."""

SHORTEST_SECONDS = 45.0
"""Lower bound of that limit. For a short training the step time is what people want."""

LOOK = 0.99
"""Confidence of the interval that must decide before a comparison stops."""

CLEAR = 0.999
"""Confidence at which a comparison may stop before the pilot ends, for example if one side is twice as fast."""

CLEAR_TRIALS = 3
"""Minimum number of trials even then."""


@dataclass(frozen=True)
class Accuracy:
    """How well the answer is known.

    Attributes:
        error: The worst relative half-width of a 95% interval.
        needed: Trials that the target needs, judged by the variance so far. None if no number is enough.
        settled: Whether the target is reached, so that the session may stop.
        decided: Whether the published intervals decide. They need less, since they are looked at once.
        clear: Whether a comparison is so clear that it needs no whole pilot.
    """

    error: float
    needed: int | None
    settled: bool
    decided: bool = False
    clear: bool = False


def accuracy(
    results: Sequence[Result], target: float, pairs: Pairs, confidence: float = stats.CONFIDENCE
) -> Accuracy | None:
    """Return what is known after the trials so far. None before there are two.

    Args:
        results: The open results of a group.
        target: Relative error of one spec's step, or the threshold if several are compared.
        pairs: Which results are compared.
        confidence: Level of the intervals that will be published.
    """
    if len(results) > 1:
        return accuracy_of_contrasts([gain_of(a, b)[1] for a, b in pairs(results)], target, confidence)
    columns = [process_totals(result) for result in results]
    if not columns or min(map(len, columns)) < 2:
        return None
    error = max(stats.interval(values).relative_error or 0.0 for values in columns)
    known = error <= target
    return Accuracy(error, max(stats.units_for_target(values, target) for values in columns), known, known)


def accuracy_of_contrasts(
    contrasts: Sequence[stats.Contrast | None], threshold: float, confidence: float = stats.CONFIDENCE
) -> Accuracy | None:
    """Return how well comparisons are known.

    Args:
        contrasts: Logarithms of ratios. None where there is no step to compare.
        threshold: Smallest relative difference that matters.
        confidence: Level of the intervals that will be published.
    """
    known = [contrast for contrast in contrasts if contrast is not None]  # a workload of probes has no step
    if not known or min(contrast.n for contrast in known) < 2:
        return None
    looks = [contrast.ratio(max(LOOK, confidence)) for contrast in known]
    undecided = [look for look in looks if verdict(look, threshold) == "undecided"]
    more = [units_for_verdict(look, threshold) for look in undecided]
    return Accuracy(
        error=max(contrast.ratio().relative_error or 0.0 for contrast in known),
        needed=None if None in more else max((n for n in more if n), default=min(c.n for c in known)),
        settled=not undecided,
        decided=_decide(known, confidence, threshold),
        clear=_decide(known, max(CLEAR, confidence), threshold),
    )


def _decide(contrasts: Iterable[stats.Contrast], confidence: float, threshold: float) -> bool:
    return all(verdict(contrast.ratio(confidence), threshold) != "undecided" for contrast in contrasts)


def limited(settings: RunSettings, seconds: float) -> RunSettings:
    """Return the settings with this time limit, unless the user set one."""
    if "max_time" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"max_time": seconds})


def limited_by_projection(settings: RunSettings, projection: Projection | None) -> RunSettings:
    """Return the settings with a time limit that is a share of the projected training, unless the user set one."""
    if projection is None:
        return settings
    seconds = max(SHORTEST_SECONDS, PROJECTION_SHARE * projection.build_and_fit_seconds.value)
    return limited(settings, min(settings.max_time, seconds))


def minimum_trials(known: Accuracy, pilot: int) -> int:
    """Return how many trials there must be, unless a limit comes first."""
    return min(pilot, CLEAR_TRIALS) if known.clear else pilot


def trial_seconds(trial: int, elapsed: float, took: float, settings: RunSettings, pilot: int) -> float:
    """Return how many seconds a trial may take, so that the pilot ends in time.

    The trials that still fit share what the limit leaves.

    Args:
        trial: Its number, from 1.
        elapsed: Seconds of the session so far.
        took: Seconds of this trial so far, with the minimum of rounds. Another trial would take as long.
        settings: The limits.
        pilot: Trials of the pilot.
    """
    limit = IN_TIME * min(PILOT_SECONDS, settings.max_time)
    if trial == 1 or trial >= pilot:
        return limit / pilot
    left = max(0.0, limit - elapsed)
    others = min(pilot - trial, int(left / took))
    if others < pilot - trial and settings.max_time > PILOT_SECONDS:
        return took  # the session continues after the pilot
    return took + (left - others * took) / (others + 1)


def has_time_for_pilot(trial_seconds: float, settings: RunSettings, pilot: int) -> bool:
    """Return whether a pilot fits into the time limit if each trial takes this long."""
    return pilot * trial_seconds <= settings.max_time


def reason(
    known: Accuracy | None, trials: int, elapsed: float, last: float, settings: RunSettings, pilot: int
) -> StopReason | None:
    """Return why to stop now. None to continue.

    Args:
        known: What is known so far.
        trials: How many trials there were.
        elapsed: Seconds since the session began.
        last: Seconds of the last trial. The next one will take as long.
        settings: The limits.
        pilot: Trials of the pilot.
    """
    if known is not None and known.settled and trials >= minimum_trials(known, pilot):
        return "target"
    if trials >= settings.max_processes:
        return "max-processes"
    if elapsed > settings.max_time or (trials >= 2 and elapsed + last > settings.max_time):
        return "max-time"
    return None
