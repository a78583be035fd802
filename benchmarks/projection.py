"""Projection: what a run of `cifar` says of the whole training, and what the whole training takes.

`python -m benchmarks.projection [turns EPOCHS | apart ROUNDS]`. A machine whose speed drifts by tens of percent within
ten minutes can't be asked for 3% by one run after another. So the training of the article's ten epochs and fresh
processes of a default run take turns here: the training goes on for some seconds, is suspended while one process
measures its blocks from its start to its end, goes on again, and so forth; its time suspended is not counted. What
those processes project is then held against what the training took, once as it was and once without what goes beyond
its pace: what being suspended cost it, which no user's training pays, and what it waited for at its epochs' ends, where
tf.data may end an iterator only when its autotuning wakes up. Both are the time between its own words on how far it
is, where it was suspended or an epoch ended meanwhile, above the pace that it had elsewhere. Each process is also held
against the training's pace just before and after it. Beside that stands its pace soon after it went on and later, and
in its first and last third: where those differ, a process's first seconds can't tell the whole. `apart` does it as a
user would: each round is one `devbench run cifar --backend cpu --full`, a default run and then the training, drift and
all; it also says how much sooner the answer was there.
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
from bench.model.result import FullTraining, ProcessSample, Result
from bench.session.interleave import BLOCKS, FEWEST_BLOCKS, MEASURE_SECONDS
from bench.study.plan import plan
from bench.worker.protocol import PhaseStarted
from benchmarks.turns import interval, started

SLICE = 15.0
"""Seconds of training between two processes."""


SOON = 7.0
"""Seconds after going on that count as soon."""

Mark = tuple[float, int]
"""When the training said how many steps it had done, and how many."""


def measured(planned: Planned, trial: int) -> ProcessSample:
    """One process of a default run, from its start to its end."""
    worker = started(planned.spec, trial)
    worker.set_up()
    worker.warm_up()
    blocks = worker.sample.series[0].blocks
    while len(blocks) < BLOCKS and (len(blocks) < FEWEST_BLOCKS or sum(b.seconds for b in blocks) < MEASURE_SECONDS):
        worker.run_blocks(FEWEST_BLOCKS, len(blocks))
    worker.finish(prove=False, latency=True)
    return worker.sample


def in_turns(epochs: int) -> None:
    """The training and the processes of a run, in turns; prints both."""
    (group,) = plan(["cifar"], load(backend="cpu", data="sample", param={"epochs": str(epochs)}))
    planned = group.planned[0]
    marks: list[Mark] = []
    built: list[float] = []

    def tell(phase: str, note: str) -> None:
        if phase == "build":
            built.append(time.perf_counter())
        if note.startswith("step "):
            marks.append((time.perf_counter(), int(note.removeprefix("step "))))

    training = started(planned.spec, tell=tell, full=True)
    while training.until(PhaseStarted).phase != "training":
        pass
    ended = threading.Thread(target=training.train)
    ended.start()
    samples: list[ProcessSample] = []
    went_on, pauses = [time.perf_counter()], [0.0]
    while True:
        ended.join(SLICE)
        if not ended.is_alive():
            break
        training.process.suspend()
        begun = time.perf_counter()
        samples.append(measured(planned, len(samples) + 1))
        pauses.append(time.perf_counter() - begun)
        training.process.resume()
        went_on.append(time.perf_counter())
    full = training.sample.full_training
    if full is None:
        raise SystemExit(f"the training failed: {training.sample.failure}")
    marks.append((built[0] + full.build_and_fit_seconds, full.steps))
    tell_all(planned, samples, full, marks, went_on, pauses)


def tell_all(
    planned: Planned,
    samples: list[ProcessSample],
    full: FullTraining,
    marks: Sequence[Mark],
    went_on: Sequence[float],
    pauses: Sequence[float],
) -> None:
    """Prints what the processes project beside what the training took, and where that went.

    Args:
        planned: what was run.
        samples: the processes.
        full: the training, its suspensions counted.
        marks: its own word on how far it is.
        went_on: when it was started or went on.
        pauses: how long it was suspended before that.
    """
    end = marks[-1][0]
    truth = full.build_and_fit_seconds - sum(
        pause for moment, pause in zip(went_on, pauses, strict=True) if moment <= end
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
    cost, waits = beyond_pace(marks, went_on, pauses, epoch)
    print(f"trained in {truth:.0f} s, {full.steps} steps; projected {projection.build_and_fit_seconds.value:.0f} s")
    each, expected = each_projected(result, planned), projection.epoch_end_wait_seconds
    print(f"of which at epochs' ends {waits:.0f} s, projected {expected:.0f} s")
    for name, more, seconds in (("true", expected, truth), ("true, without waits", 0.0, truth - cost - waits)):
        ratios = [(value + more) / seconds for value in each]
        text = f"projected over {name:20} {interval(ratios)} processes"
        print(f"{text}   one process varies {statistics.stdev(ratios):.1%}")
    ratios = against_neighbours(each, marks, went_on, truth - cost - waits)
    text = f"projected over {'its neighbours':20} {interval(ratios)} processes"
    print(f"{text}   one process varies {statistics.stdev(ratios):.1%}")
    print(f"being suspended {len(samples)} times cost the training {cost:.0f} s, waiting at epochs' ends {waits:.0f} s")
    typical = statistics.median(mean_step(sample.series[0].blocks) for sample in samples)
    for name, step in steps_by_when(marks, went_on).items():
        print(f"the training's own step, {name:28} {step * 1e3:7.2f} ms, {step / typical:.3f} of the processes'")


def stretches(marks: Sequence[Mark], went_on: Sequence[float]) -> list[tuple[float, int]]:
    """Seconds and steps that the training told of between two processes each, what it told of both sides of one not."""
    found = []
    for begun, ended in pairwise([*went_on, math.inf]):
        inside = [mark for mark in marks if begun < mark[0] <= ended] or [(0.0, 0)]
        found.append((inside[-1][0] - inside[0][0], inside[-1][1] - inside[0][1]))
    return found


def against_neighbours(
    projected: Sequence[float], marks: Sequence[Mark], went_on: Sequence[float], truth: float
) -> list[float]:
    """What each process projects over what the training would have taken at the pace it had just before and after.

    A machine that drifts slows a process and the training's stretches around it alike, so that these ratios vary
    less than those to the whole training, and their mean is the same where the machine does not drift.

    Args:
        projected: by each process, seconds.
        marks: the training's own word on how far it is.
        went_on: when it was started or went on; a process ran before each but the first.
        truth: what the training took, seconds.
    """
    told = stretches(marks, went_on)
    overall = sum(seconds for seconds, _ in told) / sum(steps for _, steps in told)
    return [
        value / (truth * (before[0] + after[0]) / (before[1] + after[1]) / overall)
        for value, (before, after) in zip(projected, pairwise(told), strict=True)
        if before[1] and after[1]
    ]


def steps_by_when(marks: Sequence[Mark], went_on: Sequence[float]) -> dict[str, float]:
    """Seconds of the training's steps: soon after it went on and later, and in its first and last third.

    Args:
        marks: its own word on how far it is; those on two sides of a suspension tell nothing.
        went_on: when it was started or went on.
    """
    told: dict[str, list[tuple[float, int]]] = {}
    last = marks[-1][1]
    for (begun, before), (ended, after) in pairwise(marks):
        slice_begun = max((moment for moment in went_on if moment <= begun), default=begun)
        if any(begun < moment <= ended for moment in went_on) or after == before:
            continue
        soon = "soon after going on" if begun - slice_begun < SOON else "later"
        third = ("in its first third", "", "in its last third")[min(2, 3 * before // last)]
        for name in filter(None, (soon, third)):
            told.setdefault(name, []).append((ended - begun, after - before))
    return {name: sum(s for s, _ in found) / sum(n for _, n in found) for name, found in told.items()}


def beyond_pace(
    marks: Sequence[Mark], went_on: Sequence[float], pauses: Sequence[float], epoch: int
) -> tuple[float, float]:
    """Seconds beyond the training's usual pace: where it was suspended, and where an epoch ended.

    Args:
        marks: its own word on how far it is.
        went_on: when it was started or went on.
        pauses: how long it was suspended before that.
        epoch: steps of one.
    """
    usual, paused, ended = [0.0, 0], [0.0, 0], [0.0, 0]
    for (begun, before), (told, after) in pairwise(marks):
        within = [pause for moment, pause in zip(went_on, pauses, strict=True) if begun < moment <= told]
        side = ended if before // epoch < after // epoch else paused if within else usual
        side[0] += told - begun - sum(within)
        side[1] += after - before
    pace = usual[0] / usual[1]
    return paused[0] - paused[1] * pace, ended[0] - ended[1] * pace


def each_projected(result: Result, planned: Planned) -> list[float]:
    """What each process by itself projects without waits at epochs' ends, seconds."""
    found = []
    for sample in result.samples:
        alone = result.model_copy(update={"samples": [sample], "projection": None})
        summarize(alone, planned.total_steps, planned.examples)
        if alone.projection is not None:
            found.append(alone.projection.build_and_fit_seconds.value - alone.projection.epoch_end_wait_seconds)
    return found


