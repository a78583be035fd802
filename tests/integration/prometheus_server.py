"""A real Prometheus in a folder and on ports of its own, which scrapes every second and answers queries."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from devbench_process import Devbench, Ended, started

from bench.model.result import Result

SECONDS = 120

BY_KUBERNETES = {
    "namespace": "bench", "pod": "devbench-t4-0-abcde", "container": "run", "endpoint": "metrics", "service": "hub",
}  # fmt: skip
"""Labels that the Prometheus operator gives to whatever it has found."""


def labelled(version: str) -> dict[str, str]:
    """A Prometheus 3 labels its targets as kube-prometheus-stack does, a 2 not at all."""
    return BY_KUBERNETES if version == "3" else {}


@dataclass(frozen=True)
class Point:
    """One series of an answer."""

    labels: Mapping[str, str]
    value: float


class Prometheus:
    """One that is running.

    Args:
        url: where it listens.
        process: its own.
        log: what it said.
    """

    def __init__(self, url: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.url = url
        self.process = process
        self.log = log

    def api(self, path: str, **parameters: str) -> Any:
        """The data of an answer; a query that it refuses fails with what it said."""
        address = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def query(self, expression: str) -> list[Point]:
        """What an expression is now."""
        found = self.api("query", query=expression)["result"]
        return [Point(each["metric"], float(each["value"][1])) for each in found]

    def value(self, expression: str) -> float:
        """What an expression of one series is now."""
        (point,) = self.query(expression)
        return point.value

    def until(self, expression: str) -> Any:
        """Waits until there is an answer."""
        return self.waits(lambda: self.query(expression), f"nothing is {expression}")

    def waits(self, what: Any, otherwise: str) -> Any:
        """Asks again and again until there is something."""
        pause = threading.Event()
        for _ in range(5 * SECONDS):
            assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
            if found := what():
                return found
            pause.wait(0.2)
        raise AssertionError(f"{otherwise}; targets: {self.api('targets')['activeTargets']}")

    def metadata(self) -> dict[str, Any]:
        """Metric: its type, unit and help; a counter and an info by their names without suffix, or with it."""
        return {name: told[0] for name, told in self.api("metadata").items()}

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def free_port() -> int:
    """One that nobody listens at just now."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def prometheus(
    program: str,
    folder: Path,
    jobs: Mapping[str, Sequence[str]],
    rules: Sequence[Path] = (),
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Prometheus]:
    """One that scrapes each job's targets, such as 127.0.0.1:9100, until the end, and gives them labels."""
    folder.mkdir(parents=True)
    scraped = [
        {"job_name": job, "static_configs": [{"targets": list(targets), "labels": dict(labels)}]}
        for job, targets in jobs.items()
    ]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "scrape_configs": scraped,
        "rule_files": [str(each.resolve()) for each in rules],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")  # which is YAML too
    address = f"127.0.0.1:{free_port()}"
    words = [program, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*words, f"--web.listen-address={address}"], stdout=log, stderr=log)
    made = Prometheus(f"http://{address}", process, folder / "log")
    try:
        made.waits(made._ready, "Prometheus is not ready")
        yield made
    finally:
        process.terminate()
        process.wait()


ASKED = ("tabular", "--case", "small", "--loop", "as-written,step", "--max-processes", "2", "--max-time", "2m")
POOL = "t4-spot"


@dataclass(frozen=True)
class Scraped:
    """A run that is over, but serves its metrics still.

    Args:
        run: its process.
        url: of its metrics.
        by: what scraped it, by Prometheus' major version.
    """

    run: Devbench
    url: str
    by: dict[str, Prometheus]

    @property
    def results(self) -> list[Result]:
        """What it measured."""
        return Ended(0, "", "", self.run.folder / "results").every


@contextmanager
def scraped_run(folder: Path, programs: Mapping[str, str]) -> Iterator[Scraped]:
    """Two results in turns, complete, and scraped by each Prometheus from their first second on."""
    words = ("--metrics-port", "0", "--metrics-host", "127.0.0.1", "--linger", "10h")
    in_a_pool = started(folder / "run", "run", *ASKED, *words, listen=True, DEVBENCH_POOL=POOL)
    with in_a_pool as run, ExitStack() as stack:
        run.until("metrics: ")
        (url,) = re.findall(r"http://\S+", run.heard)
        target = {"run": [urllib.parse.urlsplit(url).netloc]}
        by = {
            version: stack.enter_context(prometheus(program, folder / version, target, (), labelled(version)))
            for version, program in programs.items()
        }
        run.until("for a last scrape")
        for each in by.values():
            each.until('sum(devbench_run_state{state="complete"}) == 2')
        yield Scraped(run, url, by)
