"""Every query of every dashboard, its variables filled in, answered by a Prometheus that scraped a real run and hub."""

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
from prometheus_server import POOL, Point, Prometheus, labelled, prometheus

from bench.model.failure import Failure
from bench.model.result import Price, Result
from bench.publish.prometheus.metrics import METRICS

pytestmark = [pytest.mark.once, pytest.mark.needs("prometheus", "prometheus-3")]

VERSIONS = pytest.mark.parametrize("version", ["2", "3"])
ALL = {"$workload": ".*", "$backend": ".*", "$pool": ".*", "$__rate_interval": "1m", "$__range": "1h"}
"""The variables as they are at first."""

ONE = {"$workload": "tabular/small", "$backend": "(cpu|cuda)", "$pool": POOL}
"""The variables once something is chosen, several at once as Grafana writes them."""

NONE = {"$workload": ".*", "$backend": ".*", "$pool": "another"}

SILENT = ("devbench_device_power_watts", "devbench_cpu_throttled_seconds_total")
"""Not every machine tells of these."""

TOKEN = "0123456789abcdef"
OF_HUB = ("devbench_result_", "devbench_hub_")


class Asked(NamedTuple):
    """One query of a panel."""

    board: str
    panel: str
    expression: str
    legend: str = ""
    linked: bool = False

    @property
    def of_hub(self) -> bool:
        """Whether a hub must be there."""
        return any(name in self.expression for name in OF_HUB)


def asked(chosen: Mapping[str, str] = ALL) -> Iterator[Asked]:
    """Every query with what is chosen of each variable; `linked`: each series leads to its result's history."""
    for path in sorted((ROOT / "charts" / "devbench" / "dashboards").glob("*.json")):
        board = json.loads(path.read_text(encoding="utf-8"))
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                metric, label = variable["query"]["query"].removeprefix("label_values(").rstrip(")").split(", ")
                yield Asked(path.stem, f"variable {label}", f"group by ({label}) ({metric})")
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                expression = target["expr"]
                for name, value in {**ALL, **chosen}.items():
                    expression = expression.replace(name, value)
                assert "$" not in expression
                linked = "__field.labels.key" in json.dumps(panel["fieldConfig"]["defaults"].get("links", []))
                yield Asked(path.stem, panel["title"], expression, target["legendFormat"], linked)


def answered(one: Asked, found: list[Point]) -> bool:
    """Whether there are series, each with the labels that its legend shows."""
    shown = set(re.findall(r"\{\{(\w+)\}\}", one.legend)) | ({"key"} if one.linked else set())
    assert all(shown <= set(each.labels) for each in found), one.panel
    return bool(found) or any(name in one.expression for name in SILENT)


def cases(of_hub: bool) -> pytest.MarkDecorator:
    found = [each for chosen in (ALL, ONE) for each in asked(chosen) if each.of_hub == of_hub]
    found = list(dict.fromkeys(found))  # one that names no variable is the same
    return pytest.mark.parametrize("one", found, ids=lambda one: f"{one.board}: {one.panel}")


@VERSIONS
@cases(of_hub=False)
def test_a_query_about_runs_is_answered(scraped: Any, version: str, one: Asked) -> None:
    assert answered(one, scraped.by[version].query(one.expression))


@VERSIONS
def test_a_choice_narrows_what_is_shown(scraped: Any, version: str) -> None:
    (rate,) = (one.expression for one in asked() if one.panel == "Steps")
    there, elsewhere = 'workload=~"tabular/small"', 'workload=~"cifar"'
    for chosen, series in ((there, 2), (elsewhere, 0)):
        assert len(scraped.by[version].query(rate.replace('workload=~".*"', chosen))) == series
    for everything, nothing in zip(asked(), asked(NONE), strict=True):
        if everything != nothing and not everything.of_hub:
            assert scraped.by[version].query(nothing.expression) == [], nothing.panel


def test_every_metric_of_a_run_is_asked_for() -> None:
    text = " ".join(one.expression for one in asked())
    assert [each.name for each in METRICS if each.name not in text] == []


