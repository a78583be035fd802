"""What the results of a scaling study show: throughput by number of workers, and how far it can rise."""

from __future__ import annotations

from collections.abc import Sequence

from bench.analyse import stats
from bench.analyse.compare import examples_of_step
from bench.analyse.same_answer import same_computation, samples_with_losses
from bench.analyse.samples import merged_facts, paired_contrast, usable_samples
from bench.analyse.scaling_claims import break_even, cheapest, fastest
from bench.analyse.scaling_levels import Levels, is_size, machines_of, workers_of
from bench.analyse.scaling_parts import parts_of
from bench.analyse.sweep import disturbances
from bench.model.failure import Failure
from bench.model.interval import Interval
from bench.model.result import Result
from bench.model.scaling import ScalingStudy, Size


def scaling_of(results: Sequence[Result], threshold: float) -> ScalingStudy:
    """Return what the results of a study show.

    Args:
        results: those of one study, with at least one size. If a level was measured several times, the last one counts.
        threshold: smallest relative difference that matters.
    """
    levels = Levels.of(results)
    largest = levels.sizes[max(levels.sizes)]
    spec, workers = largest.spec, workers_of(largest)
    one = levels.bare or levels.sizes.get(1)
    sizes = [_size(levels, count) for count in levels.sizes]
    failed = _failed_levels(results)
    study = ScalingStudy(
        id=largest.parent or "",
        workload=spec.title,
        backend=spec.backend,
        strategy=workers.strategy,
        scaling=workers.scaling,
        cpus=workers.cpus,
        batch=round(batch) if one and (batch := examples_of_step(one)) else None,
        bare=levels.bare.summary.step_seconds if levels.bare else None,
        bare_examples_per_second=_rate(levels.bare) if levels.bare else None,
        sizes=sizes,
        currency=largest.price.currency if largest.price else None,
        failures=[f"{level}: {failure.brief}" for level, failure in failed],
        failure_hint=failed[0][1].advice if failed else "",
        warnings=disturbances(results),
        threshold=threshold,
    )
    _add_bounds(study)
    study.fastest, study.cheapest = fastest(levels, sizes), cheapest(levels, sizes)
    study.break_even_steps = break_even(levels, sizes)
    return study


def _failed_levels(results: Sequence[Result]) -> list[tuple[str, Failure]]:
    """Return the levels that failed, by name. A size tells its own failure."""
    return [
        (f"{workers_of(result).label}, {result.spec.loop}", result.failure)
        for result in results
        if result.failure is not None and result.spec.workers is not None and not is_size(result.spec)
    ]


def _rate(result: Result) -> Interval | None:
    """Return the throughput of all workers of a result together, in examples per second."""
    step, examples = result.summary.step_seconds, examples_of_step(result)
    return stats.scale(step.inverse, examples) if step and examples else None


def _size(levels: Levels, count: int) -> Size:
    result, workers = levels.sizes[count], workers_of(levels.sizes[count])
    failure = result.failure
    size = Size(workers=count, id=result.id)
    if failure is not None and failure.kind == "same-answer":
        size.refused = failure.message
        return size
    if failure is not None:
        size.failure, size.hint = failure.brief, failure.advice
    if failure is not None or result.summary.step_seconds is None:  # it failed, or the study ended earlier
        return size
    size.step_seconds, size.examples_per_second = result.summary.step_seconds, _rate(result)
    size.losses_compared = levels.bare is not None and _losses_compared(levels.bare, result)
    cold = result.summary.cold_start_seconds
    size.cold_start_seconds = cold.value if cold else None
    if result.projection is not None:
        size.training_seconds = result.projection.total_seconds.value
        if result.price is not None:
            size.cost = result.price.per_hour / 3600 * machines_of(workers) * size.training_seconds
    if levels.bare is not None and (contrast := paired_contrast(levels.bare, result)):
        more = count if workers.scaling == "weak" else 1
        size.speed_up = stats.scale(contrast.ratio().inverse, more)
        size.efficiency = stats.scale(size.speed_up, 1 / count)
    size.parts, size.slowest_worker = parts_of(levels, count)
    gradient_bytes = merged_facts(usable_samples(result)).gradient_bytes
    if count > 1 and gradient_bytes:
        size.all_reduce_bytes = round(2 * (count - 1) / count * gradient_bytes)  # of a ring all-reduce
        if (reduction := _all_reduce(size)) is not None:
            size.bandwidth = size.all_reduce_bytes / reduction.value
    return size


def _losses_compared(bare: Result, result: Result) -> bool:
    """Return whether the same-answer check compared the losses of a size with those of the bare worker."""
    samples = [samples_with_losses(each)[:1] for each in (bare, result)]
    known = all(found and found[0].loss_precision != "changed" for found in samples)
    return known and same_computation(bare, result)


def _add_bounds(study: ScalingStudy) -> None:
    """Add the serial share (A. H. Karp, H. P. Flatt, 1990), Amdahl's bound and the bound of the bandwidth.

    They come from the largest number of workers with a speed-up. No number of workers exceeds a bound, so it is
    computed from the ends of the intervals that allow most. Weak scaling has no such bounds.
    """
    size = next((size for size in reversed(study.sizes) if size.workers > 1 and size.speed_up), None)
    if size is None or size.speed_up is None or study.scaling == "weak":
        return
    n, up = size.workers, size.speed_up
    if up.low is not None and up.high is not None and up.low > 1:
        serial = (1 / up.high - 1 / n) / (1 - 1 / n)
        if serial > 0:
            study.serial_share, study.amdahl_bound = serial, 1 / serial
    reduction = _all_reduce(size)
    if size.bandwidth and reduction and reduction.low and study.bare and study.bare.high:
        for_many = n / (n - 1)  # bytes that each of very many workers sends, over those of each of n
        study.bandwidth_bound = study.bare.high / (for_many * reduction.low)


def _all_reduce(size: Size) -> Interval | None:
    """Return the seconds of the all-reduce. None if it is not certain that it takes time."""
    seconds = next((part.seconds for part in size.parts if part.name == "all-reduce"), None)
    return seconds if seconds is not None and seconds.value > 0 and not seconds.may_be_zero else None
