"""Metrics of a run: counted from the results as they grow, rendered from what was counted, valid in both formats."""

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
from bench.model.result import PHASES, Block, Interval, ProcessSample, Result, Series, Stop, Telemetry
from bench.model.run_state import LiveProgress, LiveResult
from bench.publish.prometheus.collector import MAX_RUNS, Metrics
from bench.publish.prometheus.counters import BUCKETS, INFO, STATES
from bench.publish.prometheus.exporter import registry_of
from bench.publish.prometheus.metrics import MAX_SERIES, METRICS
from docs.parts import metrics_table

pytestmark = pytest.mark.once

TEXT = DOCS["metrics"]


def moment(*results: Result, examples: int | None = 32) -> LiveProgress:
    return LiveProgress(
        title="cifar on cpu", phase="steady state", results=tuple(LiveResult(each, examples) for each in results)
    )


def process(number: int, steps: int = 0, latency: tuple[float, ...] = ()) -> ProcessSample:
    blocks = [Block(seconds=0.1, steps=steps, cpu_seconds=0.1)] if steps else []
    started = MOMENT + timedelta(seconds=number)
    return ProcessSample(trial=number, pid=4000, started=started, series=[Series(blocks=blocks)], latency=[*latency])


def rendered(metrics: Metrics) -> str:
    """As OpenMetrics."""
    openmetrics: Any = exposition.generate_latest
    text: bytes = openmetrics(registry_of(metrics))
    return text.decode()


def families(text: str) -> list[Any]:
    """What a scraper of OpenMetrics reads."""
    read: Any = parser.text_string_to_metric_families
    return list(read(text))


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Every series: its name and label values but the run's, and its value."""
    found = [each for family in families(rendered(metrics)) for each in family.samples]
    return {(each.name, *(v for k, v in each.labels.items() if k not in ("run", *INFO))): each.value for each in found}


def begun(**changes: Any) -> Result:
    """A result that was just begun."""
    given: dict[str, Any] = {"samples": [], "stop": None, "status": "partial", "summary": measured("1", []).summary}
    return result("1", **{**given, **changes})


def test_steps_examples_and_single_steps_are_counted_as_they_come_and_once_each() -> None:
    one, metrics = begun(), Metrics()
    metrics(moment(one))
    assert samples(metrics)["devbench_steps_total",] == 0
    one.samples.append(process(1, steps=5))
    for _ in range(3):
        metrics(moment(one))
    assert samples(metrics)["devbench_steps_total",] == 5
    one.samples[-1].series[0].blocks.append(Block(seconds=0.1, steps=7, cpu_seconds=0.1))
    one.samples[-1].latency = [3e-6, 0.5]
    one.samples.append(process(2, steps=100))
    metrics(moment(one))
    found = samples(metrics)
    assert found["devbench_steps_total",] == 5 + 7 + 2 + 100
    assert found["devbench_examples_total",] == 32 * found["devbench_steps_total",]
    assert found["devbench_step_duration_seconds_count",] == 2
    assert found["devbench_step_duration_seconds_sum",] == pytest.approx(0.500003)
    counts = {"2e-06": 0, "4e-06": 1, "0.262144": 1, "0.524288": 2}
    assert {le: found["devbench_step_duration_seconds_bucket", le] for le in counts} == counts


def test_a_process_that_leaves_the_samples_again_stays_counted_so_that_counters_never_fall() -> None:
    one, metrics = begun(samples=[process(1, steps=5)]), Metrics()
    metrics(moment(one))
    one.samples.append(process(2, steps=10))
    metrics(moment(one))
    one.samples.pop()
    metrics(moment(one))
    assert samples(metrics)["devbench_steps_total",] == 15
    one.samples.append(process(3, steps=20))
    metrics(moment(one))
    assert samples(metrics)["devbench_steps_total",] == 35


def test_a_step_without_examples_has_no_count_of_them() -> None:
    metrics = Metrics()
    metrics(moment(begun(samples=[process(1, steps=5)]), examples=None))
    assert ("devbench_examples_total",) not in samples(metrics)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1000), min_size=1, max_size=40))
def test_a_histogram_counts_each_single_step_below_every_bound_that_it_does_not_exceed(latency: list[float]) -> None:
    metrics = Metrics()
    metrics(moment(begun(samples=[process(1, latency=tuple(latency))])))
    for key, value in samples(metrics).items():
        if key[0] == "devbench_step_duration_seconds_bucket":
            assert value == sum(seconds <= float(key[1]) for seconds in latency)


def test_the_bounds_are_powers_of_two_from_a_microsecond_on() -> None:
    assert BUCKETS[0] == 1e-6
    assert {math.log2(bound / 1e-6) for bound in BUCKETS} == set(range(27))


