"""Is a step of a forked worker as fast as a step of a fresh one, how much sooner is it ready, and do both vary alike?

`python -m benchmarks.forked ratio [TRIALS] [CASE] [BACKEND]`: each trial interleaves a fresh worker with one that is
forked. Each starts first in every second trial. Claim: the ratio of their steps is within 1% of 1. BACKEND is `cpu`
or `cuda`.

`python -m benchmarks.forked spread [SERVERS] [WORKERS] [CASE]`: the workers of one server share the layout of their
memory and the seed of hashes, which differ between fresh processes. If these affected a step, trials that are forked
from one server would vary too little, and intervals would be too narrow. The program interleaves each worker with one
that runs throughout, so that the ratio is free of what happens on the machine. It divides the variance of forked
workers into a part between servers and a part within them, and compares both with the variance of fresh workers.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import time

from bench import backends
from bench.analyse.samples import typical_ratio
from bench.model.spec import Spec
from bench.session.process import StartProcess, spawn
from bench.session.worker_sample import WorkerSample
from bench.session.worker_servers import WorkerServers
from benchmarks.interleaved import interval, spec_of, start_worker, variation

CASES = (("tabular", "small", "step"), ("tabular", "small", "fit"), ("cifar", "", "step"))
ROUNDS = 25
TIMEOUT = 300.0


def server_for(servers: WorkerServers, spec: Spec) -> StartProcess:
    """Return how workers of a spec are forked, once their server is ready."""
    if not servers.wait(backends.load(spec.backend).environment(spec), TIMEOUT):
        raise SystemExit(servers.problem)
    return servers.fork


def warm(spec: Spec, start: StartProcess) -> tuple[WorkerSample, float]:
    """Return a worker that is warmed up and suspended, and the seconds until it was ready for its first timed step."""
    started = time.perf_counter()
    worker = start_worker(spec, start=start)
    worker.set_up()
    seconds = time.perf_counter() - started
    worker.warm_up()
    worker.suspend()
    return worker, seconds


def log_ratios(base: WorkerSample, other: WorkerSample) -> tuple[float, float]:
    """Interleave two workers and return the logarithms of the ratios of their steps and of their CPU time per step.

    The CPU time says more on a machine where other work interrupts the workers.
    """
    done = [len(worker.sample.series[0].blocks) for worker in (base, other)]
    for number in range(ROUNDS):
        for turn, worker in enumerate(random.sample((base, other), 2)):
            worker.resume()
            worker.run_round(2 * number + turn, lead=True)
            worker.suspend()
    a, b = (worker.sample.series[0].blocks[n:] for worker, n in zip((base, other), done, strict=True))
    cpu = [statistics.median(block.cpu_seconds / block.steps for block in blocks) for blocks in (a, b)]
    return typical_ratio(a, b), math.log(cpu[1] / cpu[0])


def end(worker: WorkerSample) -> None:
    """End a worker at once."""
    worker.process.kill()
    worker.close()


def ratio(trials: int, case: int, backend: str) -> None:
    """Print the ratio of the steps and of the starts, forked to fresh and fresh to forked."""
    if trials < 2:
        raise SystemExit("`ratio` needs at least 2 trials")
    spec = spec_of(*CASES[case], backend)
    ratios, cpu_ratios, starts = [], [], []
    with WorkerServers() as servers:
        for trial in range(trials):
            kinds: list[StartProcess] = [spawn, server_for(servers, spec)]
            if trial % 2:
                kinds.reverse()
            workers = {kind == spawn: warm(spec, kind) for kind in kinds}
            (fresh, fresh_seconds), (forked, forked_seconds) = workers[True], workers[False]
            wall, cpu = log_ratios(fresh, forked)
            ratios.append(math.exp(wall))
            cpu_ratios.append(math.exp(cpu))
            starts.append((fresh_seconds, forked_seconds))
            print(
                f"step {ratios[-1]:.4f}   start {fresh_seconds:.2f} s fresh, {forked_seconds:.2f} s forked", flush=True
            )
            end(fresh)
            end(forked)
    fresh_start, forked_start = (statistics.median(seconds) for seconds in zip(*starts, strict=True))
    print(f"{' '.join(CASES[case])}: step, forked / fresh: {interval(ratios)}, varies by {variation(ratios):.1%}")
    print(f"CPU time of a step, forked / fresh: {interval(cpu_ratios)}, varies by {variation(cpu_ratios):.1%}")
    print(
        f"start: fresh {fresh_start:.2f} s, forked {forked_start:.2f} s: {fresh_start / forked_start:.1f} times sooner"
    )


def spread(servers: int, workers: int, case: int) -> None:
    """Print how much workers vary: fresh ones, those of one server, and the means of servers."""
    spec = spec_of(*CASES[case])
    reference, _ = warm(spec, spawn)

    def sample(start: StartProcess) -> float:
        worker, _ = warm(spec, start)
        value = log_ratios(reference, worker)[0]
        end(worker)
        return value

    fresh: list[float] = []
    forked: list[list[float]] = []
    for number in range(servers):
        with WorkerServers() as own:
            fork = server_for(own, spec)
            forked.append([])
            for _ in range(workers):  # fresh and forked workers alternate, so both meet the same conditions
                forked[number].append(sample(fork))
                fresh.append(sample(spawn))
        print(f"server {number + 1}: forked {forked[number]}, fresh {fresh[-workers:]}", flush=True)
    end(reference)
    within = statistics.fmean(statistics.variance(values) for values in forked)
    between = statistics.variance(statistics.fmean(values) for values in forked)
    f = workers * between / within
    print(f"{' '.join(CASES[case])}: {servers} servers, {workers} workers each")
    print(f"fresh workers vary by {statistics.stdev(fresh):.2%}; forked from one server {math.sqrt(within):.2%}")
    print(f"server's own share: {math.sqrt(max(0.0, between - within / workers)):.2%} (F = {f:.2f})")
    difference = statistics.fmean(value for values in forked for value in values) - statistics.fmean(fresh)
    print(f"forked / fresh: {math.exp(difference):.4f}")


def main() -> None:
    """Run what the arguments name."""
    mode, *numbers = sys.argv[1:] or ["ratio"]
    if mode == "ratio":
        backend = numbers.pop() if len(numbers) > 2 else "cpu"
        trials, case = [*map(int, numbers), *(20, 0)[len(numbers) :]]
        ratio(trials, case, backend)
    else:
        servers, workers, case = [*map(int, numbers), *(4, 6, 0)[len(numbers) :]]
        spread(servers, workers, case)


if __name__ == "__main__":
    main()
