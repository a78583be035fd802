"""Metrics of a run: counted from growing results, and rendered in both Prometheus formats."""

from __future__ import annotations

import math
import re
import threading
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import DOCS, section
from prometheus_client import generate_latest
from prometheus_client.openmetrics import exposition, parser
from synthetic import MOMENT, killed, measured, result

from bench.machine import limits
from bench.model.framework import Framework
from bench.model.interval import Interval
from bench.model.phase import PHASES
from bench.model.result import Result, Stop
from bench.model.run_state import LiveProgress, LiveResult
from bench.model.sample import Block, ProcessSample, Series
from bench.model.spec import Workers
from bench.model.telemetry import Telemetry
from bench.publish.prometheus.collector import MAX_RUNS, Metrics
from bench.publish.prometheus.counters import BUCKETS, INFO, STATES
from bench.publish.prometheus.exporter import registry_of
from bench.publish.prometheus.metrics import MAX_SERIES, METRICS
from docs.parts import run_metrics

pytestmark = pytest.mark.once

TEXT = DOCS["metrics"]


def progress_of(*results: Result, examples: int | None = 32) -> LiveProgress:
    return LiveProgress(
        title="cifar on cpu", phase="steady state", results=tuple(LiveResult(result, examples) for result in results)
    )


def process(number: int, steps: int = 0, latency: tuple[float, ...] = ()) -> ProcessSample:
    blocks = [Block(seconds=0.1, steps=steps, cpu_seconds=0.1)] if steps else []
    start = MOMENT + timedelta(seconds=number)
    return ProcessSample(trial=number, pid=4000, started=start, series=[Series(blocks=blocks)], latency=[*latency])


def openmetrics_text(metrics: Metrics) -> str:
    """Return the metrics in the OpenMetrics format."""
    generate: Any = exposition.generate_latest
    text: bytes = generate(registry_of(metrics))
    return text.decode()