@pytest.mark.parametrize("state", STATES)
def test_a_run_is_in_one_state_and_the_others_are_zero(state: str) -> None:
    about: dict[str, dict[str, Any]] = {
        "running": {},
        "complete": {"stop": Stop(reason="target", trials=5), "status": "complete"},
        "partial": {"stop": Stop(reason="interrupted", trials=1), "status": "partial"},
        "failed": {"failure": killed()},
    }
    metrics = Metrics()
    metrics(moment(begun(**about[state])))
    found = {key[1]: value for key, value in samples(metrics).items() if key[0] == "devbench_run_state"}
    assert found == {each: float(each == state) for each in STATES}


def test_a_run_that_is_saved_at_its_end_tells_its_last_state_and_step() -> None:
    one, metrics = begun(), Metrics()
    metrics.refresh(one)
    assert samples(metrics) == {}, "nobody has told of that run yet"
    metrics(moment(one))
    assert not metrics.over
    one.stop, one.status = Stop(reason="target", trials=5), "complete"
    one.summary.step_seconds = Interval(value=0.01, low=0.009, high=0.011, n=5)
    metrics.refresh(one)
    found = samples(metrics)
    assert found["devbench_run_state", "complete"] == 1
    assert [found[f"devbench_step_seconds{bound}",] for bound in ("", "_low", "_high")] == [0.01, 0.009, 0.011]
    assert metrics.over


def test_nothing_is_over_before_it_began_or_when_it_was_interrupted() -> None:
    metrics = Metrics()
    assert not metrics.over
    metrics(moment(begun(stop=Stop(reason="interrupted", trials=1))))
    assert not metrics.over


def test_a_first_process_tells_its_phases_before_it_has_ended_and_then_the_means_count() -> None:
    one, metrics = begun(samples=[process(1)]), Metrics()
    one.samples[0].phases = {"import": 3.0}
    metrics(moment(one))
    assert samples(metrics)["devbench_phase_seconds", "import"] == 3.0
    one.summary.phases = {"import": Interval(value=3.5), "warm_up": Interval(value=1.0)}
    metrics(moment(one))
    found = samples(metrics)
    assert (found["devbench_phase_seconds", "import"], found["devbench_phase_seconds", "warm_up"]) == (3.5, 1.0)


