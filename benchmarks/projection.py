"""The projected time of `cifar`'s whole training, compared with the training.

`python -m benchmarks.projection [alternating EPOCHS | apart ROUNDS]`. On a machine whose speed drifts by tens of
percent within ten minutes, two runs one after the other cannot show 3%. So the training of the article's ten epochs
alternates with fresh processes of a default run: the training runs for some seconds, is suspended while one process
measures, and so on. The time in which it is suspended does not count.

The projections of these processes are compared with the training's time. They are also compared with its time without
two things: the cost of being suspended, which no user pays, and the waits at the ends of epochs, where tf.data may
end an iterator only when its autotuning wakes up. Both are times beyond the training's usual pace, between two of its
own progress reports with a suspension or the end of an epoch in between. Each process is also compared with the
training's pace just before and after it. The program prints that pace soon after the training was resumed and later,
and in its first and last third. If these differ, the first seconds of a process cannot predict the whole training.

`apart` measures as a user would: each round is one `devbench run cifar --backend cpu --full`. It also prints how much
sooner the result was known.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import pairwise

import bench
from bench.analyse.samples import mean_step
from bench.analyse.summary import summarize
from bench.config.settings import load
from bench.model.plan import Planned
from bench.model.result import Result
from bench.model.sample import FullTraining, ProcessSample
from bench.session.interleave import BLOCKS, FEWEST_BLOCKS, MEASURE_SECONDS
from bench.study.plan import plan
from bench.worker.protocol import PhaseStarted
from benchmarks.interleaved import interval, start_worker

SLICE = 15.0
"""Seconds of training between two processes."""

SOON = 7.0
"""Seconds after the training was resumed that count as soon."""

Mark = tuple[float, int]
"""The time of a progress report of the training, and the number of steps done."""


def measure_process(planned: Planned, trial: int) -> ProcessSample:
    """Run one process of a default run from its start to its end."""
    worker = start_worker(planned.spec, trial)
    worker.set_up()
    worker.warm_up()
    blocks = worker.sample.series[0].blocks
    while len(blocks) < BLOCKS and (len(blocks) < FEWEST_BLOCKS or sum(b.seconds for b in blocks) < MEASURE_SECONDS):
        worker.run_blocks(FEWEST_BLOCKS, len(blocks))
    worker.finish(check_placement=False, latency=True)
    return worker.sample


def alternating(epochs: int) -> None:
    """Alternate between the training and the processes of a run, and print both."""
    (group,) = plan(["cifar"], load(backend="cpu", data="sample", param={"epochs": str(epochs)}))
    planned = group.planned[0]
    marks: list[Mark] = []
    built: list[float] = []

    def report(phase: str, note: str) -> None:
        if phase == "build":
            built.append(time.perf_counter())
        if note.startswith("step "):
            marks.append((time.perf_counter(), int(note.removeprefix("step "))))

    training = start_worker(planned.spec, report=report, full=True)
    while training.events.until(PhaseStarted).phase != "training":
        pass
    thread = threading.Thread(target=training.train)
    thread.start()
    samples: list[ProcessSample] = []
    resumed, pauses = [time.perf_counter()], [0.0]
    while True:
        thread.join(SLICE)
        if not thread.is_alive():
            break
        training.process.suspend()
        start = time.perf_counter()
        samples.append(measure_process(planned, len(samples) + 1))
        pauses.append(time.perf_counter() - start)
        training.process.resume()
        resumed.append(time.perf_counter())
    full = training.sample.full_training
    if full is None:
        raise SystemExit(f"the training failed: {training.sample.failure}")
    marks.append((built[0] + full.build_and_fit_seconds, full.steps))
    print_all(planned, samples, full, marks, resumed, pauses)


def print_all(
    planned: Planned,
    samples: list[ProcessSample],
    full: FullTraining,
    marks: Sequence[Mark],
    resumed: Sequence[float],
    pauses: Sequence[float],
) -> None:
    """Print what the processes project, what the training took, and where its time went.

    Args:
        planned: What was run.
        samples: The processes.
        full: The training, including its suspensions.
        marks: Its progress reports.
        resumed: When it was started or resumed.
        pauses: How long it was suspended before that, in seconds.
    """
    end = marks[-1][0]
    truth = full.build_and_fit_seconds - sum(
        pause for moment, pause in zip(resumed, pauses, strict=True) if moment <= end
    )
    result = Result(
        id="projection", created=datetime.now(timezone.utc), devbench=bench.__version__, spec=planned.spec,
        key=planned.spec.key, group="projection", samples=samples,
    )  # fmt: skip
    summarize(result, planned.total_steps, planned.examples)
    projection = result.projection
    if projection is None:
        raise SystemExit("nothing was projected")
    epoch = full.steps // int(planned.spec.params["epochs"])
    cost, waits = beyond_pace(marks, resumed, pauses, epoch)
    print(f"training {truth:.0f} s, {full.steps} steps; projected {projection.build_and_fit_seconds.value:.0f} s")
    projected, expected = projections(result, planned), projection.epoch_end_wait_seconds
    print(f"waits at the ends of epochs: {waits:.0f} s, projected {expected:.0f} s")
    for name, more, seconds in (("true", expected, truth), ("true, without waits", 0.0, truth - cost - waits)):
        ratios = [(value + more) / seconds for value in projected]
        text = f"projected over {name:20} {interval(ratios)} processes"
        print(f"{text}   one process varies {statistics.stdev(ratios):.1%}")
    ratios = against_neighbours(projected, marks, resumed, truth - cost - waits)
    text = f"projected over {'its neighbours':20} {interval(ratios)} processes"
    print(f"{text}   one process varies {statistics.stdev(ratios):.1%}")
    print(f"{len(samples)} suspensions cost the training {cost:.0f} s, waits at the ends of epochs {waits:.0f} s")
    typical = statistics.median(mean_step(sample.series[0].blocks) for sample in samples)
    for name, step in steps_by_when(marks, resumed).items():
        print(f"the training's own step, {name:28} {step * 1e3:7.2f} ms, {step / typical:.3f} of the processes'")


def stretches(marks: Sequence[Mark], resumed: Sequence[float]) -> list[tuple[float, int]]:
    """Return the seconds and steps of each stretch of training between two processes, from the reports within it."""
    parts = []
    for start, ended in pairwise([*resumed, math.inf]):
        inside = [mark for mark in marks if start < mark[0] <= ended] or [(0.0, 0)]
        parts.append((inside[-1][0] - inside[0][0], inside[-1][1] - inside[0][1]))
    return parts


def against_neighbours(
    projected: Sequence[float], marks: Sequence[Mark], resumed: Sequence[float], truth: float
) -> list[float]:
    """Return each projection over the time of the training at its pace just before and after the process.

    A machine that drifts slows a process and the stretches of the training around it alike. These ratios therefore vary
    less than the ratios to the whole training. Without drift, their mean is the same.

    Args:
        projected: The projection of each process, in seconds.
        marks: The training's progress reports.
        resumed: When it was started or resumed. A process ran before each but the first.
        truth: The time of the training, in seconds.
    """
    parts = stretches(marks, resumed)
    overall = sum(seconds for seconds, _ in parts) / sum(steps for _, steps in parts)
    return [
        value / (truth * (before[0] + after[0]) / (before[1] + after[1]) / overall)
        for value, (before, after) in zip(projected, pairwise(parts), strict=True)
        if before[1] and after[1]
    ]


def steps_by_when(marks: Sequence[Mark], resumed: Sequence[float]) -> dict[str, float]:
    """Return the step time of the training: soon after it was resumed and later, and in its first and last third.

    Args:
        marks: Its progress reports. Two on different sides of a suspension are not used.
        resumed: When it was started or resumed.
    """
    parts: dict[str, list[tuple[float, int]]] = {}
    last = marks[-1][1]
    for (start, before), (ended, after) in pairwise(marks):
        slice_begun = max((moment for moment in resumed if moment <= start), default=start)
        if any(start < moment <= ended for moment in resumed) or after == before:
            continue
        soon = "soon after it was resumed" if start - slice_begun < SOON else "later"
        third = ("in its first third", "", "in its last third")[min(2, 3 * before // last)]
        for name in filter(None, (soon, third)):
            parts.setdefault(name, []).append((ended - start, after - before))
    return {name: sum(s for s, _ in part) / sum(n for _, n in part) for name, part in parts.items()}


def beyond_pace(
    marks: Sequence[Mark], resumed: Sequence[float], pauses: Sequence[float], epoch: int
) -> tuple[float, float]:
    """Return the seconds beyond the training's usual pace at suspensions, and at the ends of epochs.

    Args:
        marks: Its progress reports.
        resumed: When it was started or resumed.
        pauses: How long it was suspended before that, in seconds.
        epoch: Steps of an epoch.
    """
    usual, paused, ended = [0.0, 0], [0.0, 0], [0.0, 0]
    for (start, before), (reported, after) in pairwise(marks):
        within = [pause for moment, pause in zip(resumed, pauses, strict=True) if start < moment <= reported]
        side = ended if before // epoch < after // epoch else paused if within else usual
        side[0] += reported - start - sum(within)
        side[1] += after - before
    pace = usual[0] / usual[1]
    return paused[0] - paused[1] * pace, ended[0] - ended[1] * pace


def projections(result: Result, planned: Planned) -> list[float]:
    """Return the projection of each process by itself, without waits at the ends of epochs, in seconds."""
    seconds = []
    for sample in result.samples:
        alone = result.model_copy(update={"samples": [sample], "projection": None})
        summarize(alone, planned.total_steps, planned.examples)
        if alone.projection is not None:
            seconds.append(alone.projection.build_and_fit_seconds.value - alone.projection.epoch_end_wait_seconds)
    return seconds


def apart(rounds: int) -> None:
    """Run a default run and then the training, as a user would. Print a line per round, then both ratios."""
    speed_ups, ratios = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            (result,) = bench.run(["cifar"], backend="cpu", full=True, output=folder, data="sample").results
        projection, stop, step = result.projection, result.stop, result.summary.step_seconds
        if projection is None or projection.full_training is None or stop is None or step is None:
            raise SystemExit(f"the run failed: {result.failure}")
        truth, answered = projection.full_training, stop.seconds or 0.0
        speed_ups.append(truth.build_and_fit_seconds / answered)
        ratios.append(projection.build_and_fit_seconds.value / truth.build_and_fit_seconds)
        print(
            f"result after {answered:.0f} s ({stop.trials} processes, {stop.reason}, "
            f"± {step.relative_error or 0:.1%}); "
            f"projected {projection.build_and_fit_seconds.value:.0f} s, "
            f"training {truth.build_and_fit_seconds:.0f} s; "
            f"from a cold start {projection.total_seconds.value:.0f} s and {truth.total_seconds:.0f} s",
            flush=True,
        )
    print(f"training over result  {interval(speed_ups) if rounds > 1 else speed_ups[0]}")
    print(f"projected over true   {interval(ratios) if rounds > 1 else ratios[0]}")


def main() -> None:
    """Run the benchmark, alternating or apart."""
    if sys.argv[1:2] == ["apart"]:
        apart(int(sys.argv[2]) if len(sys.argv) > 2 else 3)
    else:
        alternating(int(sys.argv[2]) if len(sys.argv) > 2 else 10)


if __name__ == "__main__":
    main()
