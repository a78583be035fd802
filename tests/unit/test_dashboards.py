"""Dashboards: the committed JSON is up to date, its panels are described, and its queries are valid."""

from __future__ import annotations

import functools
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT

from bench.publish.prometheus.counters import INFO
from bench.publish.prometheus.metrics import METRICS, RunMetric

pytestmark = pytest.mark.once

FOLDER = ROOT / "charts" / "devbench" / "dashboards"
BOARDS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
EACH_BOARD = pytest.mark.parametrize("board", BOARDS.values(), ids=list(BOARDS))
ALL = {"$workload": ".*", "$backend": ".*", "$pool": ".*", "$__rate_interval": "2m", "$__range": "5m"}
"""The initial values of the variables."""


def panels(board: Any) -> Iterator[Any]:
    """Yield the panels without the titles of rows."""
    yield from (panel for panel in board["panels"] if panel["type"] != "row")


def queries(board: Any) -> Iterator[str]:
    for panel in panels(board):
        yield from (target["expr"] for target in panel["targets"])


def with_defaults(expression: str) -> str:
    """Return a query with the initial values of its variables."""
    return functools.reduce(lambda text, name: text.replace(name, ALL[name]), ALL, expression)


def panel_of(name: str, title: str) -> Any:
    """Return the panel of a board whose title starts with `title`."""
    (panel,) = (panel for panel in panels(BOARDS[name]) if panel["title"].startswith(title))
    return panel


def check_expressions(tests: Any, folder: Path) -> None:
    """Run these tests of expressions with promtool, and fail with its output if one of them fails."""
    (folder / "tests.yaml").write_text(json.dumps({"tests": tests}), encoding="utf-8")
    process = subprocess.run(["promtool", "test", "rules", str(folder / "tests.yaml")], capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.needs("grafana-sdk")
def test_the_committed_files_are_up_to_date(tmp_path: Path) -> None:
    assert importlib.util.find_spec("grafana_foundation_sdk")
    subprocess.run([sys.executable, "-m", "dashboards", str(tmp_path)], check=True, cwd=ROOT)
    generated = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert generated == committed, "run: python -m dashboards"


def test_there_are_three_dashboards() -> None:
    assert {board["title"] for board in BOARDS.values()} == {
        "devbench / Side by side",
        "devbench / Live run",
        "devbench / Health",
    }
    assert len({board["uid"] for board in BOARDS.values()}) == 3


@EACH_BOARD
def test_every_panel_has_a_title_a_description_a_unit_and_the_selected_data_source(board: Any) -> None:
    for panel in panels(board):
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert sources == [{"type": "prometheus", "uid": "${datasource}"}] * len(sources)
        assert panel["targets"]


@EACH_BOARD
def test_panels_do_not_overlap_and_have_unique_ids(board: Any) -> None:
    occupied: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
        assert not cells & occupied, panel["title"]
        assert place["x"] + place["w"] <= 24
        occupied |= cells
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)


@EACH_BOARD
def test_a_board_has_variables_for_data_source_workload_backend_pool_and_hub(board: Any) -> None:
    names = [variable["name"] for variable in board["templating"]["list"]]
    assert names == ["datasource", "workload", "backend", "pool", "hub"]


@EACH_BOARD
def test_no_query_uses_a_label_that_depends_on_the_setup_of_prometheus(board: Any) -> None:
    for expression in queries(board):
        assert not re.findall(r"\b(job|instance|pod|namespace|container|endpoint|service)\b", expression)


@pytest.mark.needs("prometheus")
def test_a_run_that_is_both_scraped_and_pushed_is_shown_once(tmp_path: Path) -> None:
    expressions = [
        with_defaults(query) for board in BOARDS.values() for query in queries(board) if "devbench_run_" in query
    ]
    assert len(expressions) > 15
    others = {"devbench_other_bytes", "devbench_other_total", "devbench_other_seconds_bucket"}
    names = sorted(others.union(re.findall(r"\bdevbench_\w+", " ".join(expressions))))
    labels = {"devbench_run_state": 'state="failed"', "devbench_phase_seconds": 'phase="import"'}
    common = 'workload="cifar", backend="cpu", le="1", pool="p"'
    series = [
        {
            "series": f'{name}{{run="7", {labels.get(name, common)}, job="{job}"}}',
            "values": "1+60x20" if name.endswith(("_total", "_bucket")) else "1x20",
        }
        for name in names
        for job in ("runs", "pushed")
    ]
    expected = {"eval_time": "10m", "exp_samples": [{"labels": "{}", "value": 1}]}
    tests = [{"expr": f"count({expression}) < 2 or vector(-1)", **expected} for expression in expressions]
    check_expressions([{"interval": "1m", "input_series": series, "promql_expr_test": tests}], tmp_path)


