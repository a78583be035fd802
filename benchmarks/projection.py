"""Projection: what a run of `cifar` says of the whole training, and what the whole training takes.

`python -m benchmarks.projection [turns EPOCHS | apart ROUNDS]`. A machine whose speed drifts by tens of percent within
ten minutes can't be asked for 3% by one run after another. So the training of the article's ten epochs and fresh
processes of a default run take turns here: the training goes on for some seconds, is suspended while one process
measures its blocks from its start to its end, goes on again, and so forth; its time suspended is not counted. What
those processes project is then held against what the training took, once as it was and once less what being suspended
cost it, which no user's training pays: the time between its own words on how far it is, where it was suspended
meanwhile, above the pace that it had elsewhere. Beside that stands its pace soon after it went on and later, and in its
first and last third: where those differ, a process's first seconds can't tell the whole. `apart` does it as a user
would: each round is one `devbench run cifar --backend cpu --full`, a default run and then the training, drift and all;
it also says how much sooner the answer was there.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import pairwise

import bench
from bench.analyse import stats
from bench.measure import summary
from bench.measure.events import PhaseBegun
from bench.measure.plan import Planned, plan
from bench.measure.turns import BLOCKS, FEWEST_BLOCKS, MEASURE_SECONDS
from bench.result import ProcessSample, Result
from bench.settings import load
from benchmarks.turns import interval, started

SLICE = 20.0
"""Seconds of training between two processes."""


SOON = 7.0
"""Seconds after going on that count as soon."""

Mark = tuple[float, int]
"""When the training said how many steps it had done, and how many."""


def measured(planned: Planned, cohort: int) -> ProcessSample:
    """One process of a default run, from its start to its end."""
    worker = started(planned.spec, cohort)
    worker.set_up()
    worker.warm_up()
    blocks = worker.sample.series[0].blocks
    while len(blocks) < BLOCKS and (len(blocks) < FEWEST_BLOCKS or sum(b.seconds for b in blocks) < MEASURE_SECONDS):
        worker.run(FEWEST_BLOCKS, len(blocks))
    worker.finish(prove=False, latency=True)
    return worker.sample


def in_turns(epochs: int) -> None:
    """The training and the processes of a run, in turns; prints both."""
    (group,) = plan(["cifar"], load(backend="cpu", data="sample", param={"epochs": str(epochs)}))
    planned = group.planned[0]
    marks: list[Mark] = []

    def tell(phase: str, note: str) -> None:
        if note.startswith("step "):
            marks.append((time.perf_counter(), int(note.removeprefix("step "))))

    training = started(planned.spec, tell=tell, full=True)
    while training.until(PhaseBegun).phase != "training":
        pass
    ended = threading.Thread(target=training.train)
    ended.start()
    samples: list[ProcessSample] = []
    went_on, pauses = [time.perf_counter()], [0.0]
    while True:
        ended.join(SLICE)
        if not ended.is_alive():
            break
        training.handle.suspend()
        begun = time.perf_counter()
        samples.append(measured(planned, len(samples) + 1))
        pauses.append(time.perf_counter() - begun)
        training.handle.resume()
        went_on.append(time.perf_counter())
    full = training.sample.full
    if full is None:
        raise SystemExit(f"the training failed: {training.sample.failure}")
    truth = full.article_seconds - sum(pauses)
    result = Result(
        id="projection", created=datetime.now(timezone.utc), devbench=bench.__version__, spec=planned.spec,
        key=planned.spec.key, group="projection", samples=samples,
    )  # fmt: skip
    summary.summarise(result, planned.total_steps, planned.examples)
    projection = result.projection
    if projection is None:
        raise SystemExit("nothing was projected")
    cost = cost_of_pauses(marks, went_on, pauses)
    print(f"trained in {truth:.0f} s, {full.steps} steps; projected {projection.article_seconds.value:.0f} s")
    for name, seconds in (("true", truth), ("true, undisturbed", truth - cost)):
        ratios = [value / seconds for value in each_projected(result, planned)]
        text = f"projected over {name:20} {interval(ratios)} processes"
        print(f"{text}   one process varies {statistics.stdev(ratios):.1%}")
    print(f"being suspended {len(pauses) - 1} times cost the training {cost:.0f} s")
    typical = statistics.median(stats.mean(sample.series[0].blocks) for sample in samples)
    for name, step in steps_by_when(marks, went_on).items():
        print(f"the training's own step, {name:28} {step * 1e3:7.2f} ms, {step / typical:.3f} of the processes'")


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


def cost_of_pauses(marks: Sequence[Mark], went_on: Sequence[float], pauses: Sequence[float]) -> float:
    """Seconds that the training took longer where it was suspended, beyond its pace elsewhere.

    Args:
        marks: its own word on how far it is.
        went_on: when it was started or went on.
        pauses: how long it was suspended before that.
    """
    kept, broken = [0.0, 0], [0.0, 0]
    for (begun, before), (ended, after) in pairwise(marks):
        paused = [pause for moment, pause in zip(went_on, pauses, strict=True) if begun < moment <= ended]
        side = broken if paused else kept
        side[0] += ended - begun - sum(paused)
        side[1] += after - before
    return broken[0] - broken[1] * kept[0] / kept[1]


def each_projected(result: Result, planned: Planned) -> list[float]:
    """What each process by itself projects, seconds."""
    found = []
    for sample in result.samples:
        alone = result.model_copy(update={"samples": [sample], "projection": None})
        summary.summarise(alone, planned.total_steps, planned.examples)
        if alone.projection is not None:
            found.append(alone.projection.article_seconds.value)
    return found


def apart(rounds: int) -> None:
    """A default run, then the training, as a user has it; prints a line a round, then both ratios."""
    sooner, right = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            (result,) = bench.run(["cifar"], backend="cpu", full=True, output=folder, data="sample")
        projection, stop, step = result.projection, result.stop, result.summary.step_seconds
        if projection is None or projection.measured is None or stop is None or step is None:
            raise SystemExit(f"the run failed: {result.failure}")
        truth, answered = projection.measured, stop.seconds or 0.0
        sooner.append(truth.article_seconds / answered)
        right.append(projection.article_seconds.value / truth.article_seconds)
        print(
            f"answer after {answered:.0f} s ({stop.cohorts} processes, {stop.reason}, "
            f"± {step.relative_error or 0:.1%}); "
            f"projected {projection.article_seconds.value:.0f} s, trained in {truth.article_seconds:.0f} s; "
            f"cold {projection.cold_seconds.value:.0f} s and {truth.cold_seconds:.0f} s",
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
