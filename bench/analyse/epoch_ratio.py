"""The ratio of two results over whole epochs of `fit`: of the times per step, with what passes between epochs.

The steps of two programs may take the same time although a callback or a validation after each epoch makes one of the
trainings several times as long. The ratio of a trial is that of its typical steps, times the ratio of what whole epochs
take in steps of their own process. A process times few ends of epochs, so their prior is wide (`prior.of_epochs`), and
one trial alone has no interval: a callback that acts only at some ends may have acted on one side only.

Not included are what only the first epoch has, such as traces, and random waits at the ends of epochs
(`bench.analyse.epoch_waits`). Results of different loops have no such ratio, because devbench's own loops run no
callbacks and no validation.
"""

from __future__ import annotations

import math

from bench.analyse import prior, stats
from bench.analyse.samples import process_blocks, start_order, typical_ratio, typical_step, usable_samples
from bench.analyse.stats import Contrast
from bench.analyse.training_time import Epochs
from bench.model.interval import Interval
from bench.model.result import Result
from bench.model.sample import Block, ProcessSample


def epoch_ratio(base: Result, other: Result) -> Interval | None:
    """Return the other's time per step over the base's, over whole epochs.

    Returns:
        None if the loops differ, or if a side did not time the ends of epochs.
    """
    paired = epoch_contrast(base, other)
    if paired is not None:
        return paired.ratio()
    if base.spec.loop != other.spec.loop:
        return None
    first, second = (list(_step_seconds(result).values()) for result in (base, other))
    return stats.independent_ratio(first, second)


def epoch_contrast(base: Result, other: Result) -> Contrast | None:
    """Return the logarithm of the other's time per step over the base's, over whole epochs, within trials.

    Its variance is unknown after a single trial.

    Returns:
        None if the loops differ, if the two were not measured together, or if no trial timed the ends of epochs on both
        sides.
    """
    if base.spec.loop != other.spec.loop or base.group != other.group:
        return None
    first, second = _processes(base), _processes(other)
    trials = sorted(first.keys() & second.keys())
    if not trials:
        return None
    sides = [[processes[trial] for trial in trials] for processes in (first, second)]
    between = list(zip(*([steps for _, steps in side] for side in sides), strict=True))
    a, b = ([blocks for blocks, _ in side] for side in sides)
    return Contrast.adjusted(
        [typical_ratio(x, y) + math.log1p(s) - math.log1p(f) for x, y, (f, s) in zip(a, b, between, strict=True)],
        start_order(base, other, trials),
        prior.of_epochs(a, b, [(f / (1 + f), s / (1 + s)) for f, s in between]) if len(trials) > 1 else None,
    )


def steps_between_epochs(result: Result) -> dict[int, float]:
    """Return what epochs add to each step, in steps of the same process, by trial."""
    return {trial: steps for trial, (_, steps) in _processes(result).items()}


def _step_seconds(result: Result) -> dict[int, float]:
    """Return the seconds per typical step of a result's processes over whole epochs, by trial."""
    return {trial: (1 + steps) * typical_step(blocks) for trial, (blocks, steps) in _processes(result).items()}


def _processes(result: Result) -> dict[int, tuple[list[Block], float]]:
    """Return the blocks of the processes that timed their epochs, and what epochs add to each step, by trial.

    What epochs add is counted in typical steps of the process.
    """
    timed = [sample for sample in usable_samples(result) if _has_timed_epochs(sample)]
    blocks = process_blocks(result) if timed else {}
    steps = {sample.trial: typical_step(blocks[sample.trial]) for sample in timed if sample.trial in blocks}
    return {
        sample.trial: (blocks[sample.trial], Epochs.of(sample).seconds_per_step(step) / step)
        for sample in timed
        if (step := steps.get(sample.trial))
    }


def _has_timed_epochs(sample: ProcessSample) -> bool:
    """Return whether a process timed all that passes between its epochs.

    Work between steps of a script's own loop is rare, so one side may have seen it and the other not. It gives no
    ratio.
    """
    facts, phases = sample.facts, sample.phases
    is_timed = "epoch_end" in phases and ("validation" in phases or not facts.validated_epochs)
    return is_timed and facts.epoch is not None and facts.epoch.steps > 0 and facts.asides is None
