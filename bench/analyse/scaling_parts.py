"""Where the time of a step with several workers goes."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from bench.analyse import stats
from bench.analyse.samples import process_values, usable_samples
from bench.analyse.scaling_levels import Levels, workers_of
from bench.model.result import Result
from bench.model.scaling import PartName, ScalingPart

LEAST_WAITING = 0.05
"""If waiting for the worker that is slowest on average takes at least this share of a step, that worker is named."""


def parts_of(levels: Levels, count: int) -> tuple[list[ScalingPart], int | None]:
    """Return the parts of a step, and the worker that the others wait for. Trials that lack a level do not count."""
    result, one = levels.sizes[count], levels.sizes.get(1)
    total = process_values(result)
    if levels.bare is None or one is None:
        return [], None
    bare, strategy = process_values(levels.bare), process_values(one)
    share = count if workers_of(result).scaling == "strong" else 1
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


def _inputs(levels: Levels, count: int, share: int) -> dict[int, float] | None:
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


def _processes(result: Result) -> int:
    """Return the number of processes that train. All replicas of the strategy mirrored are in one."""
    workers = workers_of(result)
    return 1 if workers.strategy == "mirrored" else workers.count
