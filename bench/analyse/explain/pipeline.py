"""Findings about the input pipeline: a slow stage, a shuffle buffer that fills, a partial last batch."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.analyse.epoch_waits import steps_per_epoch
from bench.analyse.explain.units import all_steps, time_text
from bench.analyse.samples import mean_step, median_step, merged_facts, usable_samples
from bench.model.causes import FILLING, PARTIAL_BATCH, SLOW_INPUT
from bench.model.explanation import Finding, Part
from bench.model.facts import CACHE, GENERATOR, PY_DATASET, SEQUENTIAL_MAP, Facts, PipelineStage
from bench.model.result import Result
from bench.model.sample import ProcessSample
from bench.model.words import count

INPUT_MIN_SHARE = 0.05
"""Smallest share of a step for which the input is a finding."""

WAIT_MIN_SHARE = 0.3
"""Smallest wait for a batch, as a share of a step, that is a finding where the ladder does not show the input."""

SERIAL_MIN_SHARE = 0.2
"""The same for the time in which a pipeline without prefetch prepares a batch, which is known better."""

SHORTEST_WAIT = 0.001
"""Seconds below which a wait is mostly the call that gets the batch: a cost of small steps, not of their input."""


BUFFER = "prefetch"
"""A stage that does no work of its own. On a busy machine, it may seem slow."""

FILLED = 0.5
"""A cache holds all batches if it delivers one in less than this share of the time of the stages before it."""

LONG_STEPS = 10
"""A cost that occurs once per epoch is a finding if it takes as long as this many steps."""


def slow_input(levels: list[Result], parts: Sequence[Part]) -> Iterator[Finding]:
    """Yield the slowest stage of the pipeline if the ladder shows that input costs something.

    A part that contains more than the input is an upper bound of the input. The times of its stages and the wait for a
    batch give another one. The smaller bound counts.
    """
    slow = [part for part in parts if part.measurable and part.share.value > INPUT_MIN_SHARE and part.includes_input]
    stages = merged_facts([sample for level in levels for sample in usable_samples(level)]).pipeline or []
    times = _stage_times(stages)
    if not slow or not times:
        return
    share, most = sum(part.share.value for part in slow), ""
    if any(part.step_parts != {"input"} for part in slow):  # loops between its two are missing
        seconds = [sum(time.seconds for time in times), *_waits(usable_samples(levels[0]))]
        share, most = min((share, most), (max(seconds) / median_step(levels[0]), "at most "))
    if share > INPUT_MIN_SHARE:
        yield _of_stages(f"Input takes {most}{share:.0%} of the step.", share, stages, calls_python(levels[0]))


def _of_stages(sentence: str, share: float, stages: Sequence[PipelineStage], python: bool) -> Finding:
    """Return a finding that names the slowest stage.

    Args:
        sentence: what the input costs.
        share: of the step.
        stages: of the pipeline. At least one was timed.
        python: whether the pipeline calls Python.
    """
    times, cached = _stage_times(stages), caches(stages)
    slowest = max([time for time in times if time.name not in (BUFFER, CACHE)] or times, key=lambda time: time.seconds)
    sentence += f" Slowest stage: {slowest.name}."
    fix, what_ifs = "Move the work of this stage from the host into the model, as a layer.", [] if cached else ["cache"]
    if slowest.stage == PY_DATASET:
        sentence += " Python prepares one batch at a time."
        fix = (
            "Vectorize it with NumPy, or move the work into a tf.data pipeline with parallel maps. "
            "PyDataset(workers=4, use_multiprocessing=True) prepares batches in other processes."
        )
        what_ifs = []
    elif slowest.stage == GENERATOR:
        sentence += " Python yields its elements one at a time."
        fix = (
            "Load the data as arrays with tf.data.Dataset.from_tensor_slices, or let the generator yield whole batches."
        )
    elif python:
        sentence += " The pipeline calls Python, which runs one call at a time."
        fix = "Write the function in TensorFlow operations, or call batch before map, so that one call handles a batch."
    elif slowest.stage == SEQUENTIAL_MAP:
        fix, what_ifs = "", ["parallel-map", *what_ifs]
    return Finding(
        cause=SLOW_INPUT,
        sentence=sentence,
        # The time of a stage is a difference of two measured times, so noise can make it negative.
        evidence="time per batch by stage: "
        + ", ".join(f"{time.name} {time_text(max(0.0, time.seconds))}" for time in times),
        fix=fix,
        what_ifs=what_ifs,
        parts=["input"],
        share=share,
    )


def _waits(samples: Sequence[ProcessSample]) -> list[float]:
    """Return the seconds that a step of each process waits for its next batch, at most."""
    return [sample.phases["input_wait"] for sample in samples if "input_wait" in sample.phases]


def calls_python(base: Result) -> bool:
    """Return whether the pipeline calls Python, and the step does not."""
    calls = merged_facts(usable_samples(base)).python
    in_step = (
        [operation for operation in base.placement.host_by_design if "PyFunc" in operation] if base.placement else []
    )
    return calls is not None and calls.operations > 0 and not in_step


def waiting(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if the steps of a program wait for their batches, where the ladder cannot show it."""
    step = median_step(base)
    stages = merged_facts(samples).pipeline or []
    if [stage.stage for stage in stages] == [PY_DATASET] and (
        seconds := stages[0].seconds or 0.0
    ) > WAIT_MIN_SHARE * step:
        share = min(1.0, seconds / step)
        sentence = f"Python takes {time_text(seconds)} to prepare a batch, as long as {share:.0%} of a step."
        waits = _waits(samples)
        if waits and statistics.median(waits) < seconds / 2:  # other threads or processes prepare batches in advance
            share = min(share, statistics.median(waits) / step)
            sentence += (
                f" A step waits for at most {share:.0%} of its time, because workers prepare batches in advance."
            )
        if share > INPUT_MIN_SHARE:
            yield _of_stages(sentence, share, stages, python=True)
        return
    seconds = batch_seconds(samples)
    if stages and not prefetches(stages) and seconds > max(SERIAL_MIN_SHARE * step, SHORTEST_WAIT):
        share = min(1.0, seconds / step)
        sentence = f"The pipeline takes {time_text(seconds)} for a batch, {share:.0%} of a step, and does not prefetch."
        yield _of_stages(sentence, share, stages, calls_python(base))
        return
    waits = _waits(samples)
    if not waits or statistics.median(waits) <= max(WAIT_MIN_SHARE * step, SHORTEST_WAIT):
        return
    wait = statistics.median(waits)
    share = min(1.0, wait / step)
    sentence = f"A step waits up to {time_text(wait)} for its next batch, at most {share:.0%} of its time."
    if _stage_times(stages):
        yield _of_stages(sentence, share, stages, calls_python(base))
        return
    yield Finding(
        cause=SLOW_INPUT,
        sentence=sentence,
        evidence="phase input_wait, an upper bound of the wait within a block",
        fix="Prepare batches in parallel and in advance: a tf.data pipeline with parallel maps and prefetch, or "
        "several workers of a Keras dataset.",
        parts=["input"],
        share=share,
    )


