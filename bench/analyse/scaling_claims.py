"""The number of workers that is fastest or cheapest, and when more workers pay, if the intervals settle it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bench.analyse import stats
from bench.analyse.scaling_levels import Levels, machines_of, workers_of
from bench.model.interval import Interval
from bench.model.scaling import Size


def fastest(levels: Levels, sizes: Sequence[Size]) -> int | None:
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


def cheapest(levels: Levels, sizes: Sequence[Size]) -> int | None:
    """Return the number of workers with the cheapest training. None if that is not settled, or there is only one."""
    priced = [size for size in sizes if size.cost is not None]
    if len(priced) > 1 and all(machines_of(workers_of(levels.sizes[size.workers])) == 1 for size in priced):
        return fastest(levels, priced)  # on one machine, the cost is proportional to the time
    costs = {
        size.workers: stats.scale(result.projection.total_seconds, machines_of(workers_of(result)))
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


def break_even(levels: Levels, sizes: Sequence[Size]) -> dict[str, int]:
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
