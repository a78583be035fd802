"""Synthetic scaling studies, and the results that they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from synthetic import interval, measured

from bench.analyse import stats
from bench.model.interval import Interval
from bench.model.result import Result
from bench.model.scaling import ScalingPart, ScalingStudy, Size
from bench.model.spec import Scaling, Workers

BATCH = 128
STEPS = {1: 0.104, 2: 0.060, 4: 0.040}
"""Seconds of a step of each number of workers. One worker without a strategy takes `BARE`."""

BARE = 0.1
NOISE = (1.0, 1.012, 0.99, 1.004, 0.997)
"""Factors of the steps of the trials. Each level has them in another order."""


def scaling_results(
    parent: str = "scaling",
    first: int = 200,
    steps: dict[int, float] | None = None,
    scaling: Scaling = "strong",
    **changes: Any,
) -> list[Result]:
    """Return the levels of a study.

    Args:
        parent: Its id, and the group of its levels.
        first: The id of the first result, and the seconds after `MOMENT` when it was created.
        steps: Seconds of a step of each number of workers. Default: `STEPS`.
        scaling: Whether workers share each batch. One worker has strong scaling in any study.
        changes: Fields of all results.
    """
    levels: list[tuple[Workers, float]] = [(Workers(count=1, strategy="none"), BARE)]
    for count, step in (steps or STEPS).items():
        workers = Workers(count=count, strategy="multi-worker", scaling=scaling if count > 1 else "strong")
        levels.append((workers, step))
        if count > 1:
            levels.append((workers.model_copy(update={"reduce": False}), 0.9 * step))
    return [
        _level(
            str(first + n), parent, workers, [step * NOISE[(n + k) % len(NOISE)] for k in range(len(NOISE))], **changes
        )
        for n, (workers, step) in enumerate(levels)
    ]


def _level(name: str, parent: str, workers: Workers, steps: Sequence[float], **changes: Any) -> Result:
    is_run = workers.strategy != "none" and workers.reduce
    level = measured(
        name,
        steps,
        group=parent,
        **{"loop": "step", "params": {"batch": BATCH}, **changes},
        workers=workers,
        parent=parent,
        purpose="run" if is_run else "scale",
    )
    if not workers.reduce:  # each worker trains a model of its own, the last one most slowly
        for sample in level.samples:
            sample.peer_step_ratios = [1.0] * (workers.count - 2) + [1.05]
    level.summary.examples_per_second = BATCH / stats.interval(steps).value
    return level


def scaling_study(**changes: Any) -> ScalingStudy:
    """Return a study on one machine, with everything that a study can contain."""
    sizes = [
        Size(
            workers=1, id="201", step_seconds=interval(0.104), examples_per_second=interval(1230),
            speed_up=interval(0.96), efficiency=interval(0.96), cold_start_seconds=4.2, training_seconds=1640.0,
            cost=0.46,
        ),
        Size(
            workers=2, id="202", step_seconds=interval(0.060), examples_per_second=interval(2130),
            speed_up=interval(1.667), efficiency=interval(0.833), slowest_worker=1, all_reduce_bytes=4_800_000,
            bandwidth=1.2e9, cold_start_seconds=5.5, training_seconds=950.0, cost=0.53, parts=parts(0.06, 2),
        ),
        Size(
            workers=4, id="204", step_seconds=interval(0.040), examples_per_second=interval(3200),
            speed_up=interval(2.5), efficiency=interval(0.625), slowest_worker=1, all_reduce_bytes=7_200_000,
            bandwidth=1.1e9, cold_start_seconds=6.5, training_seconds=640.0, cost=0.71, parts=parts(0.04, 4),
        ),
    ]  # fmt: skip
    fields: dict[str, Any] = {
        "id": "scaling", "workload": "cifar", "backend": "cpu", "strategy": "multi-worker", "scaling": "strong",
        "cpus": 1, "batch": BATCH, "bare": interval(BARE), "bare_examples_per_second": interval(1280), "sizes": sizes,
        "serial_share": 0.2, "amdahl_bound": 5.0, "bandwidth_bound": 12.5, "break_even_steps": {"2": 40, "4": 61},
        "currency": "EUR", "fastest": 4, "cheapest": 1, "threshold": 0.02,
    }  # fmt: skip
    return ScalingStudy(**{**fields, **changes})


def parts(step: float, workers: int) -> list[ScalingPart]:
    """Return the parts of a step. The strategy may take no time, and the input saves time."""
    ideal = BARE / workers
    seconds = {
        "ideal": interval(ideal),
        "strategy": Interval(value=0.0005, low=-0.0005, high=0.0015, n=3),
        "input": Interval(value=-0.001, low=-0.0012, high=-0.0008, n=3),
        "batch": interval(0.4 * (step - ideal)),
        "waiting": interval(0.2 * (step - ideal)),
        "all-reduce": interval(0.4 * (step - ideal) + 0.0005),
    }
    return [ScalingPart(name=name, seconds=part, share=part.value / step) for name, part in seconds.items()]
