"""The hub under load: 10,000 results from 50 senders at once, then the time of its pages, and its memory.

`python -m benchmarks.hub [RESULTS] [sqlite|postgresql|both]`. The documents are those of `benchmarks.scale`: 20
workloads in four loops, here on two backends in two pools, which makes 320 comparison keys with histories that grow
alike. The senders are devbench's own, as threads of one process on the same machine, so on few cores they compete
with the hub. Then 50 senders send for a while as fast as they can while 200 readers read: first lists, then also
pages with charts. Slow pages must not delay writes. `wrk` measures reading over one connection on loopback: median
and 99th percentile. The first response after a change, which computes parts of the page again, is measured
separately. At the end, some senders send results that are almost as large as a hub accepts. The benchmark starts its
own PostgreSQL, which syncs to disk.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone
from itertools import count as count_from
from pathlib import Path
from queue import Empty, SimpleQueue

import psutil
import urllib3

from bench.errors import DevbenchError
from bench.model.environment import Deployment
from bench.model.result import Result
from bench.publish.hub.client import Client
from bench.render.charts import vega_process
from benchmarks.scale import WORKLOADS, copies, measure_originals

TOKEN = "0123456789abcdef"
SENDERS = 50
READERS = 200
LOAD_SECONDS = 30
BURST_SECONDS = 3
"""Seconds at the beginning in which all senders and readers connect at once."""

SENDING = 2
"""Processes of the senders that send while others read."""

READ_AT_RANDOM = """
local paths = {%s}
request = function()
  local number = string.format("%%06d", math.random(0, %d - 1))
  return wrk.format("GET", (paths[math.random(#paths)]:gsub("NUMBER", number)))
end
"""
"""A script of wrk. math.random starts in each thread with the same seed."""

SECONDS = 8
"""Seconds to read each page."""

CHANGES = 10
PAGES = 100
LARGE = 10
"""Senders of large results."""

LARGE_BYTES = 15_000_000
"""Size of a large result."""
CREATED = "2001-02-03T04:05:06Z"
BEGAN = datetime(2026, 1, 1, tzinfo=timezone.utc)


def templates(folder: Path) -> list[bytes]:
    """Return documents of all keys, with marks for the id and the time of each copy."""
    return [
        _template(result, pool, backend)
        for result in copies(measure_originals(folder), WORKLOADS * 4)
        for pool in ("a", "b")
        for backend in ("cpu", "cuda")
    ]


def _template(result: Result, pool: str, backend: str) -> bytes:
    spec = result.spec.model_copy(update={"backend": backend})
    host = result.environment.host.model_copy(update={"deployment": Deployment(pool=pool)})
    template = result.model_copy(
        update={
            "id": "MARK-OF-THE-ID",
            "group": "MARK-OF-THE-ID",
            "spec": spec,
            "key": spec.key,
            "environment": result.environment.model_copy(update={"host": host}),
            "created": datetime.fromisoformat(CREATED.replace("Z", "+00:00")),
        }
    )
    return template.model_dump_json(indent=1).encode()


def copy(documents: Sequence[bytes], number: int) -> tuple[str, bytes]:
    """Return the id and the text of a copy."""
    name = f"copy-{number:06d}"
    when = (BEGAN + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = (
        documents[number % len(documents)]
        .replace(b"MARK-OF-THE-ID", name.encode())
        .replace(CREATED.encode(), when.encode())
    )
    return name, body


@contextmanager
def run_hub(database: str) -> Iterator[tuple[str, int]]:
    """Run a hub in a separate process. Yield its address and process id."""
    from hubs import HubProcess

    hub = HubProcess(database)
    try:
        yield hub.url, hub.process.pid
    finally:
        hub.process.terminate()
        code = hub.wait()
        print(f"  exit code {code}; internal errors: {''.join(hub.log).count('internal error')}")


def fill(url: str, documents: Sequence[bytes], count: int) -> None:
    """Send documents from all senders at once, and print how fast the hub accepts them."""
    numbers: SimpleQueue[int] = SimpleQueue()
    for number in range(count):
        numbers.put(number)
    outcomes: Counter[str] = Counter()
    waits: list[float] = []

    def send() -> None:
        client = Client(url, TOKEN)
        while True:
            try:
                name, body = copy(documents, numbers.get_nowait())
            except Empty:
                return
            start = time.perf_counter()
            outcomes[client.put("results", name, body)] += 1
            waits.append(time.perf_counter() - start)

    took = seconds([threading.Thread(target=send) for _ in range(SENDERS)])
    print(f"  {count} results from {SENDERS} senders: {count / took:.0f}/s, {dict(outcomes)}; "
          f"response after {statistics.median(waits) * 1e3:.0f} ms (median)")  # fmt: skip


def seconds(threads: Sequence[threading.Thread]) -> float:
    """Run threads at the same time and return the seconds that they take."""
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def send_large(url: str, template: bytes) -> None:
    """Send some results at once that are almost as large as a hub accepts."""
    document = json.loads(template)
    samples = document["samples"]
    times = LARGE_BYTES // len(json.dumps(samples))
    document["samples"] = [{**samples[n % len(samples)], "trial": n + 1} for n in range(times * len(samples))]
    body = json.dumps(document).encode()
    outcomes: Counter[str] = Counter()

    def send(number: int) -> None:
        name, own = copy([body], number)
        outcomes[Client(url, TOKEN).put("results", name, own, retries=100)] += 1

    took = seconds([threading.Thread(target=send, args=(10**7 + number,)) for number in range(LARGE)])
    print(f"  {LARGE} results of {len(body) / 1e6:.1f} MB at once: {dict(outcomes)} in {took:.0f} s")


def under_load(url: str, documents: Sequence[bytes], count: int, paths: Sequence[str]) -> str:
    """Return how long writes and pages take while senders and readers are busy.

    Args:
        url: address of the hub.
        documents: templates of results.
        count: number of the hub's results, the first of which are read.
        paths: of the pages to read. NUMBER stands for a result.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script, ProcessPoolExecutor(SENDING) as senders:
        script.write(READ_AT_RANDOM % (", ".join(f'"{path}"' for path in paths), min(count, 1000)))
        script.flush()
        words = [
            "wrk",
            "-t2",
            f"-c{READERS}",
            f"-d{LOAD_SECONDS}s",
            "--timeout",
            "120s",
            "--latency",
            "-s",
            script.name,
        ]
        readers = subprocess.Popen([*words, url], stdout=subprocess.PIPE, text=True)
        begins = [10**5 * (place + 1 + len(paths)) for place in range(SENDING)]
        sent = list(
            senders.map(_send_for_a_while, *zip(*((url, documents[:16], begin) for begin in begins), strict=True))
        )
        output, _ = readers.communicate()
    timed = [pair for times, _ in sent for pair in times]
    waits = sorted(wait for _, wait in timed)
    later = sorted(wait for start, wait in timed if start >= BURST_SECONDS) or waits
    failures = sum(failed for _, failed in sent)
    quantiles = latencies(output)
    errors = re.search(r"Non-2xx.*", output)
    return (
        f"{len(waits) / LOAD_SECONDS:.0f} writes/s, median {statistics.median(waits):.2f} s, "
        f"p99 {waits[int(0.99 * len(waits))]:.2f} s ({later[int(0.99 * len(later))]:.2f} s after the first "
        f"{BURST_SECONDS} s), {failures} failed; pages: median {quantiles['50']}, "
        f"p99 {quantiles['99']}{', ' + errors[0].lower() if errors else ''}"
    )


def latencies(output: str) -> defaultdict[str, str]:
    """Return the latencies in wrk's output by their percentile. "?" for those that wrk did not print."""
    found = re.findall(r"^\s+(\d+)(?:\.0+)?%\s+(\S.*?)\s*$", output, re.M)
    return defaultdict(lambda: "?", found)


def _send_for_a_while(url: str, documents: Sequence[bytes], begin: int) -> tuple[list[tuple[float, float]], int]:
    """Send results for `LOAD_SECONDS`. One process of several.

    Returns:
        When each was sent and how long it took, in seconds, and how many failed.
    """
    waits: list[tuple[float, float]] = []
    failures: list[str] = []
    numbers, began = count_from(begin), time.perf_counter()

    def send() -> None:
        client = Client(url, TOKEN)
        while (start := time.perf_counter()) < began + LOAD_SECONDS:
            name, body = copy(documents, next(numbers))
            try:
                client.put("results", name, body)
            except DevbenchError as error:
                failures.append(error.message)
            waits.append((start - began, time.perf_counter() - start))

    seconds([threading.Thread(target=send) for _ in range(SENDERS // SENDING)])
    return waits, len(failures)


def result_count(url: str) -> int:
    """Return the number of results in the hub."""
    text = urllib3.request("GET", f"{url}/metrics").data.decode()
    match = re.search(r'^devbench_hub_rows\{table="results"\} (\S+)', text, re.M)
    assert match
    return int(float(match[1]))


def read(url: str, path: str) -> str:
    """Return the median and the 99th percentile of a page, measured by wrk."""
    urllib3.request("GET", url + path)
    done = subprocess.run(
        ["wrk", "-t1", "-c1", f"-d{SECONDS}s", "--latency", url + path], capture_output=True, text=True, check=True
    )
    quantiles = latencies(done.stdout)
    errors = re.search(r"Non-2xx.*", done.stdout)
    return f"{quantiles['50']} ({quantiles['99']} at p99){' ' + errors[0] if errors else ''}"


def after_changes(url: str, path: str, documents: Sequence[bytes], begin: int) -> float:
    """Return the median seconds of the first response after a new result."""
    client, times = Client(url, TOKEN), []
    for number in range(begin, begin + CHANGES):
        name, body = copy(documents, number)
        client.put("results", name, body)
        start = time.perf_counter()
        assert urllib3.request("GET", url + path).status == 200
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def memory(pid: int) -> float:
    """Return the megabytes of the hub and its processes. Shared memory counts once."""
    hub = psutil.Process(pid)
    processes = [hub, *hub.children(recursive=True)]
    return sum(float(process.memory_full_info()._asdict()["pss"]) for process in processes) / 1e6


@contextmanager
def most_memory(pid: int) -> Iterator[Callable[[], float]]:
    """Watch the memory. Yield a function that returns the maximum so far."""
    megabytes, stop = [memory(pid)], threading.Event()

    def watch() -> None:
        while not stop.wait(0.05):
            with suppress(psutil.NoSuchProcess):  # a process has just ended
                megabytes.append(memory(pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield lambda: max(megabytes)
    finally:
        stop.set()
        thread.join()


def measure(database: str, documents: Sequence[bytes], count: int) -> None:
    """Run all measurements on one database."""
    with run_hub(database) as (url, pid):
        fill(url, documents, count)
        print(f"  stored: {result_count(url)}; memory {memory(pid):.0f} MB")
        lists = ["/", "/results", "/api/v1/results", "/runs"]
        for what, more in (("lists", []), ("lists and pages with charts", ["/results/copy-NUMBER"] * 4)):
            print(f"  {SENDERS} senders, and {READERS} readers of {what}: "
                  f"{under_load(url, documents, count, lists + more)}")  # fmt: skip
        first = time.perf_counter()
        urllib3.request("GET", url)
        print(f"  first overview, which computes all comparisons: {time.perf_counter() - first:.1f} s")
        series = urllib3.request("GET", f"{url}/api/v1/results?limit=1").json()["results"][0]["comparison_key"]
        paths = ["/", "/metrics", "/api/v1/results", "/results", f"/api/v1/history/{series}", "/results/copy-000001"]
        for path in paths:
            print(f"  {path.replace(series, 'KEY')}: {read(url, path)}")
        for place, path in enumerate(("/", "/metrics")):
            begin = count + place * CHANGES
            print(f"  {path}, first response after a change: {after_changes(url, path, documents, begin) * 1e3:.0f} ms")
        print(f"  memory: {memory(pid):.0f} MB")
        with most_memory(pid) as most:
            for number in range(PAGES):
                assert urllib3.request("GET", f"{url}/results/copy-{number:06d}").status == 200
            print(f"  memory while {PAGES} pages with charts are drawn: at most {most():.0f} MB")
        time.sleep(vega_process.IDLE + 5)
        print(f"  memory after the drawing process has ended: {memory(pid):.0f} MB")
        with most_memory(pid) as most:
            send_large(url, documents[0])
            print(f"  memory meanwhile: at most {most():.0f} MB")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    which = sys.argv[2] if len(sys.argv) > 2 else "both"
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "hub"))
    import postgres

    with tempfile.TemporaryDirectory() as folder:
        documents = templates(Path(folder) / "measured")
        size = sum(map(len, documents)) / len(documents)
        print(f"{count} results of {size / 1e3:.0f} kB, {len(documents)} comparison keys")
        if which in ("sqlite", "both"):
            print("SQLite:")
            measure(str(Path(folder) / "hub.db"), documents, count)
        if which in ("postgresql", "both"):
            print("PostgreSQL:")
            with postgres.cluster(durable=True) as cluster:
                measure(cluster.database(), documents, count)


if __name__ == "__main__":
    main()
