"""Reading a result's samples: usable processes, blocks, step times, phases and facts.

A process gives one number: the median of its blocks is the typical step, their mean is the mean step. A ratio is taken
within each trial, round by round, where both specs were interleaved and met the same noise. `benchmarks/noise.py` shows
which estimator varies least.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from bench.analyse import prior
from bench.analyse.interleaved import rounds
from bench.analyse.stats import Contrast
from bench.model.facts import Facts
from bench.model.phase import PHASES, START_PHASES, Phase
from bench.model.result import Result
from bench.model.sample import Block, ProcessSample, Series
from bench.model.spec import Spec

StepEstimator = Callable[[Sequence[Block]], float]
"""From the blocks of a process to seconds per step."""

RatioEstimator = Callable[[Sequence[Block], Sequence[Block]], float]
"""From the blocks of two processes of a trial to the logarithm of the second's seconds per step over the first's."""


def typical_step(blocks: Sequence[Block]) -> float:
    """Return the seconds of the typical step: the median over blocks."""
    return statistics.median(b.step_seconds for b in blocks)


def mean_step(blocks: Sequence[Block]) -> float:
    """Return the seconds of the mean step: all time over all steps."""
    return sum(b.seconds for b in blocks) / sum(b.steps for b in blocks)


def faster_half(blocks: Sequence[Block]) -> float:
    """Return the mean seconds of a step over the faster half of the blocks, which other load disturbs least."""
    times = sorted(b.step_seconds for b in blocks)
    return statistics.fmean(times[: (len(times) + 1) // 2])


def typical_ratio(base: Sequence[Block], other: Sequence[Block]) -> float:
    """Return the logarithm of the other's seconds per step over the base's.

    If the two were interleaved, it is the median over rounds of the ratio of the two blocks of a round. A long
    disturbance affects both blocks of a round, and the median ignores one that affects a single block. If one process
    ran after the other, it is the ratio of the faster halves.
    """
    turns = rounds(base, other)
    if turns is not None:
        return statistics.median(math.log(b.step_seconds / a.step_seconds) for a, b in turns)
    return math.log(faster_half(other) / faster_half(base))


def mean_ratio(base: Sequence[Block], other: Sequence[Block]) -> float:
    """Return the logarithm of the ratio of the mean steps. It includes rare slow steps, which the median ignores."""
    return math.log(mean_step(other) / mean_step(base))


def usable_samples(result: Result) -> list[ProcessSample]:
    """Return the samples that timed something and did not fail; if there is none, those of interrupted processes."""
    timed = [s for s in result.samples if any(x.blocks for x in s.series)]
    complete = [s for s in timed if s.failure is None]
    return complete or [s for s in timed if s.failure is not None and s.failure.kind == "interrupted"]


def main_series(sample: ProcessSample) -> Series | None:
    """Return the series of steps. None if the workload only times other things."""
    return next((x for x in sample.series if x.name == "step" and x.blocks), None)


def process_blocks(result: Result) -> dict[int, list[Block]]:
    """Return the blocks of steps of a result's processes, by trial.

    A process with a block time that is not positive and finite is left out.
    """
    return {
        sample.trial: series.blocks
        for sample in usable_samples(result)
        if (series := main_series(sample)) and all(0 < b.seconds < math.inf for b in series.blocks)
    }


def process_values(result: Result, estimator: StepEstimator = typical_step) -> dict[int, float]:
    """Return the seconds per step of a result's processes, by trial."""
    values = {trial: estimator(blocks) for trial, blocks in process_blocks(result).items()}
    return {trial: seconds for trial, seconds in values.items() if 0 < seconds < math.inf}


def process_totals(result: Result) -> list[float]:
    """Return one time per process: its typical step, or the sum over its series if it times no steps.

    The spread of these times decides when the run of a single spec stops.
    """
    values = list(process_values(result).values())
    if values:
        return values
    return [sum(typical_step(x.blocks) for x in s.series if x.blocks) for s in usable_samples(result)]


def median_step(result: Result, estimator: StepEstimator = typical_step) -> float:
    """Return the median over processes of their typical steps, in seconds.

    Args:
        result: the result.
        estimator: of the step of a process. Use `mean_step` beside times of a whole training or epoch, and beside means
            over all steps: they include rare slow steps, which the typical step ignores.
    """
    return statistics.median(process_values(result, estimator).values())


