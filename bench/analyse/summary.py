"""A result's summary: its figures over all processes, computed from the samples."""

from __future__ import annotations

from collections.abc import Sequence

from bench.analyse import stats
from bench.analyse.projection import project
from bench.analyse.samples import (
    cold_starts,
    epoch_examples_per_step,
    examples_per_step,
    mean_step,
    merged_facts,
    phase_values,
    process_values,
    start_seconds,
    typical_step,
    usable_samples,
)
from bench.analyse.training_time import epoch_seconds_per_step
from bench.model.facts import Facts
from bench.model.result import Result, Summary
from bench.model.sample import ProcessSample


def summarize(result: Result, total_steps: int | None, examples: int | None) -> None:
    """Compute a result's summary and projection anew from its samples.

    Args:
        result: the result, changed in place.
        total_steps: steps of the program's whole training. None if only the worker knows them. Under weak scaling,
            each step of several workers takes the place of several of them.
        examples: examples of a batch. None if a step has none.
    """
    samples = usable_samples(result)
    facts = merged_facts(samples)
    result.summary = Summary(
        phases={name: stats.arithmetic(list(values.values())) for name, values in phase_values(samples).items()},
        xla=None if facts.jit_compile is None else bool(facts.jit_compile),
    )
    _add_starts(result.summary, samples)
    steps = process_values(result)
    if steps:
        _add_steps(result, list(steps.values()), examples_per_step(result.spec, examples, samples), facts)
    _add_latency(result.summary, samples)
    _add_series(result.summary, samples)
    full = result.projection.full_training if result.projection else None
    planned = full.planned_steps if full else facts.total_steps
    total = full.steps if full else facts.stopped_after or total_steps or facts.total_steps
    batches = result.spec.workers.batches if result.spec.workers else 1
    planned, total = (whole and max(1, whole // batches) for whole in (planned, total))
    result.projection = project(result, cold_starts(samples), total, planned) if total and steps else None


def _add_steps(result: Result, seconds: Sequence[float], examples: int | None, facts: Facts) -> None:
    summary = result.summary
    step = summary.step_seconds = stats.interval(seconds)
    mean = summary.step_seconds_mean = stats.arithmetic(list(process_values(result, mean_step).values()))
    if examples:
        summary.examples_per_second = examples / step.value
        samples = usable_samples(result)
        per_step = epoch_seconds_per_step(samples)
        if per_step:
            per_epoch_step = epoch_examples_per_step(result.spec, examples, samples)
            summary.epoch_examples_per_second = per_epoch_step / (mean.value + per_step)
    flops = facts.flops_formula or facts.flops_per_step
    if flops:
        summary.flops_per_step = flops
        summary.flops_per_second = flops / step.value
    if result.price is not None:
        summary.cost_per_1000_steps = result.price.per_hour / 3600 * 1000 * mean.value


def _add_starts(summary: Summary, samples: Sequence[ProcessSample]) -> None:
    starts = start_seconds(samples)
    if starts:
        warm_ups = phase_values(samples)["warm_up"]
        summary.cold_start_seconds = stats.arithmetic(list(starts.values()))
        summary.warmed_up_seconds = stats.arithmetic([starts[trial] + warm_ups[trial] for trial in starts])


def _add_latency(summary: Summary, samples: Sequence[ProcessSample]) -> None:
    latency = [seconds for sample in samples for seconds in sample.latency]
    if not latency:
        return
    import numpy as np

    summary.step_seconds_p50, summary.step_seconds_p90, summary.step_seconds_p99 = (
        float(percentile) for percentile in np.percentile(latency, (50, 90, 99))
    )


def _add_series(summary: Summary, samples: Sequence[ProcessSample]) -> None:
    """Add the times of series other than the steps. Their floors are subtracted within each process."""
    values: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    for sample in samples:
        times = {x.name: typical_step(x.blocks) for x in sample.series if x.blocks}
        for series in sample.series:
            if series.name == "step" or series.name not in times:
                continue
            floor = times.get(series.floor, 0.0) if series.floor else 0.0
            values.setdefault(series.name, []).append(max(0.0, times[series.name] - floor))
            if series.bytes:
                sizes[series.name] = series.bytes
    for name, seconds in values.items():
        summary.series[name] = stats.arithmetic(seconds)
        if name in sizes and summary.series[name].value > 0:
            summary.bytes_per_second[name] = sizes[name] / summary.series[name].value