@pytest.mark.needs("prometheus")
def test_the_latest_result_of_each_device_is_compared_with_the_latest_result_of_the_pools_cpu(
    tmp_path: Path,
) -> None:
    results = [  # key, backend, device, timestamp, start, step
        ("3 CPUs", "cpu", "Xeon", 1, 2, 0.5),
        ("7 CPUs", "cpu", "Xeon", 2, 1, 0.25),
        ("other CPUs", "cpu", "EPYC", 0, 1, 1),
        ("T4 by 3 CPUs", "cuda", "T4", 1, 4, 0.03125),
        ("T4 by 7 CPUs", "cuda", "T4", 2, 3, 0.125),
        ("L4 by 7 CPUs", "cuda", "L4", 3, 4, 0.0625),
    ]
    input_series = []
    for key, backend, device, timestamp, start, step in results:
        labels = f'program="1", workload="cifar", loop="fit", pool="p", backend="{backend}", device="{device}"'
        metrics = {f"info{{{labels}, ": 1, "timestamp_seconds{": timestamp, "step_seconds{": step}
        for name, value in {**metrics, 'phase_seconds{phase="import", ': start}.items():
            for hub in ("1", "2"):
                series = f'devbench_result_{name}key="{key}", instance="{hub}"}}'
                input_series.append({"series": series, "values": f"{value}x20"})
    expected = {
        ("side-by-side", "Speed-up"): {"T4 by 7 CPUs": 2, "L4 by 7 CPUs": 4},
        ("side-by-side", "Break-even"): {"T4 by 7 CPUs": 16, "L4 by 7 CPUs": 16},
        ("health", "Age"): {"7 CPUs": 598, "L4 by 7 CPUs": 597},
    }
    tests = [
        {
            "expr": f"sum by (key) ({with_defaults(panel_of(*panel)['targets'][0]['expr'])})",
            "eval_time": "10m",
            "exp_samples": [{"labels": f'{{key="{key}"}}', "value": value} for key, value in values.items()],
        }
        for panel, values in expected.items()
    ]
    check_expressions([{"interval": "1m", "input_series": input_series, "promql_expr_test": tests}], tmp_path)


@pytest.mark.needs("prometheus")
def test_the_scaling_panels_compare_the_newest_runs_of_one_program_on_one_device(tmp_path: Path) -> None:
    results = [  # key, device, workers, scaling key, timestamp, examples/s
        ("one", "T4", "1 worker", "new", 10, 100),
        ("two", "T4", "2 workers", "new", 11, 180),
        ("two weak", "T4", "2 workers (weak)", "new", 12, 190),
        ("two before a change", "T4", "2 workers", "old", 1, 999),
        ("one on other CPUs", "T4", "1 worker", "new", 2, 7),
        ("two on another device", "L4", "2 workers", "new", 3, 500),
    ]
    input_series = []
    for key, device, workers, scaling_key, timestamp, rate in results:
        labels = (
            f'workload="cifar", backend="cuda", pool="p", loop="step", dtype="float32", device="{device}", '
            f'workers="{workers}", scaling_key="{scaling_key}"'
        )
        metrics = {
            f"info{{{labels}, ": 1, "timestamp_seconds{": timestamp, "examples_per_second{": rate, "step_seconds{": 1,
            "step_seconds_low{": 0.8, "step_seconds_high{": 1.25, "workers{": int(workers[0]),
        }  # fmt: skip
        for name, value in metrics.items():
            for hub in ("1", "2"):
                series = f'devbench_result_{name}key="{key}", instance="{hub}"}}'
                input_series.append({"series": series, "values": f"{value}x20"})
    line = "cifar cuda p step float32"
    curve = {
        (line, "1"): 100, (f"{line}, low", "1"): 80, (f"{line}, high", "1"): 125,
        (line, "2"): 180, (f"{line}, low", "2"): 144, (f"{line}, high", "2"): 225,
        (f"{line}, weak", "2"): 190, (f"{line}, weak, low", "2"): 152, (f"{line}, weak, high", "2"): 237.5,
        (f"{line}, ideal", "1"): 100, (f"{line}, ideal", "2"): 200,
    }  # fmt: skip
    efficiency = {"1 worker": 1, "2 workers": 0.9, "2 workers (weak)": 0.95}
    tests = []
    for title, names, values in (
        ("Throughput by number", ("what", "count"), curve.items()),
        ("Efficiency by number", ("workers",), [((workers,), value) for workers, value in efficiency.items()]),
    ):
        expression = with_defaults(panel_of("side-by-side", title)["targets"][0]["expr"])
        samples = []
        for cell, value in values:
            pairs = ", ".join(f'{name}="{label}"' for name, label in zip(names, cell, strict=True))
            samples.append({"labels": f"{{{pairs}}}", "value": value})
        query = f"sum by ({', '.join(names)}) ({expression})"
        tests.append({"expr": query, "eval_time": "10m", "exp_samples": samples})
    check_expressions([{"interval": "1m", "input_series": input_series, "promql_expr_test": tests}], tmp_path)


