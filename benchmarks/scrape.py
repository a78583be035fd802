"""A step while metrics are served and scraped every second, compared with a step without metrics.

`python -m benchmarks.scrape [ROUNDS [CASE…]]`, with the cases of `benchmarks.observer` whose loop is `step`. One
worker runs stretches of blocks, five per order, as in a run. In every second stretch, its parent updates the metrics
after each order, and another process scrapes them every second, in OpenMetrics, as Prometheus does. In the others,
nothing is served. Each stretch is compared with its neighbours. The cost of the scraper counts too, because it runs
on the same machine. The program also prints how much stretches without metrics differ from each other.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from bench.model.result import Result
from bench.model.run_state import LiveProgress, LiveResult
from bench.publish.prometheus.collector import Metrics
from bench.publish.prometheus.exporter import serve
from bench.session.worker_sample import WorkerSample
from bench.version import __version__
from benchmarks.inside import median
from benchmarks.interleaved import spec_of, warm_worker
from benchmarks.observer import CASES

ROUNDS = 60
STRETCH_SECONDS = 2.0
BLOCKS = 5
SCRAPER = """
import sys, threading, time, urllib.request
on = threading.Event()
def scrape():
    due = time.monotonic()
    while True:
        due += 1
        time.sleep(max(0, due - time.monotonic()))
        if on.is_set():
            headers = {"Accept": "application/openmetrics-text; version=1.0.0", "Accept-Encoding": "gzip"}
            urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers=headers)).read()
            print(flush=True)
threading.Thread(target=scrape, daemon=True).start()
for line in sys.stdin:
    on.clear() if on.is_set() else on.set()
"""


class Scraper:
    """A process that scrapes once per second while it is on. It prints a line per scrape."""

    def __init__(self, url: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SCRAPER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.on = False

    def turn(self, on: bool) -> None:
        """Turn it on or off."""
        if on != self.on:
            assert self.process.stdin
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            self.on = on

    def close(self) -> int:
        """End it and return the number of scrapes."""
        rest, _ = self.process.communicate()
        return len(rest)


def stretch(worker: WorkerSample, metrics: Metrics | None, moment: LiveProgress) -> float:
    """Return the seconds of a step, over blocks of at least `STRETCH_SECONDS`."""
    blocks = worker.sample.series[0].blocks
    first = len(blocks)
    while math.fsum(block.seconds for block in blocks[first:]) < STRETCH_SECONDS:
        worker.run_blocks(BLOCKS, len(blocks))
        if metrics is not None:
            metrics(moment)
    mine = blocks[first:]
    return math.fsum(block.seconds for block in mine) / sum(block.steps for block in mine)


def measure(workload: str, case: str, rounds: int) -> tuple[list[float], int]:
    """Return the step times of stretches, alternately without and with metrics, and the number of scrapes."""
    spec = spec_of(workload, case, "step")
    worker = warm_worker(spec)
    now = datetime.now(timezone.utc)
    result = Result(
        id="scrape", created=now, devbench=__version__, spec=spec, key=spec.key, group="scrape", samples=[worker.sample]
    )
    moment = LiveProgress(title=spec.label, phase="steady state", results=(LiveResult(result, 32),))
    metrics = Metrics()
    metrics(moment)
    with serve(metrics, "127.0.0.1", 0) as url:
        scraper = Scraper(url)
        worker.process.resume()
        stretch(worker, None, moment)
        seconds = []
        for number in range(2 * rounds + 1):
            on = number % 2 == 1
            scraper.turn(on)
            seconds.append(stretch(worker, metrics if on else None, moment))
        scraper.turn(False)
        scrapes = scraper.close()
    worker.process.kill()
    worker.close()
    return seconds, scrapes


def against_neighbours(seconds: Sequence[float]) -> list[float]:
    """Return every second value over the mean of its two neighbours."""
    return [2 * seconds[n] / (seconds[n - 1] + seconds[n + 1]) for n in range(1, len(seconds) - 1, 2)]


def main() -> None:
    """Print a line per case."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    if rounds < 2:
        sys.exit("ROUNDS must be at least 2: the difference between two stretches without metrics is measured too.")
    cases = [CASES[int(place)] for place in sys.argv[2:]] or [case for case in CASES if case[2] == "step"]
    for workload, case, loop in cases:
        seconds, scrapes = measure(workload, case, rounds)
        name = f"{Path(workload).stem}/{case}".rstrip("/")
        ratio, noise = median(against_neighbours(seconds)), median(against_neighbours(seconds[::2]))
        print(f"{name:22} {loop:5} scraped/not {ratio} rounds, {scrapes} scrapes   not/not {noise}", flush=True)


if __name__ == "__main__":
    main()
