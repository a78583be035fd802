"""Time and memory of `devbench compare` and `report` on a folder of 10,000 results, and the size of the report.

`python -m benchmarks.scale [RESULTS]`. The results are copies of real ones that are measured first: four loops of a
small program, with each process repeated ten times, as many as a usual run has. Each copy has its own ids, and times
that vary by a few percent, like nightly runs of twenty workloads. The program prints the wall time of the whole
command and its peak memory, and the same for `devbench --version`.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import bench
from bench.model.result import Result
from bench.store import files

WORKLOADS = 20
PROCESSES = 10


def measure_originals(folder: Path) -> list[Result]:
    """Measure the results to copy."""
    loops = "as-written,step,resident,fused"
    return list(bench.run(["tabular"], case="small", loop=loops, max_processes=2, output=folder).results)


def copies(originals: Sequence[Result], count: int) -> Iterator[Result]:
    """Yield `count` results: many nights of each workload."""
    for number in range(count // len(originals)):
        workload, night = number % WORKLOADS, number // WORKLOADS
        for place, original in enumerate(originals):
            spec = original.spec.model_copy(update={"workload": f"workload-{workload:02}"})
            factor = random.lognormvariate(0, 0.03)
            samples = [
                sample.model_copy(
                    update={
                        "trial": trial,
                        "series": [
                            series.model_copy(
                                update={
                                    "blocks": [
                                        block.model_copy(update={"seconds": block.seconds * factor})
                                        for block in series.blocks
                                    ]
                                }
                            )
                            for series in sample.series
                        ],
                    }
                )
                for trial in range(1, PROCESSES + 1)
                for sample in original.samples[:1]
            ]
            yield original.model_copy(
                update={
                    "id": f"20260101T{number:09}-{place:08}",
                    "group": f"group-{number}",
                    "created": original.created + timedelta(days=night),
                    "spec": spec,
                    "key": spec.key,
                    "samples": samples,
                }
            )


def time_command(*words: str) -> tuple[float, int, int]:
    """Return a command's seconds, peak memory in bytes, and lines of output."""
    if sys.platform == "win32":
        raise SystemExit("Windows does not report the peak memory of a command")
    with tempfile.TemporaryFile() as out:
        start = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "bench", *words], stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"devbench {' '.join(words)} exited with {process.returncode}")
        out.seek(0)
        return seconds, usage.ru_maxrss * 1024, sum(1 for _ in out)


def main() -> None:
    """Print a line per command."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as scratch:
        folder, page = Path(scratch) / "many", Path(scratch) / "report.html"
        originals = measure_originals(Path(scratch) / "few")
        folder.mkdir()
        size = 0
        for result in copies(originals, count):
            size += files.write(result, folder).stat().st_size
        print(f"{count} results of {size / count / 1000:.0f} kB")
        for words in (("--version",), ("compare", str(folder)), ("report", str(folder), "--output", str(page))):
            seconds, memory, lines = min(time_command(*words) for _ in range(3))
            print(f"devbench {words[0]:10} {seconds:6.2f} s  {memory / 1e6:5.0f} MB  {lines} lines", flush=True)
        print(f"report of {page.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
