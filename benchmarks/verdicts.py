"""How often verdicts are right, for identical programs and for one with 5% more work, in real trials.

`python -m benchmarks.verdicts collect POOL TRIALS [WORKLOAD]` adds trials to a file, in the order in which they ran:
two workers of one spec and one of the same program with 5% more work.

`python -m benchmarks.verdicts [POOL…]` simulates runs on them. Each run takes neighbouring trials from one place on,
stops like `devbench run`, and gives a verdict. Its interval is compared with the ratio over the whole pool. Without a
pool, it collects a small one first. `--without-prior` takes Student's intervals instead of those with a prior. `4x20`
in place of a pool limits the runs on the pools after it to 4 trials of 20 rounds, which is what a short `--max-time`
allows.

`python -m benchmarks.verdicts simulate NOISE RATIO` does the same with 200 simulated trials, on a machine whose blocks
vary by this share and for a program that takes this many times as long.
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench.analyse import prior, stats
from bench.analyse.samples import faster_half, typical_ratio
from bench.analyse.verdict import verdict
from bench.config.settings import load
from bench.machine import system
from bench.machine.telemetry import stolen_seconds
from bench.model.sample import Block
from bench.model.spec import Spec
from bench.session import stopping
from bench.session.design import PILOT
from benchmarks.interleaved import spec_of, warm_workers

ROUNDS = 50
"""As many as a session runs (`bench.session.rounds`) if blocks vary by 5 to 10%."""

SIDES = ("base", "again", "more")
MORE = 1.05
WORK = {"op-granularity": ("add-graph", "step", "operations"), "cifar": ("", "fit", "hidden1")}
"""For each workload, its case, its loop, and the parameter that its work grows with."""

WITH_PRIOR = "--without-prior" not in sys.argv

CLAIMS = {"identical, wrong": 0.01, "identical, same": 0.90, "5% slower, slower": 0.95, "interval covers": 0.93}


def sides(workload: str) -> dict[str, Spec]:
    """Return the two identical specs and the one with more work."""
    case, loop, param = WORK[workload]
    spec = spec_of(workload, case, loop)
    more = {**spec.params, param: round(spec.params[param] * MORE)}
    return dict(zip(SIDES, (spec, spec, spec.model_copy(update={"params": more})), strict=True))


def trial(workload: str) -> dict[str, Any]:
    """Return the blocks of the three workers, started at once and interleaved, as JSON values."""
    start, stolen_before = time.monotonic(), stolen_seconds()
    specs = sides(workload)
    order = random.sample(list(specs), len(specs))
    workers = dict(zip(order, warm_workers([specs[name] for name in order]), strict=True))
    for number in range(ROUNDS):
        for name in random.sample(list(workers), len(workers)):
            workers[name].process.resume()
            workers[name].run_round(number, lead=True)
            workers[name].process.suspend()
    for worker in workers.values():
        worker.process.kill()
        worker.close()
    blocks = {name: [[round(b.seconds, 7), b.steps] for b in w.sample.series[0].blocks] for name, w in workers.items()}
    took, now = time.monotonic() - start, stolen_seconds()
    conditions = {
        "at": f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
        "cpu": system.cpu_model(),
        "stolen": None if now is None or stolen_before is None else round((now - stolen_before) / took, 4),
    }
    return {"workload": workload, "seconds": round(took, 2), **conditions, **blocks}


def collect(pool: Path, count: int, workload: str) -> None:
    """Add trials to a pool, each as soon as it is measured."""
    for _ in range(count):
        result = trial(workload)
        with pool.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


def simulated(count: int, noise: float, ratio: float) -> list[dict[str, Any]]:
    """Return a pool of simulated trials.

    Processes of one program differ by 0.5%. The noise of a block lasts: neighbouring blocks correlate by 0.4. A tenth
    of the blocks vary three times as much.
    """
    rng = random.Random(5)

    def side(seconds: float) -> list[list[float]]:
        seconds *= rng.lognormvariate(0, 0.005)
        level, rows = 0.0, []
        for _ in range(ROUNDS):
            level = 0.4 * level + rng.gauss(0, noise * math.sqrt(1 - 0.4**2))
            rows.append([seconds * math.exp(level * (3 if rng.random() < 0.1 else 1)), 1])
        return rows

    factors = zip(SIDES, (1.0, 1.0, ratio), strict=True)
    sides = [{name: side(0.01 * factor) for name, factor in factors} for factors in [list(factors)] * count]
    return [{"workload": f"simulated, blocks vary by {noise:.0%}, ratio {ratio}", "seconds": 15.0, **s} for s in sides]


def load_pool(pool: Path) -> list[dict[str, Any]]:
    """Return the trials of a pool."""
    return [json.loads(line) for line in pool.read_text(encoding="utf-8").splitlines()]


def blocks(trial: dict[str, Any], name: str) -> list[Block]:
    """Return the blocks of one side of a trial. Their order within a round was random."""
    place = SIDES.index(name)
    rounds = enumerate(trial[name])
    return [Block(seconds=s, steps=n, cpu_seconds=0.0, position=len(SIDES) * r + place) for r, (s, n) in rounds]


def ratios(trials: Sequence[dict[str, Any]], other: str) -> list[float]:
    """Return the logarithm of the ratio of the other's time to the base's in each trial."""
    return [typical_ratio(blocks(trial, "base"), blocks(trial, other)) for trial in trials]


def contrast(trials: Sequence[dict[str, Any]], other: str) -> stats.Contrast:
    """Return the contrast over trials. No side started first, because all start at once."""
    sides = [[blocks(trial, name) for trial in trials] for name in ("base", other)]
    known = prior.of_ratio(sides[0], sides[1]) if WITH_PRIOR else None
    return stats.Contrast.adjusted(ratios(trials, other), [0] * len(trials), known)


def runs(trials: Sequence[dict[str, Any]], other: str, most: int) -> Iterator[stats.Contrast]:
    """Yield what a run from each trial on has measured when it stops. The last trials are too few for a run.

    A trial takes so long that a clear run stops after one. This is the worst case.
    """
    settings = load()
    for start in range(len(trials) - most + 1):
        for count in range(1, most + 1):
            taken = contrast(trials[start : start + count], other)
            accuracy = stopping.accuracy_of_contrasts([taken], settings.threshold)
            if count == most or stopping.reason(accuracy, count, 0.0, stopping.CLEAR_SECONDS + 1, settings, PILOT):
                yield taken
                break


def share(name: str, hits: int, of: int) -> str:
    """Return a share with its exact binomial interval (C. Clopper, E. Pearson, 1934) and the claim."""
    from scipy.stats import binomtest

    interval = binomtest(hits, of).proportion_ci(method="exact")
    return (
        f"{name:22} {hits}/{of} = {hits / of:.1%} [{interval.low:.1%}, {interval.high:.1%}]   claim {CLAIMS[name]:.0%}"
    )


def judge(pool: Sequence[dict[str, Any]]) -> None:
    """Print how often verdicts on a pool are right, by default and with little time."""
    for seconds in (stopping.COMPARING_SECONDS, stopping.PILOT_SECONDS):
        judge_within(pool, seconds)
    apart(pool)


def judge_within(pool: Sequence[dict[str, Any]], seconds: float) -> None:
    """Print how often verdicts are right with a `--max-time` of `seconds`."""
    settings = load()
    usual = sorted(trial["seconds"] for trial in pool)[len(pool) // 2] * 2 / 3  # a run has two workers, not three
    most = max(PILOT, min(settings.max_processes, int(seconds / usual)))
    print(f"{pool[0]['workload']}, {len(pool)} trials; at most {most} in {seconds:.0f} s, of {usual:.0f} s each")
    judge_most(pool, most)


def judge_most(pool: Sequence[dict[str, Any]], most: int) -> None:
    """Print how often verdicts are right with at most `most` trials."""
    settings = load()
    if len(pool) < most:
        print("too few trials for a run")
        return
    covered = simulated = 0
    for other in ("again", "more"):
        truth = contrast(pool, other).ratio()
        contrasts = list(runs(pool, other, most))
        words = Counter(verdict(taken.ratio(), settings.threshold) for taken in contrasts)
        trials = sorted(taken.n for taken in contrasts)[len(contrasts) // 2]
        spread = math.sqrt(stats.variance(ratios(pool, other)))
        text = f"{other}: ratio {truth.value:.4f}, trials vary by {spread:.2%}"
        print(f"{text}; verdicts {dict(words)}; {trials} trials, median")
        if other == "again":
            print(share("identical, wrong", words["faster"] + words["slower"], len(contrasts)))
            print(share("identical, same", words["same"], len(contrasts)))
        else:
            print(share("5% slower, slower", words["slower"], len(contrasts)))
        for taken in contrasts:
            interval = taken.ratio()
            covered += (interval.low or 0.0) <= truth.value <= (interval.high or 0.0)
        simulated += len(contrasts)
    print(share("interval covers", covered, simulated))


def apart(pool: Sequence[dict[str, Any]], count: int = PILOT) -> None:
    """Print how often identical programs that ran one after the other are called faster or slower.

    Nothing is claimed here. What the machine did in between is part of the ratio, but not of its interval. A comparison
    therefore says if its two sides were not interleaved.
    """
    words: Counter[str] = Counter()
    for start in range(len(pool) - 2 * count + 1):
        first = [faster_half(blocks(trial, "base")) for trial in pool[start : start + count]]
        second = [faster_half(blocks(trial, "again")) for trial in pool[start + count : start + 2 * count]]
        words[verdict(stats.independent_ratio(first, second), load().threshold)] += 1
    print(f"identical, one after the other, {count} processes each: {dict(words)}")


def main() -> None:
    """Collect a pool, or judge pools."""
    words = [word for word in sys.argv[1:] if word != "--without-prior"]
    if words[:1] == ["collect"]:
        collect(Path(words[1]), int(words[2]), words[3] if len(words) > 3 else "op-granularity")
        return
    if words[:1] == ["simulate"]:
        judge_within(simulated(200, float(words[1]), float(words[2])), stopping.COMPARING_SECONDS)
        return
    if not words:
        with tempfile.TemporaryDirectory() as folder:
            words = [str(Path(folder) / "pool.jsonl")]
            collect(Path(words[0]), 20, "op-granularity")
            judge(load_pool(Path(words[0])))
        return
    limits = None
    for name in words:
        if limit := re.fullmatch(r"(\d+)x(\d+)", name):
            limits = int(limit[1]), int(limit[2])
            continue
        pool = load_pool(Path(name))
        if limits is None:
            judge(pool)
        else:
            cut = [{**trial, **{side: trial[side][: limits[1]] for side in SIDES}} for trial in pool]
            print(f"{pool[0]['workload']}, {len(pool)} trials; at most {limits[0]} of {limits[1]} rounds")
            judge_most(cut, limits[0])


if __name__ == "__main__":
    main()
