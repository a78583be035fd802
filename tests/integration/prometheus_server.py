"""A real Prometheus that scrapes every second and answers queries."""

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

from devbench_process import CompletedRun, DevbenchProcess, start_devbench

from bench.model.result import Result

SECONDS = 120

KUBERNETES_LABELS = {
    "namespace": "bench", "pod": "devbench-t4-0-abcde", "container": "run", "endpoint": "metrics", "service": "hub",
}  # fmt: skip
"""Labels that the Prometheus operator adds to its targets."""


def target_labels(version: str) -> dict[str, str]:
    """Return the labels of targets. Prometheus 3 has those of kube-prometheus-stack, Prometheus 2 has none."""
    return KUBERNETES_LABELS if version == "3" else {}


@dataclass(frozen=True)
class Series:
    """One series of the response to a query."""

    labels: Mapping[str, str]
    value: float


class Prometheus:
    """A running Prometheus.

    Args:
        url: its address.
        process: its process.
        log: file with its output.
    """

    def __init__(self, url: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.url = url
        self.process = process
        self.log = log

    def api(self, path: str, **parameters: str) -> Any:
        """Return the data of a response.

        Raises:
            AssertionError: Prometheus refused the request.
        """
        address = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(address, timeout=60) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def query(self, expression: str) -> list[Series]:
        """Return the series of an expression now."""
        series = self.api("query", query=expression)["result"]
        return [Series(item["metric"], float(item["value"][1])) for item in series]

    def value(self, expression: str) -> float:
        """Return the value of an expression with one series now."""
        (series,) = self.query(expression)
        return series.value

    def wait_for(self, expression: str) -> Any:
        """Wait until an expression has a series, and return its series."""
        return self._wait_until(lambda: self.query(expression), f"no series matches {expression}")

    def _wait_until(self, poll: Any, failure: str) -> Any:
        pause = threading.Event()
        for _ in range(5 * SECONDS):
            assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
            if value := poll():
                return value
            pause.wait(0.2)
        raise AssertionError(f"{failure}. Targets: {self.api('targets')['activeTargets']}")

    def metadata(self) -> dict[str, Any]:
        """Return the type, unit and help of each metric. Names of counters and infos may lack their suffix."""
        return {name: entries[0] for name, entries in self.api("metadata").items()}

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=10) as response:
                return bool(response.status == 200)
        except OSError:
            return False


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def prometheus(
    program: str,
    folder: Path,
    jobs: Mapping[str, Sequence[str]],
    rules: Sequence[Path] = (),
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes the targets of jobs, such as 127.0.0.1:9100, and labels them."""
    folder.mkdir(parents=True)
    scrape_configs = [
        {"job_name": job, "static_configs": [{"targets": list(targets), "labels": dict(labels)}]}
        for job, targets in jobs.items()
    ]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "scrape_configs": scrape_configs,
        "rule_files": [str(rule.resolve()) for rule in rules],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    address = f"127.0.0.1:{free_port()}"
    arguments = [program, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*arguments, f"--web.listen-address={address}"], stdout=log, stderr=log)
    server = Prometheus(f"http://{address}", process, folder / "log")
    try:
        server._wait_until(server._ready, "Prometheus is not ready")
        yield server
    finally:
        process.terminate()
        process.wait()


SCRAPED_COMMAND = (
    "tabular",
    "--case",
    "small",
    "--loop",
    "as-written,step",
    "--max-processes",
    "2",
    "--max-time",
    "2m",
)
POOL = "t4-spot"


@dataclass(frozen=True)
class Scraped:
    """A completed run that still serves its metrics.

    Args:
        run: its process.
        url: address of its metrics.
        servers: the Prometheus servers that scraped it, by major version.
    """

    run: DevbenchProcess
    url: str
    servers: dict[str, Prometheus]

    @property
    def results(self) -> list[Result]:
        """The results of the run."""
        return CompletedRun(0, "", "", self.run.folder / "results").results


@contextmanager
def scraped_run(folder: Path, programs: Mapping[str, str]) -> Iterator[Scraped]:
    """Measure two results interleaved, scraped by each Prometheus from the first second."""
    options = ("--metrics-port", "0", "--metrics-host", "127.0.0.1", "--linger", "10h")
    command = ("run", *SCRAPED_COMMAND, *options)
    process = start_devbench(folder / "run", *command, pipe_stderr=True, DEVBENCH_POOL=POOL)
    with process as run, ExitStack() as stack:
        run.wait_for("metrics: ")
        (url,) = re.findall(r"http://\S+", run.piped)
        target = {"run": [urllib.parse.urlsplit(url).netloc]}
        servers = {
            version: stack.enter_context(prometheus(program, folder / version, target, (), target_labels(version)))
            for version, program in programs.items()
        }
        run.wait_for("for a last scrape")
        for server in servers.values():
            server.wait_for('sum(devbench_run_state{state="complete"}) == 2')
        yield Scraped(run, url, servers)
