"""How much the ratio of two workers varies from trial to trial, and the prior that follows (`bench.analyse.prior`).

`python -m benchmarks.prior collect POOL TRIALS WORKLOAD CASE LOOP,LOOP[,…]` adds the trials of one group of workers
to a file. `--busy` keeps one core busy meanwhile. The first trial of a group starts its workers one after another and
later ones at once, as in a session. A group says little by itself, so a pool needs many groups of few trials.

`python -m benchmarks.prior POOL…` fits the prior by the moments of the logarithms of the variances (G. K. Smyth, 2004).
Then it takes one, two or three trials of each group as a run and prints how often the interval predicts the mean of the
other trials: with and without the prior, and with a prior that expects a third of the noise. Without a pool, it
collects a small one first.

`python -m benchmarks.prior epochs FOLDER` reads the results of runs in a folder. It prints how much the time between
epochs, counted in steps, varies between the processes of a result (`BETWEEN_EPOCHS` in `bench.analyse.prior`).
"""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from bench.analyse import prior, stats
from bench.analyse.epoch_ratio import steps_between_epochs
from bench.analyse.prior import Prior
from bench.analyse.samples import typical_ratio
from bench.model.sample import Block
from bench.store import files
from benchmarks.interleaved import spec_of, warm_worker, warm_workers

ROUNDS = 20
"""The minimum of a session's trial."""

LONGEST = 3
"""Trials of the longest run that is cut out of a group."""


SMALL = (("tabular", "small", ("fit", "step", "fused")), ("op-granularity", "add-graph", ("step", "step", "fused")))
"""Groups of a small pool: workload, case and loops."""


class Pair(NamedTuple):
    """Two workers of a group.

    Attributes:
        name: The program and the loops of the two.
        ratios: Logarithm of the ratio, for each trial.
        priors: What the rounds of each trial let expect of it.
    """

    name: str
    ratios: list[float]
    priors: list[Prior]

    def known(self, trials: Sequence[int]) -> Prior:
        """Return the prior of a run of these trials."""
        return Prior(statistics.fmean(self.priors[trial].variance for trial in trials))


@contextmanager
def busy_core() -> Iterator[None]:
    """Keep one core busy."""
    process = subprocess.Popen([sys.executable, "-c", "while True: sum(range(100_000))"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def trial(workload: str, case: str, loops: Sequence[str], separate: bool) -> list[list[tuple[float, int, int]]]:
    """Return the blocks of a worker for each loop, interleaved: seconds, steps and position."""
    specs = [spec_of(workload, case, loop) for loop in loops]
    order = random.sample(range(len(specs)), len(specs))
    started = [specs[index] for index in order]
    warm = [warm_worker(spec) for spec in started] if separate else warm_workers(started)
    workers = [worker for _, worker in sorted(zip(order, warm, strict=True), key=lambda pair: pair[0])]
    positions = itertools.count()
    for _ in range(ROUNDS):
        for worker in random.sample(workers, len(workers)):
            worker.process.resume()
            worker.run_round(next(positions), lead=True)
            worker.process.suspend()
    for worker in workers:
        worker.process.kill()
        worker.close()
    return [[(round(b.seconds, 7), b.steps, b.position) for b in w.sample.series[0].blocks] for w in workers]


def collect(pool: Path, count: int, workload: str, case: str, loops: Sequence[str], busy: bool) -> None:
    """Add the trials of one group to a pool, each as soon as it is measured."""
    group = f"{workload} {case} {','.join(loops)}{' busy' if busy else ''} {time.time():.0f}"
    for number in range(count):
        with busy_core() if busy else nullcontext():
            blocks = trial(workload, case, loops, separate=number == 0)
        with pool.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"group": group, "loops": loops, "busy": busy, "blocks": blocks}) + "\n")


def pairs(pool: Path) -> Iterator[Pair]:
    """Yield all pairs of workers of the groups of a pool that have several trials."""
    trials = [json.loads(line) for line in pool.read_text(encoding="utf-8").splitlines()]
    for group, members in itertools.groupby(trials, key=lambda trial: trial["group"]):
        sides = [[_blocks(rows) for rows in trial["blocks"]] for trial in members]
        for first, other in itertools.combinations(range(len(sides[0])), 2):
            both = [(trial[first], trial[other]) for trial in sides]
            priors = [known for base, more in both if (known := prior.of_ratio([base], [more]))]
            if len(both) > 1:
                yield Pair(f"{group} {first},{other}", [typical_ratio(*pair) for pair in both], priors)


