"""Every query of every dashboard, with its variables filled in, at a Prometheus that scraped a real run and hub."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from devbench_process import ROOT
from prometheus_server import POOL, Prometheus, Series, prometheus, target_labels

from bench.model.failure import Failure
from bench.model.result import Price, Result
from bench.model.spec import Workers

pytestmark = [pytest.mark.once, pytest.mark.needs("prometheus", "prometheus-3")]

VERSIONS = pytest.mark.parametrize("version", ["2", "3"])
INITIAL = {"$workload": ".*", "$backend": ".*", "$pool": ".*", "$__rate_interval": "1m", "$__range": "1h"}
"""Initial values of the variables."""

SELECTED = {"$workload": "tabular/small", "$backend": "(cpu|cuda)", "$pool": POOL}
"""Selected values of the variables. Grafana writes several values as a group."""

WITHOUT_MATCH = {"$workload": ".*", "$backend": ".*", "$pool": "another"}
"""Values that match no run."""

SILENT = ("devbench_device_power_watts", "devbench_cpu_throttled_seconds_total")
"""Metrics that not every machine has."""

TOKEN = "0123456789abcdef"
HUB_PREFIXES = ("devbench_result_", "devbench_hub_")


class Query(NamedTuple):
    """A query of a panel or a variable.

    Args:
        board: name of the dashboard.
        panel: title of the panel.
        expression: PromQL.
        legend: template of the legend.
        linked: whether each series links to the history of its result.
    """

    board: str
    panel: str
    expression: str
    legend: str = ""
    linked: bool = False

    @property
    def needs_hub(self) -> bool:
        """Whether a hub exports a metric of the query."""
        return bool(re.search(rf"\b({'|'.join(HUB_PREFIXES)})\w", self.expression))


def queries(selection: Mapping[str, str] = INITIAL) -> Iterator[Query]:
    """Yield every query, with these values of the variables."""
    for path in sorted((ROOT / "charts" / "devbench" / "dashboards").glob("*.json")):
        board = json.loads(path.read_text(encoding="utf-8"))
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                metric, label = variable["query"]["query"].removeprefix("label_values(").rstrip(")").split(", ")
                yield Query(path.stem, f"variable {label}", f"group by ({label}) ({metric})")
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                expression = target["expr"]
                for name, value in {**INITIAL, **selection}.items():
                    expression = expression.replace(name, value)
                assert "$" not in expression.replace('"$1"', "")  # a group of label_replace
                linked = "__field.labels.key" in json.dumps(panel["fieldConfig"]["defaults"].get("links", []))
                yield Query(path.stem, panel["title"], expression, target["legendFormat"], linked)


def has_series(query: Query, series: list[Series]) -> bool:
    """Return whether a query has series. Each must have the labels that the legend shows."""
    labels = set(re.findall(r"\{\{(\w+)\}\}", query.legend)) | ({"key"} if query.linked else set())
    assert all(labels <= set(item.labels) for item in series), query.panel
    return bool(series) or any(name in query.expression for name in SILENT)


def cases(needs_hub: bool) -> pytest.MarkDecorator:
    selected = [
        query for selection in (INITIAL, SELECTED) for query in queries(selection) if query.needs_hub == needs_hub
    ]
    selected = list(dict.fromkeys(selected))  # a query without variables occurs twice
    return pytest.mark.parametrize("query", selected, ids=lambda query: f"{query.board}: {query.panel}")


@VERSIONS
@cases(needs_hub=False)
def test_a_query_about_runs_has_series(scraped: Any, version: str, query: Query) -> None:
    assert has_series(query, scraped.servers[version].query(query.expression))


@VERSIONS
def test_the_variables_filter_the_series_of_runs(scraped: Any, version: str) -> None:
    (rate,) = (query.expression for query in queries() if query.panel == "Steps")
    for workload, count in (("tabular/small", 2), ("cifar", 0)):
        expression = rate.replace('workload=~".*"', f'workload=~"{workload}"')
        assert len(scraped.servers[version].query(expression)) == count
    for initial, filtered in zip(queries(), queries(WITHOUT_MATCH), strict=True):
        if initial != filtered and not initial.needs_hub:
            assert scraped.servers[version].query(filtered.expression) == [], filtered.panel


def hub_results(measured: list[Result]) -> Iterator[Result]:
    """Yield the results, completed with invented values that this machine cannot measure, and others derived from them.

    The others are results of a GPU with twice the speed, one of which failed, and earlier results of the same pool with
    half a CPU. In those, the CPU is ten times as slow as now and the GPU twice as slow. There are also results of one
    worker and of two workers, which have twice the throughput.
    """
    for index, result in enumerate(measured):
        cpu = result.model_copy(deep=True)
        cpu.price = Price(per_hour=1.0, currency="EUR")
        cpu.summary.cost_per_1000_steps = 0.01
        cpu.summary.flops_per_second = 1e9
        for sample in cpu.samples:
            if sample.telemetry is not None:
                sample.telemetry.package_joules = 10.0
        yield cpu
        yield from (with_workers(cpu, count) for count in (1, 2))
        gpu = cpu.model_copy(deep=True)
        gpu.id = f"{cpu.id}-gpu"
        gpu.spec = cpu.spec.model_copy(update={"backend": "cuda"})
        gpu.key = gpu.spec.key
        gpu.summary.bytes_per_second = {"h2d/4": 1e9, "d2h/4": 2e9}
        step, trace = gpu.summary.step_seconds, gpu.summary.phases["import"]
        assert step is not None
        step.value, trace.value = step.value / 2, trace.value * 2
        yield from (earlier(cpu, 10), earlier(gpu, 2))
        if index:
            gpu.status, gpu.failure = "failed", Failure(kind="crashed", message="invented")
        yield gpu


def with_workers(result: Result, count: int) -> Result:
    """Return the result of so many workers, with so many times the throughput."""
    copy = result.model_copy(deep=True)
    copy.id = f"{result.id}-{count}"
    copy.spec = result.spec.model_copy(update={"workers": Workers(count=count, strategy="multi-worker")})
    copy.key = copy.spec.key
    copy.summary.examples_per_second = count * (result.summary.examples_per_second or 0)
    return copy


def earlier(result: Result, factor: float) -> Result:
    """Return a result of the day before from the same pool, which had half a CPU. Steps take `factor` times as long."""
    copy = result.model_copy(deep=True)
    copy.id, copy.created = f"{result.id}-before", result.created - timedelta(days=1)
    copy.environment.host.cpu.limit = 0.5
    step = copy.summary.step_seconds
    assert step is not None
    step.value *= factor
    return copy


@pytest.fixture(scope="module")
def hub(scraped: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Host and port of a hub with these results."""
    database = str(tmp_path_factory.mktemp("hub") / "hub.db")
    command = [sys.executable, "-m", "bench", "hub", "--database", database, "--port", "0"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "DEVBENCH_HUB_TOKENS": TOKEN}
    process = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        url = next(line.split()[1] for line in process.stderr if line.startswith("hub: http"))
        for result in hub_results(scraped.results):
            headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
            body = result.model_dump_json().encode()
            request = urllib.request.Request(f"{url}/api/v1/results/{result.id}", body, headers, method="PUT")
            urllib.request.urlopen(request).close()
        yield url.removeprefix("http://").rstrip("/")
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture(scope="module", params=["2", "3"])
def hub_scraped(
    request: pytest.FixtureRequest,
    hub: str,
    prometheus_programs: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the hub."""
    folder = tmp_path_factory.mktemp("hub") / "prometheus"
    program = prometheus_programs[request.param]
    with prometheus(program, folder, {"hub": [hub]}, (), target_labels(request.param)) as server:
        server.wait_for("devbench_result_info")
        yield server


if importlib.util.find_spec("bench.hub") is not None:

    @cases(needs_hub=True)
    def test_a_query_about_results_or_the_hub_has_series(hub_scraped: Prometheus, query: Query) -> None:
        assert has_series(query, hub_scraped.wait_for(query.expression))

    def test_the_variables_filter_the_series_of_results(hub_scraped: Prometheus) -> None:
        for initial, filtered in zip(queries(), queries(WITHOUT_MATCH), strict=True):
            if initial != filtered and initial.needs_hub:
                series = [item for item in hub_scraped.query(filtered.expression) if item.value]
                assert series == [], filtered.panel

    def test_the_speed_up_is_relative_to_the_cpu_that_its_pool_has_now(hub_scraped: Prometheus) -> None:
        (speed_up,) = (query.expression for query in queries() if query.panel.startswith("Speed-up"))
        series = hub_scraped.query(speed_up)
        assert {item.labels["backend"] for item in series} == {"cuda"}  # that of the CPU would be 1
        assert sorted(item.labels["loop"] for item in series) == ["as-written", "step"]
        assert [item.value for item in series] == [pytest.approx(2)] * 2

    def test_the_break_even_is_relative_to_the_cpu_that_its_pool_has_now(hub_scraped: Prometheus, scraped: Any) -> None:
        (break_even,) = (query.expression for query in queries() if query.panel == "Break-even")
        steps = {item.labels["loop"]: item.value for item in hub_scraped.query(break_even)}
        summaries = {result.spec.loop: result.summary for result in scraped.results}
        assert steps == {
            loop: pytest.approx(summary.phases["import"].value / (summary.step_seconds.value / 2))
            for loop, summary in summaries.items()
        }

    def test_the_throughput_by_number_of_workers_has_a_value_for_each_number(
        hub_scraped: Prometheus, scraped: Any
    ) -> None:
        (rates,) = (query.expression for query in queries() if query.panel == "Throughput by number of workers")
        series = {
            (item.labels["loop"], item.labels["workers"]): item.value
            for item in hub_scraped.query(rates)
            if "suffix" not in item.labels  # neither a bound nor the ideal
        }
        assert series == {
            (result.spec.loop, workers): pytest.approx(count * result.summary.examples_per_second)
            for result in scraped.results
            for count, workers in ((1, "1 worker"), (2, "2 workers"))
        }

    def test_the_loop_of_a_result_names_its_workers_if_it_has_any(hub_scraped: Prometheus) -> None:
        (rates,) = (query.expression for query in queries() if query.panel == "Throughput")
        loops = sorted(item.labels["loop"] for item in hub_scraped.query(rates) if item.labels["backend"] == "cpu")
        assert sorted(set(loops)) == [
            "as-written", "as-written, 1 worker", "as-written, 2 workers", "step", "step, 1 worker", "step, 2 workers",
        ]  # fmt: skip

    def test_two_workers_with_twice_the_throughput_of_one_have_an_efficiency_of_1(hub_scraped: Prometheus) -> None:
        (efficiency,) = (query.expression for query in queries() if query.panel.startswith("Efficiency by"))
        series = hub_scraped.query(efficiency)
        assert {item.labels["workers"] for item in series} == {"1 worker", "2 workers"}
        assert [item.value for item in series] == pytest.approx([1.0] * len(series))

    def test_the_ideal_throughput_is_that_of_one_worker_times_the_number_of_workers(hub_scraped: Prometheus) -> None:
        (throughput,) = (query.expression for query in queries() if query.panel.startswith("Throughput by"))
        values = {(item.labels["what"], item.labels["count"]): item.value for item in hub_scraped.query(throughput)}
        lines = {what for what, _ in values if "," not in what}
        assert lines
        for line in lines:
            for count in ("1", "2"):
                low, high = (values[f"{line}, {bound}", count] for bound in ("low", "high"))
                assert low < values[line, count] < high
            assert values[f"{line}, ideal", "2"] == pytest.approx(2 * values[line, "1"])
