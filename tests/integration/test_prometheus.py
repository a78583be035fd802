"""A real run, scraped by a real Prometheus 2 and 3: they know of its metrics what the reference says."""

from __future__ import annotations

import shutil
import signal
import subprocess
import urllib.request
from typing import Any

import pytest
from devbench_process import started
from prometheus_server import Prometheus, labelled

from bench.model.result import Result
from bench.publish.prometheus.counters import BUCKETS, INFO
from bench.publish.prometheus.metrics import METRICS, RunMetric

pytestmark = [pytest.mark.once, pytest.mark.needs("prometheus", "prometheus-3")]

VERSIONS = pytest.mark.parametrize("version", ["2", "3"])
HARDWARE = {"devbench_device_power_watts", "devbench_cpu_throttled_seconds_total"}
"""Not every machine tells of these."""


def test_they_are_the_versions_that_are_meant(scraped: Any) -> None:
    for major, asked in scraped.by.items():
        assert asked.api("status/buildinfo")["version"].startswith(f"{major}.")


def sampled(metric: RunMetric) -> str:
    return f"{metric.name}_count" if metric.kind == "histogram" else metric.name


@VERSIONS
@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_metric_of_the_reference_arrives_with_its_type_unit_and_help(
    scraped: Any, version: str, metric: RunMetric
) -> None:
    asked: Prometheus = scraped.by[version]
    known = asked.metadata()
    told = known.get(metric.family_name) or known[metric.name]
    unit = metric.unit if metric.family_name.endswith(metric.unit) else ""  # the format knows it by the name's end
    assert told == {"type": metric.kind, "unit": unit, "help": metric.help}
    found = asked.query(sampled(metric))
    assert {each.labels["run"] for each in found} == {each.id for each in scraped.results} or metric.name in HARDWARE
    for each in found:
        assert set(each.labels) - {"__name__", "job", "instance", *labelled(version)} <= {*metric.labels}


@VERSIONS
def test_nothing_arrives_that_the_reference_does_not_name(scraped: Any, version: str) -> None:
    asked = scraped.by[version]
    names = {each.labels["__name__"] for each in asked.query('{job="run", __name__=~"devbench.*"}')}
    known = {each.name for each in METRICS if each.kind != "histogram"}
    known |= {
        f"{each.name}{end}" for each in METRICS if each.kind == "histogram" for end in ("_bucket", "_count", "_sum")
    }
    assert known - HARDWARE <= names <= known


@VERSIONS
def test_what_arrives_is_what_the_results_hold(scraped: Any, version: str) -> None:
    asked = scraped.by[version]
    assert len(scraped.results) == 2
    for result in scraped.results:
        only = f'{{run="{result.id}"}}'
        known = result.summary.step_seconds
        assert known is not None
        assert asked.value(f"devbench_step_seconds{only}") == known.value
        assert asked.value(f"devbench_step_seconds_low{only}") == known.low
        assert asked.value(f"devbench_step_seconds_high{only}") == known.high
        assert asked.value(f"devbench_steps_total{only}") == steps(result)
        assert asked.value(f"devbench_examples_total{only}") == steps(result) * result.spec.params["batch"]
        assert asked.value(f"devbench_step_duration_seconds_count{only}") == sum(len(s.latency) for s in result.samples)
        phases = {each.labels["phase"]: each.value for each in asked.query(f"devbench_phase_seconds{only}")}
        assert phases == {name: each.value for name, each in result.summary.phases.items()}
        (info,) = asked.query(f"devbench_run_info{only}")
        told = {name: info.labels.get(name, "") for name in INFO}
        assert told["workload"] == "tabular/small"
        assert (told["loop"], told["key"], told["group"]) == (result.spec.loop, result.key, result.group)


def steps(result: Result) -> int:
    blocks = [b for sample in result.samples for x in sample.series for b in (*x.warmup, *x.blocks)]
    return sum(block.steps for block in blocks) + sum(len(sample.latency) for sample in result.samples)


@VERSIONS
@pytest.mark.parametrize(
    ("share", "field"), [(0.5, "step_seconds_p50"), (0.9, "step_seconds_p90"), (0.99, "step_seconds_p99")]
)
def test_the_histograms_quantiles_are_the_results_percentiles_to_within_a_bucket(
    scraped: Any, version: str, share: float, field: str
) -> None:
    for result in scraped.results:
        bucket = f'devbench_step_duration_seconds_bucket{{run="{result.id}"}}'
        found = scraped.by[version].value(f"histogram_quantile({share}, {bucket})")
        exact = getattr(result.summary, field)
        above = next(n for n, bound in enumerate(BUCKETS) if exact <= bound)
        assert BUCKETS[max(0, above - 2)] <= found <= BUCKETS[above + 1]
        assert 0.5 <= found / exact <= 2


@VERSIONS
def test_it_was_scraped_while_it_measured_and_its_counters_tell_rates(scraped: Any, version: str) -> None:
    asked = scraped.by[version]
    assert asked.value('sum(sum_over_time(devbench_run_state{state="running"}[1h]))') > 0
    assert asked.value("max(max_over_time(rate(devbench_steps_total[10s])[1h:1s]))") > 0
    assert asked.query("resets(devbench_steps_total[1h]) > 0") == []
    joined = asked.query("devbench_steps_total * on (run) group_left (workload, loop) devbench_run_info")
    assert {each.labels["loop"] for each in joined} == {"as-written", "step"}


def test_promtool_finds_nothing_to_say_about_the_text(scraped: Any) -> None:
    with urllib.request.urlopen(scraped.url) as answer:
        text = answer.read()
    ran = subprocess.run([shutil.which("promtool") or "", "check", "metrics"], input=text, capture_output=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


@pytest.mark.needs("posix")
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_lingers_ends_at_a_signal_with_the_code_of_its_results(tmp_path: Any, signum: int) -> None:
    (tmp_path / "bad.py").write_text("def step():\n    raise ValueError('no')\n\ndef inputs():\n    return (1.0,)\n")
    words = ("run", "./bad.py", "--metrics-port", "0", "--metrics-host", "127.0.0.1", "--linger", "10h", "--json")
    with started(tmp_path, *words, listen=True) as run:
        run.until("for a last scrape")
        run.process.send_signal(signum)
        ended = run.end()
    assert ended.code in (1, 2)
    assert [each.status for each in ended.every] == ["failed"]
    assert '"status": "failed"' in ended.out, "the results are shown before it lingers"
    assert "Traceback" not in ended.err
