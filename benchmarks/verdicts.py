"""Verdicts: how often are they right? Identical programs, and one that really does 5% more work, in real cohorts.

`python -m benchmarks.verdicts collect POOL COHORTS [WORKLOAD]` adds cohorts to a file, in the order they ran: two
workers of one spec and one of the same program with 5% more work. `python -m benchmarks.verdicts [POOL…]` then plays
runs: each takes neighbouring cohorts from one place on, stops as `devbench run` does, and gives a verdict; its interval
is held against the ratio over the whole pool. Without a pool it collects a small one first.
"""

from __future__ import annotations

import json
import math
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench import system
from bench.analyse import stats
from bench.analyse.verdict import verdict
from bench.machine.telemetry import stolen_seconds
from bench.measure import stopping
from bench.result import Block
from bench.settings import load
from bench.spec import Spec
from benchmarks.turns import spec_of, worker_of

ROUNDS = 20
MORE = 1.05
WORK = {"op-granularity": ("add-graph", "step", "operations"), "cifar": ("", "fit", "hidden1")}
"""Workload: its case, its loop, and the parameter that its work is proportional to."""

CLAIMS = {"identical, wrong": 0.01, "identical, same": 0.90, "5% slower, slower": 0.95, "interval covers": 0.93}


def sides(workload: str) -> dict[str, Spec]:
    """The two that are identical, and the one that does more."""
    case, loop, param = WORK[workload]
    spec = spec_of(workload, case, loop)
    more = {**spec.params, param: round(spec.params[param] * MORE)}
    return {"base": spec, "again": spec, "more": spec.model_copy(update={"params": more})}


def cohort(workload: str, order: Sequence[str]) -> dict[str, Any]:
    """Blocks of the three, which were started in this order and took turns, as JSON values."""
    begun, stolen = time.monotonic(), stolen_seconds()
    specs = sides(workload)
    workers = {name: worker_of(specs[name]) for name in order}
    for turn in range(ROUNDS):
        for name in random.sample(list(workers), len(workers)):
            workers[name].handle.resume()
            workers[name].turn(turn, lead=True)
            workers[name].handle.suspend()
    for worker in workers.values():
        worker.handle.kill()
        worker.close()
    blocks = {name: [[round(b.seconds, 7), b.steps] for b in w.series("step").blocks] for name, w in workers.items()}
    seconds, now = time.monotonic() - begun, stolen_seconds()
    met = {
        "at": f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
        "cpu": system.cpu_model(),
        "stolen": None if now is None or stolen is None else round((now - stolen) / seconds, 4),
    }
    return {"workload": workload, "seconds": round(seconds, 2), **met, "started": list(workers), **blocks}


def collect(pool: Path, count: int, workload: str) -> None:
    """Adds cohorts to the pool, each as soon as it is there; the order of starts goes round, as in a session."""
    order: list[str] = []
    for number in range(count):
        turn = number % 3
        order = order if turn else random.sample(["base", "again", "more"], 3)
        found = cohort(workload, order[turn:] + order[:turn])
        with pool.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")


Ratio = tuple[float, int]
"""Of one cohort: the logarithm of a ratio, and who of the two was started first (see `Contrast.adjusted`)."""


def ratios(cohorts: Sequence[dict[str, Any]], other: str) -> list[Ratio]:
    """The other's time over the base's in each cohort, by the estimator that comparisons use."""

    def seconds(cohort: dict[str, Any], name: str) -> float:
        return stats.faster_half([Block(seconds=s, steps=n, cpu_seconds=0.0) for s, n in cohort[name]])

    return [
        (
            math.log(seconds(each, other) / seconds(each, "base")),
            (each["started"][0] == other) - (each["started"][0] == "base"),
        )
        for each in cohorts
    ]


def contrast(values: Sequence[Ratio]) -> stats.Contrast:
    """What they say together, as a comparison has it."""
    return stats.Contrast.adjusted([value for value, _ in values], [first for _, first in values])


def runs(values: Sequence[Ratio], most: int) -> Iterator[stats.Contrast]:
    """What a run from each place on has measured when it stops; the last places hold too few and are left out."""
    threshold = load().threshold
    for start in range(len(values) - most + 1):
        for count in range(stopping.PILOT, most + 1):
            taken = contrast(values[start : start + count])
            if count == most or verdict(taken.ratio(stopping.LOOK), threshold) != "undecided":
                yield taken
                break


def share(name: str, hits: int, of: int) -> str:
    """A share with its exact binomial interval (C. Clopper, E. Pearson, 1934) beside what is claimed."""
    from scipy.stats import binomtest

    found = binomtest(hits, of).proportion_ci(method="exact")
    return f"{name:22} {hits}/{of} = {hits / of:.1%} [{found.low:.1%}, {found.high:.1%}]   claimed {CLAIMS[name]:.0%}"


def judge(pool: Sequence[dict[str, Any]]) -> None:
    """Prints how often verdicts on the pool's programs are right."""
    settings = load()
    usual = sorted(each["seconds"] for each in pool)[len(pool) // 2] * 2 / 3  # two workers take turns, not three
    most = max(stopping.PILOT, min(settings.max_processes, int(settings.max_time / usual)))
    print(f"{pool[0]['workload']}: {len(pool)} cohorts; a run has at most {most}, of {usual:.0f} s each")
    if len(pool) < most:
        print("too few to play a run")
        return
    covered = played = 0
    for other in ("again", "more"):
        values = ratios(pool, other)
        truth = contrast(values).ratio()
        found = list(runs(values, most))
        words = Counter(verdict(taken.ratio(), settings.threshold) for taken in found)
        cohorts = sorted(taken.n for taken in found)[len(found) // 2]
        spread = math.sqrt(contrast(values).variance * len(values))
        text = f"{other}: ratio {truth.value:.4f}, cohorts vary by {spread:.2%}"
        print(f"{text}; verdicts {dict(words)}; {cohorts} cohorts, median")
        if other == "again":
            print(share("identical, wrong", words["faster"] + words["slower"], len(found)))
            print(share("identical, same", words["same"], len(found)))
        else:
            print(share("5% slower, slower", words["slower"], len(found)))
        for taken in found:
            interval = taken.ratio()
            covered += (interval.low or 0.0) <= truth.value <= (interval.high or 0.0)
        played += len(found)
    print(share("interval covers", covered, played))


def main() -> None:
    """Collects, or judges pools."""
    words = sys.argv[1:]
    if words[:1] == ["collect"]:
        collect(Path(words[1]), int(words[2]), words[3] if len(words) > 3 else "op-granularity")
        return
    if not words:
        with tempfile.TemporaryDirectory() as folder:
            words = [str(Path(folder) / "pool.jsonl")]
            collect(Path(words[0]), 20, "op-granularity")
            judge([json.loads(line) for line in Path(words[0]).read_text(encoding="utf-8").splitlines()])
        return
    for name in words:
        judge([json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()])


if __name__ == "__main__":
    main()
