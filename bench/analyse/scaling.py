"""What the results of a scaling study show: throughput by number of workers, and where the rest of a step goes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.analyse import stats
from bench.analyse.compare import examples_of_step
from bench.analyse.same_answer import same_computation, samples_with_losses
from bench.analyse.samples import merged_facts, paired_contrast, process_values, usable_samples
from bench.analyse.sweep import disturbances
from bench.model.failure import Failure
from bench.model.interval import Interval
from bench.model.result import Result
from bench.model.scaling import PartName, ScalingPart, ScalingStudy, Size
from bench.model.spec import Spec, Workers

LEAST_WAITING = 0.05
"""If waiting for the worker that is slowest on average takes at least this share of a step, that worker is named."""


def is_size(spec: Spec) -> bool:
    """Return whether a spec is the program with a number of workers, not a level that divides its step."""
    workers = spec.workers
    return workers is not None and workers.strategy != "none" and workers.reduce


@dataclass(frozen=True)
class _Levels:
    """The results of a study, sorted into levels.

    Attributes:
        bare: one worker without a strategy.
        bare_on_host_batches: the same on batches in memory. None if it was not measured.
        sizes: with a strategy and the reduction, by number of workers.
        alone: with a strategy and without the reduction, by number of workers.
        alone_on_host_batches: the same on batches in memory.
    """

    bare: Result | None
    bare_on_host_batches: Result | None
    sizes: Mapping[int, Result]
    alone: Mapping[int, Result]
    alone_on_host_batches: Mapping[int, Result]

    @classmethod
    def of(cls, results: Sequence[Result]) -> _Levels:
        main = next((result.spec.loop for result in results if is_size(result.spec)), "step")
        bare, sizes, alone = {}, {}, {}
        for result in results:
            workers, on_host_batches = result.spec.workers, result.spec.loop != main
            if workers is None:
                continue
            if workers.strategy == "none":
                bare[on_host_batches] = result
            elif workers.reduce and not on_host_batches:
                sizes[workers.count] = result
            else:
                alone[workers.count, on_host_batches] = result
        return cls(
            bare.get(False),
            bare.get(True),
            dict(sorted(sizes.items())),
            {count: result for (count, other), result in alone.items() if not other},
            {count: result for (count, other), result in alone.items() if other},
        )


def scaling_of(results: Sequence[Result], threshold: float) -> ScalingStudy:
    """Return what the results of a study show.

    Args:
        results: those of one study, with at least one size. If a level was measured several times, the last one counts.
        threshold: smallest relative difference that matters.
    """
    levels = _Levels.of(results)
    largest = levels.sizes[max(levels.sizes)]
    spec, workers = largest.spec, _workers(largest)
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
    study.fastest, study.cheapest = _fastest(levels, sizes), _cheapest(levels, sizes)
    study.break_even_steps = _break_even(levels, sizes)
    return study


def _failed_levels(results: Sequence[Result]) -> list[tuple[str, Failure]]:
    """Return the levels that failed, by name. A size tells its own failure."""
    return [
        (f"{_workers(result).label}, {result.spec.loop}", result.failure)
        for result in results
        if result.failure is not None and result.spec.workers is not None and not is_size(result.spec)
    ]


def _workers(result: Result) -> Workers:
    assert result.spec.workers is not None
    return result.spec.workers


def _machines(workers: Workers) -> int:
    return 1 if workers.cpus else workers.count


def _processes(result: Result) -> int:
    """Return the number of processes that train. All replicas of the strategy mirrored are in one."""
    workers = _workers(result)
    return 1 if workers.strategy == "mirrored" else workers.count


def _rate(result: Result) -> Interval | None:
    """Return the throughput of all workers of a result together, in examples per second."""
    step, examples = result.summary.step_seconds, examples_of_step(result)
    return stats.scale(step.inverse, examples) if step and examples else None


def _size(levels: _Levels, count: int) -> Size:
    result, workers = levels.sizes[count], _workers(levels.sizes[count])
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
            size.cost = result.price.per_hour / 3600 * _machines(workers) * size.training_seconds
    if levels.bare is not None and (contrast := paired_contrast(levels.bare, result)):
        more = count if workers.scaling == "weak" else 1
        size.speed_up = stats.scale(contrast.ratio().inverse, more)
        size.efficiency = stats.scale(size.speed_up, 1 / count)
    size.parts, size.slowest_worker = _parts(levels, count)
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


def _parts(levels: _Levels, count: int) -> tuple[list[ScalingPart], int | None]:
    """Return the parts of a step, and the worker that the others wait for. Trials that lack a level do not count."""
    result, one = levels.sizes[count], levels.sizes.get(1)
    total = process_values(result)
    if levels.bare is None or one is None:
        return [], None
    bare, strategy = process_values(levels.bare), process_values(one)
    share = count if _workers(result).scaling == "strong" else 1
    if count == 1:
        trials = sorted(bare.keys() & total.keys())
        columns: dict[PartName, list[float]] = {
            "ideal": [bare[t] for t in trials],
            "strategy": [total[t] - bare[t] for t in trials],
        }
        return _shares(columns, [total[t] for t in trials]), None
    alone = _of_each_worker(levels.alone.get(count))
    slowest = _slowest(levels.alone.get(count), alone)
    several_clocks = _processes(result) > 1
    inputs = _inputs(levels, count, share)
    trials = sorted(bare.keys() & strategy.keys() & total.keys() & alone.keys())
    if inputs is not None:
        trials = [trial for trial in trials if trial in inputs]
    if not trials:
        return [], None
    columns = {
        "ideal": [bare[t] / share for t in trials],
        "strategy": [strategy[t] - bare[t] for t in trials],
        **({"input": [inputs[t] for t in trials]} if inputs is not None else {}),
        "batch": [
            statistics.fmean(alone[t])
            - bare[t] / share
            - (strategy[t] - bare[t])
            - (inputs[t] if inputs is not None else 0)
            for t in trials
        ],
        **({"waiting": [slowest[t] - statistics.fmean(alone[t]) for t in trials]} if several_clocks else {}),
        "all-reduce": [total[t] - slowest[t] for t in trials],
    }
    totals = [total[t] for t in trials]
    return _shares(columns, totals), _slowest_worker([alone[t] for t in trials], totals)


def _slowest_worker(alone: Sequence[Sequence[float]], totals: Sequence[float]) -> int | None:
    """Return the index of the worker that is slowest on average. None if it is not always the same, or hardly slower.

    Args:
        alone: seconds per step of each worker without the reduction, for each trial.
        totals: seconds per step with the reduction, for each trial.
    """
    indexes = {seconds.index(max(seconds)) for seconds in alone}
    waiting = statistics.fmean(max(seconds) - statistics.fmean(seconds) for seconds in alone)
    matters = waiting >= LEAST_WAITING * statistics.fmean(totals)
    return indexes.pop() if len(indexes) == 1 and matters else None


def _of_each_worker(result: Result | None) -> dict[int, list[float]]:
    """Return the seconds per step of each process that trained without the reduction, by trial.

    Trials that lack a process are left out.
    """
    if result is None or result.failure is not None:
        return {}
    own = process_values(result)
    return {
        sample.trial: [own[sample.trial] * ratio for ratio in (1.0, *sample.peer_step_ratios)]
        for sample in usable_samples(result)
        if sample.trial in own and len(sample.peer_step_ratios) == _processes(result) - 1
    }


def _slowest(result: Result | None, alone: Mapping[int, Sequence[float]]) -> dict[int, float]:
    """Return the mean seconds of the slowest worker's step, by trial.

    Results of earlier versions lack it. The step of the worker that is slowest on average takes its place.

    Args:
        result: the workers without the reduction.
        alone: the seconds per step of each of them, by trial.
    """
    ratios = {sample.trial: sample.slowest_step_ratio for sample in usable_samples(result)} if result else {}
    return {
        trial: seconds[0] * ratio if (ratio := ratios.get(trial)) else max(seconds) for trial, seconds in alone.items()
    }


def _inputs(levels: _Levels, count: int, share: int) -> dict[int, float] | None:
    """Return the seconds of the input beyond its ideal share, by trial. None if they were not measured."""
    if levels.bare is None or levels.bare_on_host_batches is None or count not in levels.alone_on_host_batches:
        return None
    bare, ready = process_values(levels.bare), process_values(levels.bare_on_host_batches)
    alone = _of_each_worker(levels.alone.get(count))
    alone_ready = _of_each_worker(levels.alone_on_host_batches[count])
    trials = bare.keys() & ready.keys() & alone.keys() & alone_ready.keys()
    if not trials:
        return None
    return {
        t: statistics.fmean(alone[t]) - statistics.fmean(alone_ready[t]) - (bare[t] - ready[t]) / share for t in trials
    }


def _shares(columns: Mapping[PartName, Sequence[float]], totals: Sequence[float]) -> list[ScalingPart]:
    if not totals:
        return []
    whole = statistics.fmean(totals)
    estimates = {name: stats.arithmetic(values, differences=name != "ideal") for name, values in columns.items()}
    return [ScalingPart(name=name, seconds=each, share=each.value / whole) for name, each in estimates.items()]


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


def _fastest(levels: _Levels, sizes: Sequence[Size]) -> int | None:
    """Return the number of workers with the shortest training. None if that is not settled, or there is only one.

    A training with faster steps may take longer, because its start does.
    """
    times = {size.workers: size.speed_up.inverse for size in sizes if size.speed_up}
    if len(times) < 2 or (fastest := _lowest(times)) is None:
        return None
    projections = {count: levels.sizes[count].projection for count in times}
    trainings = {count: each.total_seconds for count, each in projections.items() if each is not None}
    starts = {size.workers: size.cold_start_seconds or math.inf for size in sizes if size.workers in times}
    starts_first = starts[fastest] == min(starts.values()) < math.inf
    return fastest if len(trainings) < len(times) or starts_first else _lowest(trainings)


def _cheapest(levels: _Levels, sizes: Sequence[Size]) -> int | None:
    """Return the number of workers with the cheapest training. None if that is not settled, or there is only one."""
    priced = [size for size in sizes if size.cost is not None]
    if len(priced) > 1 and all(_machines(_workers(levels.sizes[size.workers])) == 1 for size in priced):
        return _fastest(levels, priced)  # on one machine, the cost is proportional to the time
    costs = {
        size.workers: stats.scale(result.projection.total_seconds, _machines(_workers(result)))
        for size in sizes
        if size.cost is not None and (result := levels.sizes[size.workers]).projection is not None
    }
    return _lowest(costs) if len(costs) > 1 else None


def _lowest(values: Mapping[int, Interval]) -> int | None:
    """Return the key of the lowest value. None if its interval is not below all others."""
    best, *others = sorted(values, key=lambda key: values[key].value)
    high = values[best].high
    lows = [values[key].low for key in others]
    return best if high is not None and all(low is not None and low > high for low in lows) else None


def _break_even(levels: _Levels, sizes: Sequence[Size]) -> dict[str, int]:
    """Return the steps of the bare worker after which more workers are ahead, by number of workers.

    Only sizes that are certainly faster count. Their speed-up is the lower end of its interval.
    """
    bare = levels.bare
    if bare is None or bare.summary.step_seconds is None or bare.summary.cold_start_seconds is None:
        return {}
    step, start = bare.summary.step_seconds.value, bare.summary.cold_start_seconds.value
    steps = {}
    for size in sizes:
        least = size.speed_up.low if size.speed_up else None
        if size.workers > 1 and least is not None and least > 1 and size.cold_start_seconds:
            saved = step * (1 - 1 / least)
            steps[str(size.workers)] = max(0, round((size.cold_start_seconds - start) / saved))
    return steps
