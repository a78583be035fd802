"""Observer effect: a step under devbench, compared with the same loop in a plain script.

`python -m benchmarks.observer [TRIALS [CASE…]]`, with cases by their index in `CASES`. In each trial, a devbench
worker and two plain scripts are interleaved in random order, so all meet the same noise. The process that starts
first is slower (by 2 to 6% for identical scripts). devbench therefore takes each starting position equally often, and
least squares separate the two effects: the logarithm of a time is the sum of the effects of its trial, its position
and devbench.

For the loop `step`, blocks of the same number of steps are compared. For `fit`, whole calls of `fit` are timed by the
wall clock, a long one minus a short one, which removes the cost of starting a call. They are compared with devbench's
blocks over as many steps.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from bench.model.spec import Spec
from bench.session.worker_sample import WorkerSample
from bench.worker.protocol import BlockTimed, Go
from benchmarks.interleaved import Bare, spec_of, warm_worker

CASES = [
    ("cifar", "", "step"),
    ("tabular", "small", "step"),
    ("input-pipeline", "slept", "step"),
    ("tabular", "small", "fit"),
    (str(Path(__file__).with_name("short_cifar.py")), "", "fit"),
]
"""Workload, case and loop. Small steps vary most between processes (by 3% and more), so they need the most trials."""
ROUNDS = 24
FIT_SECONDS = 3.0


def interleave(sides: list[Callable[[], float]], rounds: int) -> list[list[float]]:
    """Return each side's times. The sides are interleaved in random order."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for index in random.sample(range(len(sides)), len(sides)):
            times[index].append(sides[index]())
    return times


def faster_half(times: list[float]) -> float:
    """Return the mean of the faster half."""
    return statistics.fmean(sorted(times)[: (len(times) + 1) // 2])


def step_times(workload: str, case: str, place: int) -> list[float]:
    """Return the step times of one trial with the loop `step`, in the order of starts. devbench starts at `place`."""
    worker, scripts = start(spec_of(workload, case, "step"), case, 100, place)
    steps = worker.blocks.steps["step"]

    def observed() -> float:
        worker.process.resume()
        worker.run_round(0, lead=True)
        worker.process.suspend()
        block = worker.sample.series[0].blocks[-1]
        return block.seconds / block.steps

    def bare(script: Bare) -> float:
        script.run(max(1, steps // 8))
        return script.run(steps) / steps

    times = interleave([observed, lambda: bare(scripts[0]), lambda: bare(scripts[1])], ROUNDS)
    finish(worker, scripts)
    return in_order(place, *map(faster_half, times))


def epoch_times(workload: str, case: str, place: int) -> list[float]:
    """Return the epoch times of one trial with the loop `fit`, in the order of starts. devbench starts at `place`."""
    spec = spec_of(workload, case, "fit")
    worker, scripts = start(spec, case, 1, place)
    epoch = scripts[0].run(2) - scripts[0].run(1)
    epochs = max(1, round(FIT_SECONDS / max(epoch, 0.01)))
    per_epoch = steps_of_epoch(spec)

    def observed() -> float:
        worker.process.resume()
        worker.process.order(Go(series="step", steps=per_epoch, blocks=epochs, lead=1))
        seconds = math.fsum(worker.events.until(BlockTimed).seconds for _ in range(epochs))
        worker.process.suspend()
        return seconds / epochs

    def bare(script: Bare) -> float:
        return (script.run(epochs + 1) - script.run(1)) / epochs

    times = interleave([observed, lambda: bare(scripts[0]), lambda: bare(scripts[1])], 4)
    finish(worker, scripts)
    return in_order(place, *map(statistics.fmean, times))


def start(spec: Spec, case: str, warm_up: int, place: int) -> tuple[WorkerSample, list[Bare]]:
    """Start and warm up a worker and two scripts, one after another. The worker starts at `place`."""
    scripts = []
    for index in range(3):
        if index == place:
            worker = warm_worker(spec)
        else:
            scripts.append(Bare(spec.file or spec.workload, case, spec.loop, spec.threads.intra))
            scripts[-1].run(warm_up)
    return worker, scripts


def in_order(place: int, devbench: float, first: float, second: float) -> list[float]:
    """Return the three times in the order of starts."""
    times = [first, second]
    times.insert(place, devbench)
    return times


def effects(trials: list[tuple[int, list[float]]]) -> list[str]:
    """Return the factors of devbench and of starting second and third, with 95% intervals, and the noise."""
    rows, times = [], []
    for number, (place, times_of_trial) in enumerate(trials):
        for start_place, seconds in enumerate(times_of_trial):
            trial_columns = [float(number == n) for n in range(len(trials))]
            rows.append([float(start_place == place), float(start_place == 1), float(start_place == 2), *trial_columns])
            times.append(math.log(seconds))
    x, y = np.array(rows), np.array(times)
    solved, _, rank, _ = np.linalg.lstsq(x, y, rcond=None)
    freedom = len(y) - rank
    variance = float(np.sum((y - x @ solved) ** 2)) / freedom
    errors = np.sqrt(np.diag(np.linalg.pinv(x.T @ x)) * variance) * stdtrit(freedom, 0.975)
    factors = [
        f"{math.exp(s):.4f} [{math.exp(s - e):.4f}, {math.exp(s + e):.4f}]"
        for s, e in zip(solved[:3], errors[:3], strict=True)
    ]
    return [*factors, f"{math.sqrt(variance):.2%}"]


def steps_of_epoch(spec: Spec) -> int:
    """Return the batches of an epoch, including the partial one."""
    return math.ceil(int(spec.params["rows"]) / int(spec.params["batch"])) if "rows" in spec.params else 100


def finish(worker: WorkerSample, scripts: list[Bare]) -> None:
    """End the worker and the scripts."""
    worker.resume()
    worker.process.kill()
    worker.close()
    for script in scripts:
        script.close()


def main() -> None:
    """Print a line per case."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    print("factor on the time of a step with its 95% interval: devbench, starting second, starting third")
    for workload, case, loop in [CASES[int(place)] for place in sys.argv[2:]] or CASES:
        places = [n % 3 for n in range(trials)]
        random.shuffle(places)
        measure = step_times if loop == "step" else epoch_times
        results = [(place, measure(workload, case, place)) for place in places]
        devbench, second, third, noise = effects(results)
        name = f"{Path(workload).stem}/{case}".rstrip("/")
        print(
            f"{name:22} {loop:5} devbench {devbench} of {trials}   second {second}   third {third}   noise {noise}",
            flush=True,
        )


if __name__ == "__main__":
    main()
