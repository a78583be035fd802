"""How much each estimator varies between processes, and its ratio within trials of two workers of one spec.

`python -m benchmarks.noise [TRIALS] [WORKLOAD CASE LOOP]`. The two workers are interleaved, so every deviation of
their ratio from 1 is noise. Comparisons use the estimator whose ratio varies least
(`bench.analyse.samples.paired_contrast`).
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
import sys
from collections.abc import Callable, Sequence

from bench.analyse.samples import faster_half, mean_step, typical_ratio, typical_step
from bench.model.sample import Block
from benchmarks.interleaved import interval, spec_of, variation, warm_worker

ROUNDS = 20


def minimum(blocks: Sequence[Block]) -> float:
    """Return the seconds per step of the fastest block."""
    return min(b.step_seconds for b in blocks)


ESTIMATORS: dict[str, Callable[[Sequence[Block]], float]] = {
    "mean": mean_step,
    "median": typical_step,
    "faster half": faster_half,
    "minimum": minimum,
}


def trial(workload: str, case: str, loop: str) -> list[list[Block]]:
    """Return the blocks of two workers of one spec, interleaved."""
    spec = spec_of(workload, case, loop)
    workers = [warm_worker(spec) for _ in range(2)]
    positions = itertools.count()
    for _ in range(ROUNDS):
        for worker in random.sample(workers, 2):
            worker.process.resume()
            worker.run_round(next(positions), lead=True)
            worker.process.suspend()
    for worker in workers:
        worker.process.kill()
        worker.close()
    return [worker.sample.series[0].blocks for worker in workers]


def main() -> None:
    """Print a line per estimator."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    workload, case, loop = sys.argv[2:5] if len(sys.argv) > 4 else ("tabular", "small", "step")
    trials = [trial(workload, case, loop) for _ in range(count)]
    print(f"{workload} {case}, {loop}, {count} trials of two workers of one spec, {ROUNDS} blocks each")
    print(
        f"{'estimator':12} {'between processes':>18} {'neighbours correlate':>21} {'ratio in a trial':>18}  mean ratio"
    )
    for name, estimator in ESTIMATORS.items():
        values = [[estimator(blocks) for blocks in pair] for pair in trials]
        level = [v[0] for v in values]
        ratios = [v[1] / v[0] for v in values]
        near = statistics.correlation(level, [v[1] for v in values]) if count > 2 else float("nan")
        print(f"{name:12} {variation(level):18.2%} {near:21.2f} {variation(ratios):18.2%}  {interval(ratios)}")
    ratios = [math.exp(typical_ratio(*pair)) for pair in trials]
    print(f"{'by rounds':12} {'':18} {'':21} {variation(ratios):18.2%}  {interval(ratios)}")


if __name__ == "__main__":
    main()