def families(text: str) -> list[Any]:
    """Return the metric families that a scraper reads from OpenMetrics."""
    parse: Any = parser.text_string_to_metric_families
    return list(parse(text))


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Return the value of each series by its name and label values, without the labels of the run."""
    return {
        (sample.name, *(value for name, value in sample.labels.items() if name not in ("run", *INFO))): sample.value
        for family in families(openmetrics_text(metrics))
        for sample in family.samples
    }


def new_run(**changes: Any) -> Result:
    """Return the result of a run that has just started."""
    fields: dict[str, Any] = {"samples": [], "stop": None, "status": "partial", "summary": measured("1", []).summary}
    return result("1", **{**fields, **changes})


def test_steps_examples_and_latencies_are_counted_once() -> None:
    run, metrics = new_run(), Metrics()
    metrics(progress_of(run))
    assert samples(metrics)["devbench_steps_total",] == 0
    run.samples.append(process(1, steps=5))
    for _ in range(3):
        metrics(progress_of(run))
    assert samples(metrics)["devbench_steps_total",] == 5
    run.samples[-1].series[0].blocks.append(Block(seconds=0.1, steps=7, cpu_seconds=0.1))
    run.samples[-1].latency = [3e-6, 0.5]
    run.samples.append(process(2, steps=100))
    metrics(progress_of(run))
    series = samples(metrics)
    assert series["devbench_steps_total",] == 5 + 7 + 2 + 100
    assert series["devbench_examples_total",] == 32 * series["devbench_steps_total",]
    assert series["devbench_step_duration_seconds_count",] == 2
    assert series["devbench_step_duration_seconds_sum",] == pytest.approx(0.500003)
    counts = {"2e-06": 0, "4e-06": 1, "0.262144": 1, "0.524288": 2}
    assert {le: series["devbench_step_duration_seconds_bucket", le] for le in counts} == counts


def test_counters_never_decrease_if_a_process_is_removed_from_the_samples() -> None:
    run, metrics = new_run(samples=[process(1, steps=5)]), Metrics()
    metrics(progress_of(run))
    run.samples.append(process(2, steps=10))
    metrics(progress_of(run))
    run.samples.pop()
    metrics(progress_of(run))
    assert samples(metrics)["devbench_steps_total",] == 15
    run.samples.append(process(3, steps=20))
    metrics(progress_of(run))
    assert samples(metrics)["devbench_steps_total",] == 35


def test_a_step_without_examples_has_no_counter_of_examples() -> None:
    metrics = Metrics()
    metrics(progress_of(new_run(samples=[process(1, steps=5)]), examples=None))
    assert ("devbench_examples_total",) not in samples(metrics)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1000), min_size=1, max_size=40))
def test_each_bucket_counts_the_latencies_up_to_its_bound(latency: list[float]) -> None:
    metrics = Metrics()
    metrics(progress_of(new_run(samples=[process(1, latency=tuple(latency))])))
    for key, value in samples(metrics).items():
        if key[0] == "devbench_step_duration_seconds_bucket":
            assert value == sum(seconds <= float(key[1]) for seconds in latency)


def test_bucket_bounds_are_powers_of_two_from_one_microsecond() -> None:
    assert BUCKETS[0] == 1e-6
    assert {math.log2(bound / 1e-6) for bound in BUCKETS} == set(range(27))


@pytest.mark.parametrize("state", STATES)
def test_exactly_one_state_of_a_run_is_1(state: str) -> None:
    fields: dict[str, dict[str, Any]] = {
        "running": {},
        "complete": {"stop": Stop(reason="target", trials=5), "status": "complete"},
        "partial": {"stop": Stop(reason="interrupted", trials=1), "status": "partial"},
        "failed": {"failure": killed()},
    }
    metrics = Metrics()
    metrics(progress_of(new_run(**fields[state])))
    states = {key[1]: value for key, value in samples(metrics).items() if key[0] == "devbench_run_state"}
    assert states == {name: float(name == state) for name in STATES}


def test_a_refresh_updates_the_state_and_step_time_of_a_known_run_only() -> None:
    run, metrics = new_run(), Metrics()
    metrics.refresh(run)
    assert samples(metrics) == {}, "no progress of this run has been reported"
    metrics(progress_of(run))
    assert not metrics.all_ended
    run.stop, run.status = Stop(reason="target", trials=5), "complete"
    run.summary.step_seconds = Interval(value=0.01, low=0.009, high=0.011, n=5)
    metrics.refresh(run)
    series = samples(metrics)
    assert series["devbench_run_state", "complete"] == 1
    assert [series[f"devbench_step_seconds{bound}",] for bound in ("", "_low", "_high")] == [0.01, 0.009, 0.011]
    assert metrics.all_ended


def test_metrics_are_not_over_before_a_run_or_after_an_interruption() -> None:
    metrics = Metrics()
    assert not metrics.all_ended
    metrics(progress_of(new_run(stop=Stop(reason="interrupted", trials=1))))
    assert not metrics.all_ended


def test_phases_come_from_the_first_process_until_the_summary_has_means() -> None:
    run, metrics = new_run(samples=[process(1)]), Metrics()
    run.samples[0].phases = {"import": 3.0}
    metrics(progress_of(run))
    assert samples(metrics)["devbench_phase_seconds", "import"] == 3.0
    run.summary.phases = {"import": Interval(value=3.5), "warm_up": Interval(value=1.0)}
    metrics(progress_of(run))
    series = samples(metrics)
    assert (series["devbench_phase_seconds", "import"], series["devbench_phase_seconds", "warm_up"]) == (3.5, 1.0)


@pytest.mark.parametrize("measurable", [True, False])
def test_throttled_time_starts_at_zero_if_it_is_measurable_and_is_absent_otherwise(
    monkeypatch: pytest.MonkeyPatch, measurable: bool
) -> None:
    monkeypatch.setattr(limits, "throttling", lambda: limits.Throttling(periods=7, seconds=3.0) if measurable else None)
    run, metrics = new_run(samples=[]), Metrics()
    name = ("devbench_cpu_throttled_seconds_total",)
    metrics(progress_of(run))
    assert samples(metrics).get(name) == (0.0 if measurable else None)
    run.samples = [process(1)]
    metrics(progress_of(run))
    assert samples(metrics).get(name) == (0.0 if measurable else None)
    run.samples[0].telemetry = Telemetry(wall_seconds=2.0, throttled_seconds=0.25)
    metrics(progress_of(run))
    assert samples(metrics)[name] == 0.25


@pytest.mark.parametrize(("backend", "busy", "memory", "watts"), [("cpu", 0.75, 1e9, 30.0), ("cuda", 0.5, 2e9, 70.0)])
def test_device_metrics_describe_the_gpu_on_a_gpu_and_the_process_on_a_cpu(
    backend: str, busy: float, memory: float, watts: float
) -> None:
    run, metrics = new_run(backend=backend, samples=[process(1), process(2)]), Metrics()
    run.samples[0].telemetry = Telemetry(
        wall_seconds=2.0, cpu_seconds=3.0, peak_rss_bytes=10**9, throttled_seconds=0.25, package_joules=60.0,
        gpu_utilization_ratio=0.5, gpu_memory_bytes=2 * 10**9, gpu_power_watts=70.0,
    )  # fmt: skip
    metrics(progress_of(run))
    series = samples(metrics)
    assert series["devbench_device_utilization_ratio",] == busy
    assert series["devbench_device_memory_bytes",] == memory
    assert series["devbench_device_power_watts",] == watts
    assert series["devbench_cpu_throttled_seconds_total",] == 0.25


def test_only_the_info_metric_has_the_labels_that_identify_a_run_and_they_never_change() -> None:
    environment = {"host": {"deployment": {"pool": "t4", "node": "n1", "image": "i"}}}
    run = new_run(workload='a "b"\n\\c', case="small", environment=environment)
    metrics = Metrics()
    metrics(progress_of(run))
    text = openmetrics_text(metrics)
    run.environment.framework = Framework(tensorflow="2.21.0")
    metrics(progress_of(run))
    assert openmetrics_text(metrics) == text
    series = {family.name: family for family in families(text)}
    (info,) = series.pop("devbench_run").samples
    assert set(info.labels) == {"run", *INFO}
    labels = {name: info.labels[name] for name in ("workload", "pool", "node", "image", "instance_type", "parent")}
    assert labels == {
        "workload": 'a "b"\n\\c/small', "pool": "t4", "node": "n1", "image": "i", "instance_type": "", "parent": "",
    }  # fmt: skip
    others = {name for family in series.values() for sample in family.samples for name in sample.labels}
    assert others == {"run", "state", "le"}


def test_the_label_of_workers_tells_the_levels_of_a_scaling_study_apart() -> None:
    metrics = Metrics()
    workers = [
        Workers(count=1, strategy="none"),
        Workers(count=2, strategy="multi-worker"),
        Workers(count=2, strategy="multi-worker", reduce=False),
    ]
    metrics(progress_of(new_run(), *(result(f"level {n}", workers=each) for n, each in enumerate(workers))))
    (info,) = (family for family in families(openmetrics_text(metrics)) if family.name == "devbench_run")
    labels = [sample.labels["workers"] for sample in info.samples]
    assert labels == ["", "no strategy", "2 workers", "2 workers, no all-reduce"]


def test_no_label_is_a_label_that_prometheus_sets() -> None:
    names = {label for metric in METRICS for label in metric.labels}
    assert not names & {"job", "instance", "pod", "namespace", "container", "endpoint", "service"}


def test_counters_have_no_created_series() -> None:
    metrics = Metrics()
    metrics(progress_of(new_run(samples=[process(1, steps=5)])))
    for text in (openmetrics_text(metrics), generate_latest(registry_of(metrics)).decode()):
        assert "devbench_steps_total" in text
        assert "_created" not in text


def test_a_run_has_at_most_the_documented_number_of_series() -> None:
    documented = re.search(
        r"a run has at most (\d+) series, .* a process serves its (\d+) latest runs, .* at most ([\d,]+) series\.",
        prose(),
    )
    assert documented
    assert [int(number.replace(",", "")) for number in documented.groups()] == [
        MAX_SERIES,
        MAX_RUNS,
        MAX_SERIES * MAX_RUNS,
    ]
    run = new_run(samples=[process(1, steps=5, latency=(0.1,))])
    run.samples[0].telemetry = Telemetry(
        wall_seconds=2.0, cpu_seconds=3.0, peak_rss_bytes=10**9, throttled_seconds=0.25, package_joules=60.0
    )
    run.summary.step_seconds = Interval(value=0.01, low=0.009, high=0.011, n=5)
    run.summary.phases = {name: Interval(value=1.0) for name in PHASES}
    metrics = Metrics()
    metrics(progress_of(run))
    assert len(samples(metrics)) == MAX_SERIES


def prose() -> str:
    return " ".join(section(TEXT, "Metrics of a run").replace("**", "").lower().split())


def test_only_the_latest_runs_are_served() -> None:
    metrics = Metrics(max_runs=2)
    for name in ("1", "2", "3"):
        metrics(progress_of(new_run(id=name)))
        metrics(progress_of(new_run(id=name)))
    text = openmetrics_text(metrics)
    assert set(re.findall(r'run="(\d)"', text)) == {"2", "3"}


def test_an_unfinished_run_is_not_replaced_and_a_run_that_is_not_served_can_be_pushed() -> None:
    runs = [new_run(id=name, samples=[process(1, steps=5)]) for name in ("1", "2", "3")]
    metrics = Metrics(max_runs=2)
    for _ in range(3):
        metrics(progress_of(*runs))
    assert set(metrics.runs) == {"1", "2"}
    single = metrics.single(runs[2])
    assert single.group["run"] == "3"
    assert [s.value for family in single.collect() for s in family.samples if s.name == "devbench_steps_total"] == [5]


def test_a_scraper_can_request_metrics_by_name() -> None:
    metrics = Metrics()
    metrics(progress_of(new_run(samples=[process(1, steps=5)])))
    registry = registry_of(metrics).restricted_registry(["devbench_steps_total", "devbench_run_info"])
    assert {family.name for family in registry.collect()} == {"devbench_steps", "devbench_run"}


def test_every_metric_is_documented_with_its_type_unit_and_meaning() -> None:
    assert run_metrics() in TEXT
    assert all(metric.help.endswith(".") for metric in METRICS)
    assert all(metric.unit in metric.name for metric in METRICS)


def test_a_scrape_during_an_update_sees_a_consistent_run() -> None:
    """The counters of steps and examples that a scraper sees always belong to the same report of progress."""
    run, metrics, inconsistent = new_run(samples=[process(1)]), Metrics(), list[float]()
    stop = threading.Event()

    def scrape() -> None:
        while not stop.is_set():
            series = samples(metrics)
            if series and series["devbench_examples_total",] != 32 * series["devbench_steps_total",]:
                inconsistent.append(series["devbench_steps_total",])

    scraper = threading.Thread(target=scrape)
    scraper.start()
    for index in range(300):
        run.samples[0].series[0].blocks.append(Block(seconds=0.1, steps=1, cpu_seconds=0.1))
        phase = PHASES[index % len(PHASES)]
        if run.summary.phases.pop(phase, None) is None:  # the dict changes its size with every report
            run.summary.phases[phase] = Interval(value=1.0)
        metrics(progress_of(run))
    stop.set()
    scraper.join()
    assert inconsistent == []
    assert samples(metrics)["devbench_steps_total",] == 300