def apart(rounds: int) -> None:
    """A default run, then the training, as a user has it; prints a line a round, then both ratios."""
    sooner, right = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            (result,) = bench.run(["cifar"], backend="cpu", full=True, output=folder, data="sample").results
        projection, stop, step = result.projection, result.stop, result.summary.step_seconds
        if projection is None or projection.full_training is None or stop is None or step is None:
            raise SystemExit(f"the run failed: {result.failure}")
        truth, answered = projection.full_training, stop.seconds or 0.0
        sooner.append(truth.build_and_fit_seconds / answered)
        right.append(projection.build_and_fit_seconds.value / truth.build_and_fit_seconds)
        print(
            f"answer after {answered:.0f} s ({stop.trials} processes, {stop.reason}, "
            f"± {step.relative_error or 0:.1%}); "
            f"projected {projection.build_and_fit_seconds.value:.0f} s, "
            f"trained in {truth.build_and_fit_seconds:.0f} s; "
            f"cold {projection.total_seconds.value:.0f} s and {truth.total_seconds:.0f} s",
            flush=True,
        )
    print(f"training over answer  {interval(sooner) if rounds > 1 else sooner[0]}")
    print(f"projected over true   {interval(right) if rounds > 1 else right[0]}")


def main() -> None:
    """In turns, or apart."""
    if sys.argv[1:2] == ["apart"]:
        apart(int(sys.argv[2]) if len(sys.argv) > 2 else 3)
    else:
        in_turns(int(sys.argv[2]) if len(sys.argv) > 2 else 10)


if __name__ == "__main__":
    main()