@pytest.mark.needs("grafana-sdk")
def test_a_new_metric_of_a_run_changes_no_dashboard(monkeypatch: pytest.MonkeyPatch) -> None:
    from grafana_foundation_sdk.cog.encoder import JSONEncoder

    from dashboards import live_run

    def read(run: Any) -> None:
        return None

    before = JSONEncoder(sort_keys=True).encode(live_run.dashboard().build())
    new = RunMetric("devbench_new", "gauge", "New.", read)
    monkeypatch.setattr("bench.publish.prometheus.metrics.METRICS", (*METRICS, new))
    assert JSONEncoder(sort_keys=True).encode(live_run.dashboard().build()) == before


@pytest.mark.needs("grafana-sdk", "prometheus")
def test_the_live_dashboard_shows_metrics_without_a_panel_of_their_own(tmp_path: Path) -> None:
    panel = panel_of("live-run", "Other metrics")
    labels = 'run="7", workload="cifar", backend="cpu", pool="p", loop="fit"'
    own = [metric.name for metric in METRICS]
    names = [
        *own, "devbench_step_duration_seconds_bucket", "devbench_result_step_seconds", "devbench_hub_rows",
        "devbench_shown_bytes", "devbench_words_total", "devbench_letters_total", "devbench_wait_seconds_bucket",
    ]  # fmt: skip
    series = [{"series": f'{name}{{{labels}, kind="a", le="1", pod="x"}}', "values": "1+60x20"} for name in names]
    expressions = [with_defaults(target["expr"]) for target in panel["targets"]]
    shown = [
        ["devbench_shown_bytes"],
        ["devbench_letters_total", "devbench_words_total"],
        ["devbench_wait_seconds_bucket"],
    ]
    tests = [
        {
            "expr": f"count by (metric) ({expression})",
            "eval_time": "10m",
            "exp_samples": [{"labels": f'{{metric="{name}"}}', "value": 1} for name in metrics],
        }
        for expression, metrics in zip(expressions, shown, strict=True)
    ]
    check_expressions([{"interval": "1m", "input_series": series, "promql_expr_test": tests}], tmp_path)


def test_queries_use_only_existing_metrics_and_labels_of_a_run() -> None:
    metrics = {metric.name for metric in METRICS} | {"devbench_step_duration_seconds_bucket"}
    for board in BOARDS.values():
        for expression in queries(board):
            names = set(re.findall(r"\bdevbench_\w+", expression))
            run_metrics = {name for name in names if not name.startswith(("devbench_result_", "devbench_hub_"))}
            assert run_metrics <= metrics
            for labels in re.findall(r"on \(run\) group_left \(([^)]*)\)", expression):
                assert {label.strip() for label in labels.split(",")} <= {*INFO}


def test_step_times_link_to_the_history_on_the_hub() -> None:
    (panel,) = (panel for panel in panels(BOARDS["side-by-side"]) if panel["title"] == "Typical step")
    properties = {field["matcher"]["options"]: field["properties"] for field in panel["fieldConfig"]["overrides"]}
    ((link,),) = (item["value"] for item in properties["step"] if item["id"] == "links")
    assert link["url"] == "${hub}/history/${__data.fields.key}"
    assert {"id": "custom.hidden", "value": True} in properties["key"]  # the link needs the column, but it is not shown


def test_every_bar_links_to_the_history_of_its_result() -> None:
    for panel in panels(BOARDS["side-by-side"]):
        if panel["type"] == "bargauge":
            (link,) = panel["fieldConfig"]["defaults"]["links"]
            assert link["url"] == "${hub}/history/${__field.labels.key}", panel["title"]


def test_the_unit_of_a_cost_is_its_currency() -> None:
    (panel,) = (panel for panel in panels(BOARDS["side-by-side"]) if panel["title"].startswith("Cost"))
    (target,) = panel["targets"]
    assert target["legendFormat"].startswith("{{currency}} ")
    units = {
        field["matcher"]["options"]: field["properties"][0]["value"] for field in panel["fieldConfig"]["overrides"]
    }
    assert units["/^EUR /"] == "currencyEUR"


@EACH_BOARD
def test_the_default_address_of_the_hub_is_localhost(board: Any) -> None:
    (hub,) = (variable for variable in board["templating"]["list"] if variable["name"] == "hub")
    assert hub["current"]["value"] == hub["query"] == "http://localhost:8080"


@EACH_BOARD
def test_panels_replace_the_default_thresholds_of_grafana(board: Any) -> None:
    for panel in panels(board):
        if panel["type"] in ("bargauge", "stat", "table"):
            assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["color"], panel["title"]


@EACH_BOARD
def test_a_row_of_panels_has_no_gap(board: Any) -> None:
    widths: dict[int, int] = {}
    for panel in board["panels"]:
        place = panel["gridPos"]
        widths[place["y"]] = widths.get(place["y"], 0) + place["w"]
    assert set(widths.values()) == {24}


@EACH_BOARD
def test_a_bar_has_the_same_name_alone_as_among_others(board: Any) -> None:
    for panel in panels(board):
        if panel["type"] == "bargauge":
            legend = panel["targets"][0]["legendFormat"]
            assert (
                re.sub(r"\$\{__field\.labels\.(\w+)\}", r"{{\1}}", panel["fieldConfig"]["defaults"]["displayName"])
                == legend
            )