def known_to_the_hub(measured: list[Result]) -> Iterator[Result]:
    """The results themselves, with what this machine can't measure made up; and a GPU's, twice as fast, one failed.

    Before them those of the same pool while it had half a CPU, ten times as slow on the CPU as on the GPU.
    """
    for number, found in enumerate(measured):
        own = found.model_copy(deep=True)
        own.price = Price(per_hour=1.0, currency="EUR")
        own.summary.cost_per_1000_steps = 0.01
        own.summary.flops_per_second = 1e9
        for sample in own.samples:
            if sample.telemetry is not None:
                sample.telemetry.package_joules = 10.0
        yield own
        gpu = own.model_copy(deep=True)
        gpu.id = f"{own.id}-gpu"
        gpu.spec = own.spec.model_copy(update={"backend": "cuda"})
        gpu.key = gpu.spec.key
        gpu.summary.bytes_per_second = {"h2d/4": 1e9, "d2h/4": 2e9}
        step, trace = gpu.summary.step_seconds, gpu.summary.phases["import"]
        assert step is not None
        step.value, trace.value = step.value / 2, trace.value * 2
        yield from (before(own, 10), before(gpu, 2))
        if number:
            gpu.status, gpu.failure = "failed", Failure(kind="crashed", message="made up")
        yield gpu


def before(now: Result, times: float) -> Result:
    """What was measured a day before in the same pool, which had half a CPU, by steps so many times as long."""
    made = now.model_copy(deep=True)
    made.id, made.created = f"{now.id}-before", now.created - timedelta(days=1)
    made.environment.host.cpu.limit = 0.5
    step = made.summary.step_seconds
    assert step is not None
    step.value *= times
    return made


@pytest.fixture(scope="module")
def hub(scraped: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Host and port of a hub that holds these results."""
    words = ["hub", "--database", str(tmp_path_factory.mktemp("hub") / "hub.db"), "--port", "0"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "DEVBENCH_HUB_TOKENS": TOKEN}
    process = subprocess.Popen([sys.executable, "-m", "bench", *words], env=environ, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        url = next(line.split()[1] for line in process.stderr if line.startswith("hub: http"))
        for result in known_to_the_hub(scraped.results):
            headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
            body = result.model_dump_json().encode()
            put = urllib.request.Request(f"{url}/api/v1/results/{result.id}", body, headers, method="PUT")
            urllib.request.urlopen(put).close()
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
    of = prometheus_programs[request.param]
    with prometheus(of, folder, {"hub": [hub]}, (), labelled(request.param)) as running:
        running.until("devbench_result_info")
        yield running


if importlib.util.find_spec("bench.hub") is not None:

    @cases(of_hub=True)
    def test_a_query_about_results_or_the_hub_is_answered(hub_scraped: Prometheus, one: Asked) -> None:
        assert answered(one, hub_scraped.until(one.expression))

    def test_a_choice_narrows_what_is_shown_of_results(hub_scraped: Prometheus) -> None:
        for everything, nothing in zip(asked(), asked(NONE), strict=True):
            if everything != nothing and everything.of_hub:
                assert [each for each in hub_scraped.query(nothing.expression) if each.value] == [], nothing.panel

    def test_the_speed_up_is_that_over_the_cpu_that_its_pool_has_now(hub_scraped: Prometheus) -> None:
        (speed_up,) = (one.expression for one in asked() if one.panel.startswith("Speed-up"))
        found = hub_scraped.query(speed_up)
        assert {each.labels["backend"] for each in found} == {"cuda"}  # the CPU's own would be 1
        assert sorted(each.labels["loop"] for each in found) == ["as-written", "step"]
        assert [each.value for each in found] == [pytest.approx(2)] * 2

    def test_the_break_even_is_that_with_the_cpu_that_its_pool_has_now(hub_scraped: Prometheus, scraped: Any) -> None:
        (break_even,) = (one.expression for one in asked() if one.panel == "Break-even")
        found = {each.labels["loop"]: each.value for each in hub_scraped.query(break_even)}
        own = {each.spec.loop: each.summary for each in scraped.results}
        assert found == {
            loop: pytest.approx(of.phases["import"].value / (of.step_seconds.value / 2)) for loop, of in own.items()
        }
