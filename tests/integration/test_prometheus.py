"""A real run that a real Prometheus 2 and 3 scrape: its metrics are those of the reference."""

from __future__ import annotations

import shutil
import signal
import subprocess
import urllib.request
from typing import Any

import pytest
from devbench_process import start_devbench
from prometheus_server import Prometheus, target_labels

from bench.model.result import Result
from bench.publish.prometheus.counters import BUCKETS, INFO
from bench.publish.prometheus.metrics import METRICS, RunMetric

pytestmark = [pytest.mark.once, pytest.mark.needs("prometheus", "prometheus-3")]

VERSIONS = pytest.mark.parametrize("version", ["2", "3"])
HARDWARE = {"devbench_device_power_watts", "devbench_cpu_throttled_seconds_total"}
"""Metrics that not every machine has."""


def test_the_servers_are_prometheus_2_and_3(scraped: Any) -> None:
    for major, server in scraped.servers.items():
        assert server.api("status/buildinfo")["version"].startswith(f"{major}.")


def sample_name(metric: RunMetric) -> str:
    return f"{metric.name}_count" if metric.kind == "histogram" else metric.name


@VERSIONS
@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_metric_of_the_reference_arrives_with_its_type_unit_and_help(
    scraped: Any, version: str, metric: RunMetric
) -> None:
    server: Prometheus = scraped.servers[version]
    metadata = server.metadata()
    entry = metadata.get(metric.family_name) or metadata[metric.name]
    unit = metric.unit if metric.family_name.endswith(metric.unit) else ""  # OpenMetrics requires the unit as suffix
    assert entry == {"type": metric.kind, "unit": unit, "help": metric.help}
    series = server.query(sample_name(metric))
    runs = {point.labels["run"] for point in series}
    assert runs == {result.id for result in scraped.results} or metric.name in HARDWARE
    for point in series:
        assert set(point.labels) - {"__name__", "job", "instance", *target_labels(version)} <= {*metric.labels}


@VERSIONS
def test_the_reference_names_every_metric_that_arrives(scraped: Any, version: str) -> None:
    server = scraped.servers[version]
    names = {series.labels["__name__"] for series in server.query('{job="run", __name__=~"devbench.*"}')}
    known = {metric.name for metric in METRICS if metric.kind != "histogram"}
    known |= {
        f"{metric.name}{suffix}"
        for metric in METRICS
        if metric.kind == "histogram"
        for suffix in ("_bucket", "_count", "_sum")
    }
    assert known - HARDWARE <= names <= known


@VERSIONS
def test_metrics_equal_the_values_in_the_results(scraped: Any, version: str) -> None:
    server = scraped.servers[version]
    assert len(scraped.results) == 2
    for result in scraped.results:
        selector = f'{{run="{result.id}"}}'
        step_seconds = result.summary.step_seconds
        assert step_seconds is not None
        assert server.value(f"devbench_step_seconds{selector}") == step_seconds.value
        assert server.value(f"devbench_step_seconds_low{selector}") == step_seconds.low
        assert server.value(f"devbench_step_seconds_high{selector}") == step_seconds.high
        assert server.value(f"devbench_steps_total{selector}") == steps(result)
        assert server.value(f"devbench_examples_total{selector}") == steps(result) * result.spec.params["batch"]
        assert server.value(f"devbench_step_duration_seconds_count{selector}") == sum(
            len(s.latency) for s in result.samples
        )
        phases = {series.labels["phase"]: series.value for series in server.query(f"devbench_phase_seconds{selector}")}
        assert phases == {name: interval.value for name, interval in result.summary.phases.items()}
        (info,) = server.query(f"devbench_run_info{selector}")
        labels = {name: info.labels.get(name, "") for name in INFO}
        assert labels["workload"] == "tabular/small"
        assert (labels["loop"], labels["key"], labels["group"]) == (result.spec.loop, result.key, result.group)


def steps(result: Result) -> int:
    blocks = [b for sample in result.samples for x in sample.series for b in (*x.warmup, *x.blocks)]
    return sum(block.steps for block in blocks) + sum(len(sample.latency) for sample in result.samples)


@VERSIONS
@pytest.mark.parametrize(
    ("rank", "field"), [(0.5, "step_seconds_p50"), (0.9, "step_seconds_p90"), (0.99, "step_seconds_p99")]
)
def test_quantiles_of_the_histogram_are_the_percentiles_of_the_result_to_within_a_bucket(
    scraped: Any, version: str, rank: float, field: str
) -> None:
    for result in scraped.results:
        series = f'devbench_step_duration_seconds_bucket{{run="{result.id}"}}'
        quantile = scraped.servers[version].value(f"histogram_quantile({rank}, {series})")
        exact = getattr(result.summary, field)
        bucket_index = next(n for n, bound in enumerate(BUCKETS) if exact <= bound)
        assert BUCKETS[max(0, bucket_index - 2)] <= quantile <= BUCKETS[bucket_index + 1]
        assert 0.5 <= quantile / exact <= 2


@VERSIONS
def test_a_run_is_scraped_while_it_measures_and_its_counters_give_rates(scraped: Any, version: str) -> None:
    server = scraped.servers[version]
    assert server.value('sum(sum_over_time(devbench_run_state{state="running"}[1h]))') > 0
    assert server.value("max(max_over_time(rate(devbench_steps_total[10s])[1h:1s]))") > 0
    assert server.query("resets(devbench_steps_total[1h]) > 0") == []
    joined = server.query("devbench_steps_total * on (run) group_left (workload, loop) devbench_run_info")
    assert {series.labels["loop"] for series in joined} == {"as-written", "step"}


def test_promtool_accepts_the_text(scraped: Any) -> None:
    with urllib.request.urlopen(scraped.url) as response:
        text = response.read()
    process = subprocess.run([shutil.which("promtool") or "", "check", "metrics"], input=text, capture_output=True)
    assert (process.returncode, process.stdout, process.stderr) == (0, b"", b"")


@pytest.mark.needs("posix")
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_for_a_last_scrape_with_the_exit_code_of_the_results(tmp_path: Any, signum: int) -> None:
    (tmp_path / "bad.py").write_text("def step():\n    raise ValueError('no')\n\ndef inputs():\n    return (1.0,)\n")
    arguments = ("run", "./bad.py", "--metrics-port", "0", "--metrics-host", "127.0.0.1", "--linger", "10h", "--json")
    with start_devbench(tmp_path, *arguments, pipe_stderr=True) as run:
        run.wait_for("for a last scrape")
        run.process.send_signal(signum)
        completed = run.wait()
    assert completed.code in (1, 2)
    assert [result.status for result in completed.results] == ["failed"]
    assert '"status": "failed"' in completed.out, "results are shown before the wait"
    assert "Traceback" not in completed.err