@pytest.mark.parametrize("told", [True, False])
def test_what_a_quota_holds_back_is_counted_from_nothing_on_where_it_can_be_told(
    monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    monkeypatch.setattr(limits, "throttling", lambda: limits.Throttling(periods=7, seconds=3.0) if told else None)
    one, metrics = begun(samples=[]), Metrics()
    name = ("devbench_cpu_throttled_seconds_total",)
    metrics(moment(one))
    assert samples(metrics).get(name) == (0.0 if told else None)
    one.samples = [process(1)]
    metrics(moment(one))
    assert samples(metrics).get(name) == (0.0 if told else None)
    one.samples[0].telemetry = Telemetry(wall_seconds=2.0, throttled_seconds=0.25)
    metrics(moment(one))
    assert samples(metrics)[name] == 0.25


@pytest.mark.parametrize(("backend", "busy", "memory", "watts"), [("cpu", 0.75, 1e9, 30.0), ("cuda", 0.5, 2e9, 70.0)])
def test_the_devices_figures_are_the_gpus_on_a_gpu_and_the_process_own_on_a_cpu(
    backend: str, busy: float, memory: float, watts: float
) -> None:
    one, metrics = begun(backend=backend, samples=[process(1), process(2)]), Metrics()
    one.samples[0].telemetry = Telemetry(
        wall_seconds=2.0, cpu_seconds=3.0, peak_rss_bytes=10**9, throttled_seconds=0.25, package_joules=60.0,
        gpu_utilization_ratio=0.5, gpu_memory_bytes=2 * 10**9, gpu_power_watts=70.0,
    )  # fmt: skip
    metrics(moment(one))
    found = samples(metrics)
    assert found["devbench_device_utilization_ratio",] == busy
    assert found["devbench_device_memory_bytes",] == memory
    assert found["devbench_device_power_watts",] == watts
    assert found["devbench_cpu_throttled_seconds_total",] == 0.25


def test_what_identifies_a_run_stands_in_its_info_alone_and_keeps_its_labels() -> None:
    deployed = {"host": {"deployment": {"pool": "t4", "node": "n1", "image": "i"}}}
    one = begun(workload='a "b"\n\\c', case="small", environment=deployed)
    metrics = Metrics()
    metrics(moment(one))
    before = rendered(metrics)
    one.environment.framework = Framework(tensorflow="2.21.0")
    metrics(moment(one))
    assert rendered(metrics) == before
    others = {family.name: family for family in families(before)}
    (info,) = others.pop("devbench_run").samples
    assert set(info.labels) == {"run", *INFO}
    told = {name: info.labels[name] for name in ("workload", "pool", "node", "image", "instance_type", "parent")}
    assert told == {
        "workload": 'a "b"\n\\c/small', "pool": "t4", "node": "n1", "image": "i", "instance_type": "", "parent": "",
    }  # fmt: skip
    labels = {name for family in others.values() for each in family.samples for name in each.labels}
    assert labels == {"run", "state", "le"}


def test_no_label_is_one_that_a_scrape_sets_itself() -> None:
    names = {label for each in METRICS for label in each.labels}
    assert not names & {"job", "instance", "pod", "namespace", "container", "endpoint", "service"}


def test_no_series_says_when_a_counter_was_created() -> None:
    metrics = Metrics()
    metrics(moment(begun(samples=[process(1, steps=5)])))
    for text in (rendered(metrics), generate_latest(registry_of(metrics)).decode()):
        assert "devbench_steps_total" in text
        assert "_created" not in text


def test_a_run_has_no_more_series_than_the_reference_says() -> None:
    told = re.search(
        r"a run has at most (\d+) series, .* a process serves its (\d+) latest runs, .* at most ([\d,]+) series\.",
        prose(),
    )
    assert told
    assert [int(each.replace(",", "")) for each in told.groups()] == [MAX_SERIES, MAX_RUNS, MAX_SERIES * MAX_RUNS]
    one = begun(samples=[process(1, steps=5, latency=(0.1,))])
    one.samples[0].telemetry = Telemetry(
        wall_seconds=2.0, cpu_seconds=3.0, peak_rss_bytes=10**9, throttled_seconds=0.25, package_joules=60.0
    )
    one.summary.step_seconds = Interval(value=0.01, low=0.009, high=0.011, n=5)
    one.summary.phases = {name: Interval(value=1.0) for name in (*PHASES, "one that nobody knows")}
    metrics = Metrics()
    metrics(moment(one))
    assert len(samples(metrics)) == MAX_SERIES


def prose() -> str:
    return " ".join(section(TEXT, "Metrics of a run").replace("**", "").lower().split())


def test_only_the_latest_runs_are_served() -> None:
    metrics = Metrics(max_runs=2)
    for name in ("1", "2", "3"):
        metrics(moment(begun(id=name)))
        metrics(moment(begun(id=name)))
    text = rendered(metrics)
    assert set(re.findall(r'run="(\d)"', text)) == {"2", "3"}


def test_no_run_that_is_under_way_makes_place_for_another_and_one_without_a_place_can_be_pushed_all_the_same() -> None:
    many = [begun(id=name, samples=[process(1, steps=5)]) for name in ("1", "2", "3")]
    metrics = Metrics(max_runs=2)
    for _ in range(3):
        metrics(moment(*many))
    assert set(metrics.runs) == {"1", "2"}
    pushed = metrics.single(many[2])
    assert pushed.group["run"] == "3"
    assert [s.value for each in pushed.collect() for s in each.samples if s.name == "devbench_steps_total"] == [5]


def test_a_scraper_can_ask_for_one_metric_by_its_name() -> None:
    metrics = Metrics()
    metrics(moment(begun(samples=[process(1, steps=5)])))
    few = registry_of(metrics).restricted_registry(["devbench_steps_total", "devbench_run_info"])
    assert {each.name for each in few.collect()} == {"devbench_steps", "devbench_run"}


def test_the_page_of_metrics_has_every_metric_with_its_type_unit_and_meaning() -> None:
    assert metrics_table() in TEXT
    assert all(each.help.endswith(".") for each in METRICS)
    assert all(each.unit in each.name for each in METRICS)


def test_rendering_and_counting_go_on_together() -> None:
    """A scraper sees whole runs only: the steps of a moment always come with its examples."""
    one, metrics, odd = begun(samples=[process(1)]), Metrics(), list[float]()
    end = threading.Event()

    def scrape() -> None:
        while not end.is_set():
            found = samples(metrics)
            if found and found["devbench_examples_total",] != 32 * found["devbench_steps_total",]:
                odd.append(found["devbench_steps_total",])

    scraper = threading.Thread(target=scrape)
    scraper.start()
    for _ in range(300):
        one.samples[0].series[0].blocks.append(Block(seconds=0.1, steps=1, cpu_seconds=0.1))
        one.summary.phases[f"phase {len(one.summary.phases)}"] = Interval(value=1.0)
        metrics(moment(one))
    end.set()
    scraper.join()
    assert odd == []
    assert samples(metrics)["devbench_steps_total",] == 300