def paired_contrast(first: Result, other: Result, ratio: RatioEstimator = typical_ratio) -> Contrast | None:
    """Return the logarithm of the other's step time over the first's, within trials.

    The typical ratio has a prior (`bench.analyse.prior`), so one interleaved trial has an interval. The mean ratio
    varies more, and has none.

    Returns:
        None if the two were not measured together or share no trial.
    """
    if first.group != other.group:
        return None
    a, b = process_blocks(first), process_blocks(other)
    trials = sorted(a.keys() & b.keys())
    if not trials:
        return None
    sides = [[blocks[trial] for trial in trials] for blocks in (a, b)]
    return Contrast.adjusted(
        [ratio(a[trial], b[trial]) for trial in trials],
        start_order(first, other, trials),
        prior.of_ratio(*sides) if ratio is typical_ratio else None,
    )


def start_order(first: Result, other: Result, trials: Sequence[int]) -> list[int]:
    """Return for each trial: 1 if the other's process was started first, -1 if the first's was, 0 if neither was."""
    firsts = [{s.trial for s in usable_samples(result) if s.start_position == 0} for result in (first, other)]
    return [(trial in firsts[1]) - (trial in firsts[0]) for trial in trials]


def cold_starts(samples: Sequence[ProcessSample]) -> list[ProcessSample]:
    """Return the samples whose cold start was measured undisturbed.

    Their processes are fresh, ended their first step, and started while no other worker started.
    """
    return [s for s in samples if "first_step" in s.phases and s.start_position is not None and not s.forked]


def has_measurements(result: Result) -> bool:
    """Return whether a result failed or holds a measurement.

    It does neither if the run was interrupted before its first process was ready.
    """
    return result.failure is not None or bool(usable_samples(result) or cold_starts(result.samples))


def phase_values(samples: Sequence[ProcessSample]) -> dict[Phase, dict[int, float]]:
    """Return the seconds of the phases of measured cold starts, warm-up included, by phase (in order) and trial."""
    measured: dict[Phase, dict[int, float]] = {}
    for sample in cold_starts(samples):
        warm_up = sum(b.seconds for x in sample.series for b in x.warmup)
        for phase, seconds in [*sample.phases.items(), ("warm_up", warm_up)]:
            measured.setdefault(phase, {})[sample.trial] = seconds
    return {phase: measured[phase] for phase in PHASES if phase in measured}


def start_seconds(samples: Sequence[ProcessSample]) -> dict[int, float]:
    """Return the seconds of measured cold starts by trial: from the start of a process to the end of its first step."""
    return {sample.trial: sum(sample.phases.get(name, 0.0) for name in START_PHASES) for sample in cold_starts(samples)}


def warm_up_excess(sample: ProcessSample, step_seconds: float, steps: float = math.inf) -> float:
    """Return the seconds that the steps of the warm-up took beyond `step_seconds` each.

    Args:
        sample: the process.
        step_seconds: seconds of a step.
        steps: number of steps that count, because a training may be shorter than the warm-up. Default: all.
    """
    seconds = 0.0
    for block in (block for series in sample.series for block in series.warmup):
        counted = min(block.steps, steps)
        seconds += counted * (block.step_seconds - step_seconds)
        steps -= counted
    return seconds


def merged_facts(samples: Sequence[ProcessSample]) -> Facts:
    """Return the facts of all processes together. The first process that read a fact counts."""
    read: dict[str, Any] = {}
    for sample in samples:
        for name, value in sample.facts:
            if value is not None:
                read.setdefault(name, value)
    return Facts.model_construct(**read)


def examples_per_step(spec: Spec, examples: int | None, samples: Sequence[ProcessSample]) -> int | None:
    """Return the examples of a step of all workers: those of a batch, or all examples if a batch asks for more.

    Args:
        spec: the spec.
        examples: examples of a batch by the workload's declaration. None if it declares none.
        samples: the processes, which know the batch of a script and the length of an epoch.

    Returns:
        None if a step has no examples, or they are not known.
    """
    facts = merged_facts(samples)
    examples = examples or facts.batch
    if not examples:
        return None
    epoch = facts.epoch
    if epoch and epoch.batches == 0 and epoch.remainder:
        examples = min(examples, epoch.remainder)
    return examples * (spec.workers.batches if spec.workers else 1)


def epoch_examples_per_step(spec: Spec, examples: float, samples: Sequence[ProcessSample]) -> float:
    """Return the mean examples of a step over whole epochs, whose last step may hold a partial batch.

    Args:
        spec: the spec.
        examples: examples of a full step of all workers (`examples_per_step`).
        samples: the processes, which know the length of an epoch.
    """
    epoch = merged_facts(samples).epoch
    if epoch is None or not (epoch.batches and epoch.remainder):
        return examples
    batch = examples / (spec.workers.batches if spec.workers else 1)
    return examples * (epoch.batches + epoch.remainder / batch) / epoch.steps
