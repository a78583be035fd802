"""When to stop: enough trials for the target, by what a pilot of them varied, or a cap.

One spec stops when its typical step is known to `--target-error`. Specs that are compared stop when the verdict on
each as against the first is settled, whatever their levels do meanwhile. Who looks after each trial and stops at
the first interval that decides is wrong more often than that interval's level says, so looking asks for more
(`LOOK`) than what is published, and for more still who looks before the pilot is over (`CLEAR`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.analyse import stats, summary
from bench.analyse.explain.gains import gain_of
from bench.analyse.verdict import needed, verdict
from bench.config.settings import RunSettings
from bench.model.result import Projection, Result

PILOT = 5
"""Trials whose variance tells how many the target needs."""

PILOT_SECONDS = 90.0
"""In which they should be done, however many would follow."""

IN_TIME = 0.95
"""Share of that time in which they are planned, for none takes just as long as the one before."""

COMPARING_SECONDS = 300.0
"""After which no more trials of several are started, unless `--max-time` says otherwise: that two are the same takes
several times as many as that they differ."""

SOONER = 5
"""Times as soon as the training an answer shall be there, where that is projected and no `--max-time` was said."""

SHORTEST = 45.0
"""Seconds that it has even so: of a short training the step is what is asked for."""

LOOK = 0.99
"""Level of the interval that must decide before a comparison is stopped."""

CLEAR = 0.999
"""Level at which it need not wait for the pilot's end: where one is twice as fast, say."""

CLEAR_TRIALS = 3
"""Trials that there are even so, as many as have their starts measured."""


@dataclass(frozen=True)
class Reached:
    """How well the answer is known.

    Args:
        error: the worst relative half-width of a 95% interval.
        needed: trials that the target needs, as the variance so far has it; none where no number is enough.
        settled: whether that is enough to stop looking.
        decided: whether the published intervals decide, which ask for less, since they are looked at once.
        clear: whether a comparison is settled so clearly that no pilot is needed.
    """

    error: float
    needed: int | None
    settled: bool
    decided: bool = False
    clear: bool = False


Pairs = Callable[[Sequence[Result]], Iterable[tuple[Result, Result]]]
"""Which of a group's results are compared: base and other."""


def with_the_first(results: Sequence[Result]) -> Iterable[tuple[Result, Result]]:
    """Each with the first, as changes with the program as it is."""
    return ((results[0], other) for other in results[1:])


def neighbours(results: Sequence[Result]) -> Iterable[tuple[Result, Result]]:
    """Each with the one before it, as on a ladder."""
    return pairwise(results)


def reached(
    results: Sequence[Result], target: float, pairs: Pairs = with_the_first, confidence: float = stats.CONFIDENCE
) -> Reached | None:
    """What is known after the trials so far; none before there are two.

    Args:
        results: of one spec, or of those that are compared with the first of them.
        target: relative error of one spec's step, or the difference that matters between several.
        pairs: which of them are compared.
        confidence: level of the interval that will be published.
    """
    if len(results) > 1:
        return compared([gain_of(a, b)[1] for a, b in pairs(results)], target, confidence)
    columns = [summary.level_values(result) for result in results]
    if not columns or min(map(len, columns)) < 2:
        return None
    error = max(stats.interval(values).relative_error or 0.0 for values in columns)
    known = error <= target
    return Reached(error, max(stats.needed(values, target) for values in columns), known, known)


def compared(
    contrasts: Sequence[stats.Contrast | None], threshold: float, confidence: float = stats.CONFIDENCE
) -> Reached | None:
    """The same of what was compared already.

    Args:
        contrasts: logarithms of ratios; none where there is no step to compare.
        threshold: relative difference that matters.
        confidence: level of the intervals that will be published.
    """
    known = [contrast for contrast in contrasts if contrast is not None]  # a spec of probes has no step to compare
    if not known or min(contrast.n for contrast in known) < 2:
        return None
    looks = [contrast.ratio(max(LOOK, confidence)) for contrast in known]
    open_ = [look for look in looks if verdict(look, threshold) == "undecided"]
    more = [needed(look, threshold) for look in open_]
    return Reached(
        error=max(contrast.ratio().relative_error or 0.0 for contrast in known),
        needed=None if None in more else max((n for n in more if n), default=min(c.n for c in known)),
        settled=not open_,
        decided=_decide(known, confidence, threshold),
        clear=_decide(known, max(CLEAR, confidence), threshold),
    )


def _decide(contrasts: Iterable[stats.Contrast], confidence: float, threshold: float) -> bool:
    return all(verdict(contrast.ratio(confidence), threshold) != "undecided" for contrast in contrasts)


def capped(settings: RunSettings, seconds: float) -> RunSettings:
    """The settings, with so long a `--max-time` where none was said."""
    if "max_time" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"max_time": seconds})


def soon(settings: RunSettings, projection: Projection | None) -> RunSettings:
    """The settings of a run of one spec, which answers much sooner than its training would end."""
    if projection is None:
        return settings
    return capped(settings, min(settings.max_time, max(SHORTEST, projection.article_seconds.value / SOONER)))


def least(known: Reached, pilot: int = PILOT) -> int:
    """Trials that there must be at least, unless a cap comes first."""
    return min(pilot, CLEAR_TRIALS) if known.clear else pilot


def trial_seconds(trial: int, elapsed: float, took: float, settings: RunSettings, pilot: int = PILOT) -> float:
    """What a trial may take, so that a pilot of them is over in time; what a cap leaves is shared by those that fit.

    Args:
        trial: its number, from 1 on.
        elapsed: seconds of the run so far.
        took: seconds of this trial so far, which has had the fewest turns, as another would take.
        settings: the caps.
        pilot: trials that there should be.
    """
    cap = IN_TIME * min(PILOT_SECONDS, settings.max_time)
    if trial == 1 or trial >= pilot:
        return cap / pilot
    left = max(0.0, cap - elapsed)
    others = min(pilot - trial, int(left / took))
    if others < pilot - trial and settings.max_time > PILOT_SECONDS:
        return took  # the run goes on
    return took + (left - others * took) / (others + 1)


def roomy(seconds: float, settings: RunSettings, pilot: int = PILOT) -> bool:
    """Whether there is time for a pilot whose trials take so long each."""
    return pilot * seconds <= settings.max_time


def reason(
    known: Reached | None, trials: int, elapsed: float, last: float, settings: RunSettings, pilot: int = PILOT
) -> str | None:
    """Why to stop now; none to go on.

    Args:
        known: what is known so far.
        trials: how many there were.
        elapsed: seconds since the first one's start.
        last: seconds that the last one took, as the next one will.
        settings: the caps.
        pilot: trials that there are at least, where it is not clear before.
    """
    if known is not None and known.settled and trials >= least(known, pilot):
        return "target"
    if trials >= settings.max_processes:
        return "max-processes"
    if elapsed > settings.max_time or (trials >= 2 and elapsed + last > settings.max_time):
        return "max-time"
    return None