def _blocks(rows: Sequence[tuple[float, int, int]]) -> list[Block]:
    return [Block(seconds=s, steps=n, cpu_seconds=0.0, position=position) for s, n, position in rows]


def moments(logarithms: Sequence[float], freedom: Sequence[int]) -> tuple[float, float]:
    """Return degrees of freedom and scale of the prior of variances, by Smyth's equations.

    Args:
        logarithms: of the variances, over what is expected of them.
        freedom: degrees of freedom of each.
    """
    from scipy.optimize import brentq
    from scipy.special import digamma, polygamma

    values = [e - digamma(d / 2) + math.log(d / 2) for e, d in zip(logarithms, freedom, strict=True)]
    excess = statistics.variance(values) - statistics.fmean(polygamma(1, d / 2) for d in freedom)
    if excess <= polygamma(1, 500.0):
        return math.inf, math.exp(statistics.fmean(values))
    half = brentq(lambda x: polygamma(1, x) - excess, 1e-3, 500.0)
    return 2 * half, math.exp(statistics.fmean(values) + digamma(half) - math.log(half))


def fit(pool: Sequence[Pair]) -> None:
    """Print the prior that fits a pool: one variance for all, and one that follows from the rounds."""
    freedom = [len(pair.ratios) - 1 for pair in pool]
    logs = [math.log(stats.variance(pair.ratios)) for pair in pool]
    expected = [math.log(pair.known(range(len(pair.ratios))).variance) for pair in pool]
    d0, scale = moments(logs, freedom)
    print(f"one variance for all: d0 {d0:.1f}, s0 {math.sqrt(scale):.1%}")
    d0, scale = moments([log - usual for log, usual in zip(logs, expected, strict=True)], freedom)
    print(f"by the rounds: d0 {d0:.1f}, s0² is {scale:.2f} times what `bench.analyse.prior` expects")
    print(f"correlation of the logarithms of both variances: {statistics.correlation(logs, expected):.2f}")


def predict(pool: Sequence[Pair], count: int) -> None:
    """Print how often runs of so many trials predict the mean of the other trials."""
    hits = {"with the prior": 0, "expecting a third of the noise": 0, "Student": 0}
    total = 0
    for pair in pool:
        for run in itertools.combinations(range(len(pair.ratios)), count):
            rest = [ratio for trial, ratio in enumerate(pair.ratios) if trial not in run]
            if not rest:
                continue
            total += 1
            known = pair.known(run)
            taken = [pair.ratios[trial] for trial in run]
            low = Prior(known.variance / 9, known.freedom)
            for name, usual in zip(hits, (known, low, None), strict=True):
                contrast = stats.Contrast.paired([0.0] * count, taken, usual)
                half = contrast.quantile() * math.sqrt(contrast.variance * (1 + count / len(rest)))
                hits[name] += contrast.is_known and abs(statistics.fmean(rest) - contrast.mean) <= half
    if total:
        shares = ", ".join(f"{name} {hit / total:.1%}" for name, hit in hits.items() if hit)
        print(f"{count} trials, {total} runs: the 95% interval predicts the other trials: {shares}")


def epochs(folder: Path) -> None:
    """Print the standard deviation of what passes between epochs, over all results with several processes."""
    squares, freedom = 0.0, 0
    for result in files.results(folder):
        logs = [math.log(steps) for steps in steps_between_epochs(result).values() if steps > 0]
        if len(logs) > 1:
            squares, freedom = squares + (len(logs) - 1) * stats.variance(logs), freedom + len(logs) - 1
            print(f"{result.spec.label}: {len(logs)} processes, {math.sqrt(stats.variance(logs)):.1%}")
    if freedom:
        print(f"all: {math.sqrt(squares / freedom):.1%}, {freedom} degrees of freedom")


def main() -> None:
    """Collect a group, or fit the prior to pools."""
    words = sys.argv[1:]
    if words[:1] == ["epochs"]:
        epochs(Path(words[1]))
        return
    if words[:1] == ["collect"]:
        pool, count, workload, case, loops = [word for word in words[1:] if word != "--busy"]
        collect(Path(pool), int(count), workload, case, loops.split(","), "--busy" in words)
        return
    with tempfile.TemporaryDirectory() as folder:
        if not words:
            words = [str(Path(folder) / "pool.jsonl")]
            for program in SMALL:
                collect(Path(words[0]), LONGEST, *program, busy=False)
        measured = [pair for name in words for pair in pairs(Path(name))]
    print(f"{len(measured)} pairs of workers, {sum(len(pair.ratios) for pair in measured)} ratios")
    fit(measured)
    for length in range(1, LONGEST + 1):
        predict(measured, length)


if __name__ == "__main__":
    main()