def with_stages(base: Result, samples: list[ProcessSample], finding: Finding) -> Finding:
    """Return a finding about slow input with the slowest stage, if the stages were timed."""
    stages = merged_facts(samples).pipeline or []
    if not _stage_times(stages):
        return finding
    waited = (finding.share or 0.0) * median_step(base, mean_step)
    if batch_seconds(samples) < FAST * waited:
        prepared = f"{finding.evidence}; the pipeline prepares a batch in {time_text(batch_seconds(samples))}"
        return finding.model_copy(update={"evidence": prepared, "fix": FOR_FAST_PIPELINES})
    named = _of_stages(finding.sentence, finding.share or 0.0, stages, calls_python(base))
    evidence = f"{finding.evidence}; {named.evidence}"
    return named.model_copy(update={"evidence": evidence, "estimated": True, "parts": finding.parts})


FAST = 0.5
"""A pipeline is fast if it prepares a batch in less than this share of the time that getting one takes."""

FOR_FAST_PIPELINES = (
    "The pipeline is fast, so the call itself takes this time. Loop over the dataset inside a @tf.function, so that "
    "each call runs several steps."
)


class _StageTime(NamedTuple):
    """The seconds per batch of a stage, or of several that were timed together.

    `stage` is the kind of the stage. For several stages it is empty, unless one of them is a generator.
    """

    name: str
    seconds: float
    stage: str


def _stage_times(stages: Sequence[PipelineStage]) -> list[_StageTime]:
    """Return the seconds per batch of each stage alone. A stage without a time is merged with the next one.

    If a cache holds all batches, no step waits for the stages before it, so they are left out.
    """
    times, start, before = [], _after_cache(stages), 0.0
    for index, stage in enumerate(stages):
        if index < start:
            continue
        if stage.seconds is None:
            continue
        merged = [each for each in stages[start : index + 1] if each.stage != CACHE] or [stage]
        name = stage_name(stage) if len(merged) == 1 else f"{stage_name(merged[0])} to {stage_name(stage)}"
        kinds = [each.stage for each in merged]
        kind = GENERATOR if GENERATOR in kinds else stage.stage if len(kinds) == 1 else ""
        times.append(_StageTime(name, stage.seconds - before, kind))
        start, before = index + 1, stage.seconds
    return times


