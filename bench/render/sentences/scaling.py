"""Sentences about scaling studies: which size trains fastest, at what cost, what limits it, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator

from bench.model.scaling import ScalingStudy, Size
from bench.model.words import join_words
from bench.render import numbers
from bench.render.scaling_table import noun


def title(study: ScalingStudy) -> str:
    """Return what was measured with how many workers: "cifar on cpu with 1, 2 and 4 workers, strong scaling"."""
    counts = [str(size.workers) for size in study.sizes]
    several = counts != ["1"]
    with_workers = f" with {join_words(counts)} {noun(study)}{'s' if several else ''}" if counts else ""
    return f"{study.workload} on {study.backend}{with_workers}, {study.scaling} scaling"


def summary(study: ScalingStudy) -> Iterator[str]:
    """Yield what a scaling study shows, one sentence or two at a time."""
    yield from _fastest(study)
    yield from _costs(study)
    yield from _largest(study)
    yield from _break_even(study)
    yield from _bounds(study)
    for size in study.sizes:
        if size.failure:
            yield f"{_workers(study, size.workers)} failed: {size.failure.rstrip('.')}."
        elif size.refused:
            yield f"The figures of {_workers(study, size.workers)} do not count: {size.refused.rstrip('.')}."
        elif size.step_seconds is None:
            yield f"{_workers(study, size.workers)} {'was' if size.workers == 1 else 'were'} not measured."
    for failure in study.failures:
        yield f"A level that divides the step failed: {failure.rstrip('.')}."
    yield from _design(study)


def _fastest(study: ScalingStudy) -> Iterator[str]:
    """Say which size has the shortest training, against one worker."""
    timed = {size.workers: size for size in study.sizes if size.training_seconds is not None}
    if study.fastest is None:
        if len(timed) > 1:
            yield f"The number of {noun(study)}s with the shortest training is not settled."
        return
    fastest = f"Fastest training: {_workers(study, study.fastest)}"
    if all(map(_is_slower, (size for size in study.sizes if size.speed_up))):
        yield f"Fastest steps: {_alone(study)}. Every number of {noun(study)}s under the strategy is slower."
        return
    size, alone = timed.get(study.fastest), timed.get(1)
    if size is None or size.training_seconds is None:
        yield f"{fastest}."
        return
    fastest += f", {numbers.time(size.training_seconds)} from a cold start"
    if alone is None or alone is size or alone.training_seconds is None:
        yield f"{fastest}."
        return
    against = f"{numbers.time(alone.training_seconds)} with {_workers(study, 1)}"
    yield f"{fastest}, compared with {against}."


def _costs(study: ScalingStudy) -> Iterator[str]:
    """Say what a training costs with each size, if there is a price, and which size costs least."""
    if study.currency is None:
        return
    costs = {size.workers: size.cost for size in study.sizes if size.cost is not None}
    words = [
        f"{numbers.money(cost)} {study.currency} with {_workers(study, workers)}" for workers, cost in costs.items()
    ]
    if words:
        yield f"A training costs {join_words(words)}."
    if study.cheapest is not None:
        yield f"Cheapest training: {_workers(study, study.cheapest)}."


def _largest(study: ScalingStudy) -> Iterator[str]:
    """Say how fast the largest size is."""
    size = next((size for size in reversed(study.sizes) if size.workers > 1 and size.speed_up), None)
    if size is not None and size.speed_up is not None:
        efficiency = f", an efficiency of {numbers.share(size.efficiency)}" if size.efficiency else ""
        several = _workers(study, size.workers)
        yield f"{several} are {numbers.times(size.speed_up)} as fast as {_alone(study)}{efficiency}."


def _break_even(study: ScalingStudy) -> Iterator[str]:
    """Say from which length a training is faster with several workers, or that it never is."""
    several = [size for size in study.sizes if size.workers > 1]
    steps = {size.workers: study.break_even_steps.get(str(size.workers)) for size in several}
    known = [f"{least:,} with {_workers(study, workers)}" for workers, least in steps.items() if least is not None]
    if known:
        yield f"Steps from which a training is faster than with {_alone(study)}: {', '.join(known)}."
    never = [str(size.workers) for size in several if steps[size.workers] is None and _is_slower(size)]
    if never:
        yield f"No training is faster with {join_words(never)} {noun(study)}s than with {_alone(study)}."


def _is_slower(size: Size) -> bool:
    return size.speed_up is not None and size.speed_up.high is not None and size.speed_up.high < 1


def _bounds(study: ScalingStudy) -> Iterator[str]:
    """Say which speed-up no number of workers exceeds, by Amdahl's law and by the bandwidth of the all-reduce."""
    one, many = noun(study), f"{noun(study)}s"
    if study.serial_share is not None and study.serial_share < 1 and study.amdahl_bound is not None:
        share, bound = numbers.percent(study.serial_share), numbers.rounded(study.amdahl_bound)
        yield (
            f"At least {share} of one {one}'s step does not get faster with more {many}. "
            f"By Amdahl's law, no number of {many} is more than {bound} times as fast as one."
        )
    size = next((size for size in reversed(study.sizes) if size.bandwidth is not None), None)
    if study.bandwidth_bound is not None and size is not None and size.bandwidth is not None:
        rate, bound = numbers.quantity(size.bandwidth, "B/s"), numbers.rounded(study.bandwidth_bound)
        sent = f"{numbers.size(size.all_reduce_bytes)} per step, at " if size.all_reduce_bytes is not None else ""
        yield (
            f"In the all-reduce, each of {_workers(study, size.workers)} sends {sent}{rate}. "
            f"With such an all-reduce, no number of {many} is more than {bound} times as fast as one."
        )


def _design(study: ScalingStudy) -> Iterator[str]:
    """Say how the workers divide the work, what was not checked, and what figures of one machine can show."""
    one, many = noun(study), f"{noun(study)}s"
    examples = f" of {numbers.count(study.batch, 'example')}" if study.batch is not None else ""
    if study.scaling == "strong":
        yield f"Strong scaling: the {many} share each batch{examples}."
        if any(size.workers > 1 and size.speed_up and size.losses_compared is False for size in study.sizes):
            yield (
                f"The losses of several {many} were not compared with those of one. Check that the {many} train as "
                "well as one."
            )
    else:
        yield f"Weak scaling: each {one} has its own batches{examples}."
    if study.cpus is not None:
        yield (
            f"All {many} ran on one machine, each on {numbers.count(study.cpus, 'CPU')} of its own. They share the "
            "machine's memory and caches. The figures prove the mechanism, not how several machines scale."
        )


def _alone(study: ScalingStudy) -> str:
    return f"one {noun(study)} without a strategy"


def _workers(study: ScalingStudy, count: int) -> str:
    return numbers.count(count, noun(study))
