"""The hub's metrics: the latest result of each comparison key, and its own work."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
from hubs import RunningHub
from pages import DOCS, rows, section, spans
from prometheus_client.parser import text_string_to_metric_families
from synthetic import MOMENT, measured, misplaced, result
from synthetic_scaling import scaling_results
from test_hub_edits import edit
from test_hub_runs import run, send

from bench.hub.db.gauges import HELP
from bench.model.interval import Interval
from bench.model.result import Price, Summary
from bench.model.spec import Workers
from bench.model.telemetry import Telemetry
from bench.render.fields import FIELDS, METRIC_PREFIX

pytestmark = pytest.mark.once

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(hub: RunningHub) -> Samples:
    """Return the values by name and labels, after checking that no sample occurs twice."""
    values: Samples = {}
    for family in text_string_to_metric_families(hub.request("GET", "/metrics").data.decode()):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in values
            values[key] = sample.value
    return values


def samples_of(hub: RunningHub, name: str) -> list[tuple[dict[str, str], float]]:
    return [(dict(labels), value) for (metric, labels), value in scrape(hub).items() if metric == METRIC_PREFIX + name]


def full_result() -> Any:
    """Return a result that has a figure for every metric."""
    workers = Workers(count=1, strategy="multi-worker")
    full = measured("1", [0.1, 0.11], workers=workers, price=Price(per_hour=1, currency="EUR"), placement=misplaced())
    for sample in full.samples:
        sample.telemetry = Telemetry(wall_seconds=2.0, package_joules=100.0)
    summary = result().summary.model_copy(
        update={
            "cost_per_1000_steps": 0.02,
            "epoch_examples_per_second": 900.0,
            "bytes_per_second": {"h2d/4": 1e3, "h2d/64": 5e9, "d2h/4": 2e3},
        }
    )
    return full.model_copy(update={"summary": summary, "projection": result().projection})


def test_every_metric_is_exported_and_has_a_help_text(hub: RunningHub) -> None:
    hub.send(full_result())
    edit(hub, "PATCH", full_result().id, {"silenced": True})
    assert {name for name, _ in scrape(hub) if name.startswith(METRIC_PREFIX)} == {
        METRIC_PREFIX + name for name in HELP
    }
    assert {field.metric for field in FIELDS if field.metric} <= HELP.keys()


def test_every_metric_is_documented_with_its_labels_and_help_text(hub: RunningHub) -> None:
    documented = {row[0]: row[1:] for row in rows(section(DOCS["metrics"], "Metrics of the hub"))}
    for name, text in HELP.items():
        assert documented[f"`{METRIC_PREFIX}{name}`"][1] == text
    hub.send(full_result())
    edit(hub, "PATCH", full_result().id, {"silenced": True})
    send(hub, run("a"))
    labels: dict[str, set[str]] = {}
    for name, pairs in scrape(hub):
        if name.startswith("devbench_"):
            labels.setdefault(re.sub("_(bucket|sum|count)$", "", name), set()).update(dict(pairs).keys() - {"key"})
    assert {name.strip("`"): set(spans(cells[0])) for name, cells in documented.items()} == labels


def test_metrics_equal_the_figures_of_the_result(hub: RunningHub) -> None:
    result = full_result()
    hub.send(result)
    for name, field in (("step_seconds", "value"), ("step_seconds_low", "low"), ("step_seconds_high", "high")):
        assert [value for _, value in samples_of(hub, name)] == [getattr(result.summary.step_seconds, field)]
    assert {labels["phase"]: value for labels, value in samples_of(hub, "phase_seconds")} == {
        name: interval.value for name, interval in result.summary.phases.items()
    }
    assert {labels["scope"]: value for labels, value in samples_of(hub, "projected_seconds")} == {
        "build_and_fit": 288,
        "total": 295,
    }
    assert {labels["direction"]: value for labels, value in samples_of(hub, "transfer_bytes_per_second")} == {
        "h2d": 5e9, "d2h": 2e3
    }  # fmt: skip
    assert [(labels["currency"], value) for labels, value in samples_of(hub, "cost_per_1000_steps")] == [("EUR", 0.02)]
    assert [value for _, value in samples_of(hub, "misplaced_operations")] == [2]
    assert [value for _, value in samples_of(hub, "timestamp_seconds")] == [MOMENT.timestamp() + 1]
    ((_, joules),) = samples_of(hub, "energy_joules_per_step")
    assert joules == pytest.approx(50 * 0.105 * (0.97 + 0.99 + 1 + 1 + 1.01 + 1.06) / 6)
    assert {labels["status"]: value for labels, value in samples_of(hub, "status")} == {
        "complete": 1,
        "partial": 0,
        "failed": 0,
    }


@pytest.mark.parametrize(("backend", "watts"), [("cpu", 50), ("cuda", 300)])
def test_energy_is_read_from_the_packages_for_the_cpu_and_from_the_gpu_for_a_gpu(
    hub: RunningHub, backend: str, watts: float
) -> None:
    result = measured("1", [0.1, 0.1], backend=backend)
    for sample, gpu in zip(result.samples, (600.0, None), strict=True):
        sample.telemetry = Telemetry(wall_seconds=2.0, package_joules=100.0, gpu_joules=gpu)
    hub.send(result)
    ((_, joules),) = samples_of(hub, "energy_joules_per_step")
    assert joules == pytest.approx(watts * 0.1 * (0.97 + 0.99 + 1 + 1 + 1.01 + 1.06) / 6)


def test_a_gpu_whose_energy_was_not_read_has_no_energy_metric(hub: RunningHub) -> None:
    result = full_result()
    hub.send(result.model_copy(update={"spec": result.spec.model_copy(update={"backend": "cuda"})}))
    assert samples_of(hub, "energy_joules_per_step") == []


def test_metrics_show_the_latest_run_of_each_key_but_no_sweeps_or_levels(hub: RunningHub) -> None:
    hub.send(measured("2", [0.2]))
    hub.send(measured("1", [0.1]))
    hub.send(measured("3", [0.3], purpose="sweep"))
    hub.send(measured("4", [0.4], purpose="level"))
    hub.send(measured("5", [0.5], backend="cuda"))
    assert sorted(labels["result"] for labels, _ in samples_of(hub, "info")) == ["2", "5"]
    assert len({labels["key"] for labels, _ in samples_of(hub, "step_seconds")}) == 2


def test_a_result_that_replaces_another_is_exported_immediately(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1], status="partial"))
    assert {labels["status"]: value for labels, value in samples_of(hub, "status")}["partial"] == 1
    hub.send(measured("1", [0.2, 0.2]))
    assert {labels["status"]: value for labels, value in samples_of(hub, "status")}["complete"] == 1


def test_only_the_info_metric_identifies_a_result(hub: RunningHub) -> None:
    environment = {
        "host": {"deployment": {"pool": "t4"}},
        "device": {"name": 'A "GPU"\\\n'},
        "framework": {"tensorflow": "2.21"},
    }
    hub.send(measured("1", [0.1], environment=environment))
    ((labels, value),) = samples_of(hub, "info")
    assert value == 1
    assert (labels["workload"], labels["backend"], labels["pool"], labels["tensorflow"]) == (
        "cifar",
        "cpu",
        "t4",
        "2.21",
    )
    assert labels["device"] == 'A "GPU"\\ '
    for name, pairs in scrape(hub):
        assert not {"job", "instance", "pod"} & dict(pairs).keys()
        if name.startswith(METRIC_PREFIX) and not name.endswith("_info"):
            assert dict(pairs).keys() - {"key", "status", "phase", "scope", "direction", "currency"} == set()


def test_the_info_metric_names_the_workers_of_a_result(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1]))
    for level in scaling_results():
        hub.send(level)
    labels = sorted(labels["workers"] for labels, _ in samples_of(hub, "info"))
    assert labels == ["", "1 worker", "2 workers", "4 workers"]


def test_the_runs_of_a_scaling_study_share_a_key_and_have_their_numbers_of_workers(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1]))
    for level in (*scaling_results(), *scaling_results("weak", 8, {2: 0.1}, scaling="weak")):
        hub.send(level)
    scaling_keys = {labels["scaling_key"] for labels, _ in samples_of(hub, "info") if labels["workers"]}
    assert len(scaling_keys) == 1
    assert scaling_keys != {""}
    assert {labels["scaling_key"] for labels, _ in samples_of(hub, "info") if not labels["workers"]} == {""}
    assert sorted(value for _, value in samples_of(hub, "workers")) == [1, 2, 2, 4]


def test_a_missing_bound_is_not_exported(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1], summary=Summary(step_seconds=Interval(value=1e308, low=None, high=None))))
    assert [value for _, value in samples_of(hub, "step_seconds")] == [1e308]
    assert samples_of(hub, "step_seconds_low") == []


def test_the_hub_exports_metrics_of_its_own_work(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1]))
    hub.request("GET", "/api/v1/results/none")
    hub.request("GET", "/nowhere/at/all")
    send(hub, run("a"))
    send(hub, run("b", state="finished"))
    values = {(name, tuple(sorted(dict(labels).items()))): value for (name, labels), value in scrape(hub).items()}
    requests = "devbench_hub_requests_total"
    put_labels = (("method", "PUT"), ("route", "/api/v1/results/{id}"), ("status", "200"))
    assert values[requests, put_labels] == 1
    assert values[requests, (("method", "GET"), ("route", "/api/v1/results/{id}"), ("status", "404"))] == 1
    assert values[requests, (("method", "GET"), ("route", "none"), ("status", "404"))] == 1
    assert values["devbench_hub_request_duration_seconds_count", (("route", "/api/v1/results/{id}"),)] == 2
    assert values["devbench_hub_rows", (("table", "results"),)] == 1
    assert values["devbench_hub_runs", (("state", "running"),)] == 1
    assert values["devbench_hub_runs", (("state", "finished"),)] == 1


def test_unused_and_invented_methods_share_one_label(hub: RunningHub) -> None:
    for method in ("LOCK", "MOVE", "PURGE", "REPORT", "MADE-UP"):
        assert hub.request(method, "/nowhere").status == 404
    requests = {labels: value for (name, labels), value in scrape(hub).items() if name == "devbench_hub_requests_total"}
    methods = {dict(labels)["method"]: value for labels, value in requests.items()}
    assert methods == {"other": 5}


@pytest.mark.needs("prometheus")
def test_promtool_accepts_the_metrics(hub: RunningHub) -> None:
    hub.send(full_result())
    text = hub.request("GET", "/metrics").data
    check = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert (check.returncode, check.stdout, check.stderr) == (0, b"", b"")