def _after_cache(stages: Sequence[PipelineStage]) -> int:
    """Return the position of the last cache that delivers batches much faster than the stages before it. 0 if none."""
    slowest, position = 0.0, 0
    for index, stage in enumerate(stages):
        seconds = stage.seconds if stage.seconds is not None else slowest
        if stage.stage == CACHE and seconds < FILLED * slowest:
            slowest, position = seconds, index
        slowest = max(slowest, seconds)
    return position


def prefetches(stages: Sequence[PipelineStage]) -> bool:
    """Return whether a pipeline prepares batches in advance."""
    return any(BUFFER in stage.stage for stage in stages)


def caches(stages: Sequence[PipelineStage]) -> bool:
    """Return whether a pipeline has a cache."""
    return any(stage.stage == CACHE for stage in stages)


def has_no_pipeline(program: Facts) -> bool:
    """Return whether it is known that the input of a program's `fit` is not a `tf.data` pipeline, such as arrays."""
    return program.fit is not None and program.pipeline is None and program.pipeline_reachable is None


def fitting_what_ifs(program: Facts) -> set[str]:
    """Return the names of the what-ifs of an input pipeline that fit a program, as far as its pipeline is known."""
    stages = program.pipeline
    if stages is None:
        return set() if has_no_pipeline(program) else {"parallel-map", "prefetch", "cache"}
    if [stage.stage for stage in stages] == [PY_DATASET]:
        return set()
    fitting = {"parallel-map"} if any(stage.stage == SEQUENTIAL_MAP for stage in stages) else set()
    return fitting | (set() if prefetches(stages) else {"prefetch"}) | (set() if caches(stages) else {"cache"})


def batch_seconds(samples: Sequence[ProcessSample]) -> float:
    """Return the seconds in which the whole pipeline prepares a batch. 0 if it was not timed."""
    stages = merged_facts(samples).pipeline or []
    return (stages[-1].seconds or 0.0) if stages else 0.0


def first_batch_seconds(samples: Sequence[ProcessSample]) -> float:
    """Return the seconds until the whole pipeline delivers the first batch of an epoch. 0 if it was not timed."""
    stages = merged_facts(samples).pipeline or []
    return batch_seconds(samples) + max((stage.filling_seconds or 0.0 for stage in stages), default=0.0)


def stage_name(stage: PipelineStage) -> str:
    """Return a stage with the line of its function, such as "map (preprocess, mine.py line 12)"."""
    if stage.function is None or stage.file is None:
        return stage.stage
    function = "" if stage.function == "<lambda>" else f"{stage.function}, "
    return f"{stage.stage} ({function}{Path(stage.file).name} line {stage.line})"


def shuffle_buffer(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding for each shuffle buffer that delays the first batch of an epoch."""
    step = median_step(base, mean_step)
    length = steps_per_epoch(samples)
    for stage in merged_facts(samples).pipeline or []:
        seconds = stage.filling_seconds or 0.0
        if seconds <= max(LONG_STEPS * step, 0.1):
            continue
        share = seconds / (seconds + length * step) if length else None
        yield Finding(
            cause=FILLING,
            sentence=f"The first batch of each epoch waits {seconds:.2f} s, as long as "
            f"{count(round(seconds / step), 'step')}, while shuffle({stage.buffer}) fills its buffer."
            + (f" That is {share:.0%} of the time of an epoch." if share else ""),
            evidence=f"the pipeline up to this stage delivers its first element after {seconds:.2f} s",
            fix="Shuffle before slow stages (file names instead of images), or use a smaller buffer."
            + ("" if caches(merged_facts(samples).pipeline or []) else " Or call cache() before it."),
            share=share,
        )


def partial_batch(levels: list[Result]) -> Iterator[Finding]:
    """Yield a finding if a partial last batch costs much the first time.

    The first level that measured it counts. The program's own loop does not measure it.
    """
    for level in levels:
        pairs = [
            (s.phases["partial_batch"], s.phases["partial_batch_again"])
            for s in usable_samples(level)
            if "partial_batch" in s.phases and "partial_batch_again" in s.phases
        ]
        if pairs:
            break
    else:
        return
    first, again = (statistics.median(times) for times in zip(*pairs, strict=True))
    step = median_step(level)
    if first - again <= LONG_STEPS * step:
        return
    steps = levels[0].projection.steps if levels[0].projection is not None else 0
    share = (first - again) / (first - again + steps * median_step(levels[0], mean_step)) if steps else None
    yield Finding(
        cause=PARTIAL_BATCH,
        sentence=f"The smaller last batch takes {first - again:.3f} s longer the first time, as long as "
        f"{count(round((first - again) / step), 'step')}."
        + (f" That is {share:.0%} of the time of {all_steps(steps)}." if share else ""),
        evidence=f"{first:.3f} s the first time and {again:.3f} s later, in the loop {level.spec.loop}",
        fix="Drop the remainder with batch(n, drop_remainder=True), or use a batch that divides the number of rows.",
        share=share,
    )
