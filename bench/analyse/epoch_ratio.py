"""The ratio of two results over whole epochs of `fit`: of the times per step, with what passes between epochs.

The steps of two programs may take the same time although a callback or a validation after each epoch makes one of the
trainings several times as long. Whole epochs also contain rare slow steps, such as those that write a checkpoint. The
ratio of a trial is that of its typical steps, times the ratio of what whole epochs take in typical steps of their own
process. A process sees few ends of epochs and few rare steps, so their prior is wide (`prior.of_epochs`), and one trial
alone has no interval: a callback that acts only at some ends may have acted on one side only.

Not included are what only the first epoch has, such as traces, and random waits at the ends of epochs
(`bench.analyse.epoch_waits`). Only results of the loop `as-written` have such a ratio, because devbench's own loops run
no callbacks and no validation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from bench.analyse import prior, stats
from bench.analyse.samples import mean_step, process_blocks, start_order, typical_ratio, typical_step, usable_samples
from bench.analyse.stats import Contrast
from bench.analyse.training_time import Epochs
from bench.model.interval import Interval
from bench.model.result import Result
from bench.model.sample import Block, ProcessSample


class _TimedProcess(NamedTuple):
    """What a process measured.

    Attributes:
        blocks: Its blocks of steps.
        between: Seconds that pass between epochs, per step.
    """

    blocks: list[Block]
    between: float

    @property
    def whole(self) -> float:
        """Seconds per step over whole epochs."""
        return mean_step(self.blocks) + self.between

    @property
    def typical_steps(self) -> float:
        """The time per step over whole epochs, in typical steps."""
        return self.whole / typical_step(self.blocks)


def epoch_ratio(base: Result, other: Result) -> Interval | None:
    """Return the other's time per step over the base's, over whole epochs.

    Returns:
        None if a loop is not as-written, or if a side did not time the ends of epochs.
    """
    paired = epoch_contrast(base, other)
    if paired is not None:
        return paired.ratio()
    first, second = ([process.whole for process in _processes(result).values()] for result in (base, other))
    return stats.independent_ratio(first, second)


def epoch_contrast(base: Result, other: Result) -> Contrast | None:
    """Return the logarithm of the other's time per step over the base's, over whole epochs, within trials.

    Its variance is unknown after a single trial.

    Returns:
        None if a loop is not as-written, if the two were not measured together, or if no trial timed the ends of epochs
        on both sides.
    """
    if base.group != other.group:
        return None
    first, second = _processes(base), _processes(other)
    trials = sorted(first.keys() & second.keys())
    if not trials:
        return None
    pairs = [(first[trial], second[trial]) for trial in trials]
    a, b = ([pair[side].blocks for pair in pairs] for side in (0, 1))
    return Contrast.adjusted(
        [typical_ratio(x.blocks, y.blocks) + math.log(y.typical_steps / x.typical_steps) for x, y in pairs],
        start_order(base, other, trials),
        prior.of_epochs(a, b, [(x.whole, y.whole) for x, y in pairs]) if len(pairs) > 1 else None,
    )


def steps_between_epochs(result: Result) -> dict[int, float]:
    """Return what passes between epochs for each step, in typical steps of the same process, by trial."""
    return {trial: process.between / typical_step(process.blocks) for trial, process in _processes(result).items()}


def _processes(result: Result) -> dict[int, _TimedProcess]:
    """Return the processes that timed their epochs, by trial. None did if devbench's own loop ran them."""
    if result.spec.loop != "as-written":
        return {}
    timed = [sample for sample in usable_samples(result) if _has_timed_epochs(sample)]
    blocks = process_blocks(result) if timed else {}
    return {
        sample.trial: _TimedProcess(own, Epochs.of(sample).seconds_per_step(mean_step(own)))
        for sample in timed
        if (own := blocks.get(sample.trial))
    }


def _has_timed_epochs(sample: ProcessSample) -> bool:
    """Return whether a process timed all that passes between its epochs.

    Work between steps of a script's own loop is rare, so one side may have seen it and the other not. It gives no
    ratio.
    """
    facts, phases = sample.facts, sample.phases
    is_timed = "epoch_end" in phases and ("validation" in phases or not facts.validated_epochs)
    return is_timed and facts.epoch is not None and facts.epoch.steps > 0 and facts.asides is None
