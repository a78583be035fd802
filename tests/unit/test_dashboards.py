"""Dashboards: the committed JSON is what the generator makes, and every panel says what it shows and in which unit."""

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
from bench.publish.prometheus.metrics import METRICS

pytestmark = pytest.mark.once

FOLDER = ROOT / "charts" / "devbench" / "dashboards"
BOARDS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
EACH = pytest.mark.parametrize("board", BOARDS.values(), ids=list(BOARDS))
ALL = {"$workload": ".*", "$backend": ".*", "$pool": ".*", "$__rate_interval": "2m", "$__range": "5m"}
"""The variables as they are at first."""


def panels(board: Any) -> Iterator[Any]:
    """Its panels but for the rows' titles."""
    yield from (panel for panel in board["panels"] if panel["type"] != "row")


def queries(board: Any) -> Iterator[str]:
    for panel in panels(board):
        yield from (target["expr"] for target in panel["targets"])


def filled(expression: str) -> str:
    """A query with everything chosen."""
    return functools.reduce(lambda text, name: text.replace(name, ALL[name]), ALL, expression)


def panel_of(name: str, title: str) -> Any:
    """The panel of a board whose title begins so."""
    (found,) = (panel for panel in panels(BOARDS[name]) if panel["title"].startswith(title))
    return found


def told(tests: Any, folder: Path) -> None:
    """Fails with what Prometheus says where it answers otherwise than these tests of rules want."""
    (folder / "tried.yaml").write_text(json.dumps({"tests": tests}), encoding="utf-8")
    ran = subprocess.run(["promtool", "test", "rules", str(folder / "tried.yaml")], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.needs("grafana-sdk")
def test_the_committed_files_are_what_the_generator_makes(tmp_path: Path) -> None:
    assert importlib.util.find_spec("grafana_foundation_sdk")
    subprocess.run([sys.executable, "-m", "dashboards", str(tmp_path)], check=True, cwd=ROOT)
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert made == committed, "make them again: python -m dashboards"


def test_there_are_the_three_that_are_meant() -> None:
    assert {board["title"] for board in BOARDS.values()} == {
        "devbench / Side by side",
        "devbench / Live run",
        "devbench / Health",
    }
    assert len({board["uid"] for board in BOARDS.values()}) == 3


@EACH
def test_every_panel_has_a_title_a_description_a_unit_and_the_chosen_data_source(board: Any) -> None:
    for panel in panels(board):
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert sources == [{"type": "prometheus", "uid": "${datasource}"}] * len(sources)
        assert panel["targets"]


@EACH
def test_no_two_panels_lie_over_one_another_and_each_has_its_number(board: Any) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)


@EACH
def test_data_source_workload_backend_and_pool_can_be_chosen(board: Any) -> None:
    names = [variable["name"] for variable in board["templating"]["list"]]
    assert names == ["datasource", "workload", "backend", "pool", "hub"]


@EACH
def test_no_query_names_what_only_one_kind_of_prometheus_has(board: Any) -> None:
    for expression in queries(board):
        assert not re.findall(r"\b(job|instance|pod|namespace|container|endpoint|service)\b", expression)


@pytest.mark.needs("prometheus")
def test_a_run_that_is_scraped_and_pushed_too_is_shown_once(tmp_path: Path) -> None:
    asked = [filled(each) for board in BOARDS.values() for each in queries(board) if "devbench_run_" in each]
    assert len(asked) > 15
    names = sorted(set(re.findall(r"\bdevbench_\w+", " ".join(asked))))
    own = {"devbench_run_state": 'state="failed"', "devbench_phase_seconds": 'phase="import"'}
    common = 'workload="cifar", backend="cpu", le="1", pool="p"'
    made = [
        {
            "series": f'{name}{{run="7", {own.get(name, common)}, job="{job}"}}',
            "values": "1+60x20" if name.endswith(("_total", "_bucket")) else "1x20",
        }
        for name in names
        for job in ("runs", "pushed")
    ]
    once = {"eval_time": "10m", "exp_samples": [{"labels": "{}", "value": 1}]}
    tried = [{"expr": f"count({expression}) < 2 or vector(-1)", **once} for expression in asked]
    told([{"interval": "1m", "input_series": made, "promql_expr_test": tried}], tmp_path)


@pytest.mark.needs("prometheus")
def test_of_a_pool_whose_cpus_changed_the_devices_measured_last_are_set_against_the_cpu_measured_last(
    tmp_path: Path,
) -> None:
    known = [  # key, backend, device, when, start, step
        ("3 CPUs", "cpu", "Xeon", 1, 2, 0.5),
        ("7 CPUs", "cpu", "Xeon", 2, 1, 0.25),
        ("other CPUs", "cpu", "EPYC", 0, 1, 1),
        ("T4 by 3 CPUs", "cuda", "T4", 1, 4, 0.03125),
        ("T4 by 7 CPUs", "cuda", "T4", 2, 3, 0.125),
        ("L4 by 7 CPUs", "cuda", "L4", 3, 4, 0.0625),
    ]
    made = []
    for key, backend, device, when, start, step in known:
        labels = f'program="1", workload="cifar", loop="fit", pool="p", backend="{backend}", device="{device}"'
        metrics = {f"info{{{labels}, ": 1, "timestamp_seconds{": when, "step_seconds{": step}
        for name, value in {**metrics, 'phase_seconds{phase="import", ': start}.items():
            for hub in ("1", "2"):
                series = f'devbench_result_{name}key="{key}", instance="{hub}"}}'
                made.append({"series": series, "values": f"{value}x20"})
    expected = {
        ("side-by-side", "Speed-up"): {"T4 by 7 CPUs": 2, "L4 by 7 CPUs": 4},
        ("side-by-side", "Break-even"): {"T4 by 7 CPUs": 16, "L4 by 7 CPUs": 16},
        ("health", "Age"): {"7 CPUs": 598, "L4 by 7 CPUs": 597},
    }
    tried = [
        {
            "expr": f"sum by (key) ({filled(panel_of(*place)['targets'][0]['expr'])})",
            "eval_time": "10m",
            "exp_samples": [{"labels": f'{{key="{key}"}}', "value": value} for key, value in each.items()],
        }
        for place, each in expected.items()
    ]
    told([{"interval": "1m", "input_series": made, "promql_expr_test": tried}], tmp_path)


def test_the_live_dashboard_shows_every_metric_of_a_run() -> None:
    text = " ".join(queries(BOARDS["live-run"]))
    assert [each.name for each in METRICS if not re.search(rf"\b{each.name}(_bucket)?\b", text)] == []


def test_no_query_asks_for_a_metric_or_label_of_a_run_that_there_is_not() -> None:
    known = {each.name for each in METRICS} | {"devbench_step_duration_seconds_bucket"}
    for board in BOARDS.values():
        for expression in queries(board):
            named = set(re.findall(r"\bdevbench_\w+", expression))
            ours = {name for name in named if not name.startswith(("devbench_result_", "devbench_hub_"))}
            assert ours <= known
            for labels in re.findall(r"on \(run\) group_left \(([^)]*)\)", expression):
                assert {label.strip() for label in labels.split(",")} <= {*INFO}


def test_steps_are_linked_to_the_hubs_history() -> None:
    (panel,) = (panel for panel in panels(BOARDS["side-by-side"]) if panel["title"] == "Typical step")
    overridden = {each["matcher"]["options"]: each["properties"] for each in panel["fieldConfig"]["overrides"]}
    ((link,),) = (each["value"] for each in overridden["step"] if each["id"] == "links")
    assert link["url"] == "${hub}/history/${__data.fields.key}"
    assert {"id": "custom.hidden", "value": True} in overridden["key"]  # there for the link, but not shown


def test_every_bar_leads_to_the_history_of_its_result() -> None:
    for panel in panels(BOARDS["side-by-side"]):
        if panel["type"] == "bargauge":
            (link,) = panel["fieldConfig"]["defaults"]["links"]
            assert link["url"] == "${hub}/history/${__field.labels.key}", panel["title"]


def test_a_cost_has_its_currency_as_unit() -> None:
    (panel,) = (panel for panel in panels(BOARDS["side-by-side"]) if panel["title"].startswith("Cost"))
    (target,) = panel["targets"]
    assert target["legendFormat"].startswith("{{currency}} ")
    units = {each["matcher"]["options"]: each["properties"][0]["value"] for each in panel["fieldConfig"]["overrides"]}
    assert units["/^EUR /"] == "currencyEUR"


@EACH
def test_a_link_to_the_hub_leads_somewhere_before_an_address_is_given(board: Any) -> None:
    (hub,) = (variable for variable in board["templating"]["list"] if variable["name"] == "hub")
    assert hub["current"]["value"] == hub["query"] == "http://localhost:8080"


@EACH
def test_no_value_is_red_only_because_it_is_above_grafanas_own_80(board: Any) -> None:
    for panel in panels(board):
        if panel["type"] in ("bargauge", "stat", "table"):
            assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["color"], panel["title"]


@EACH
def test_a_row_of_panels_has_no_gap(board: Any) -> None:
    widths: dict[int, int] = {}
    for panel in board["panels"]:
        place = panel["gridPos"]
        widths[place["y"]] = widths.get(place["y"], 0) + place["w"]
    assert set(widths.values()) == {24}


@EACH
def test_a_bar_that_is_alone_has_its_name(board: Any) -> None:
    for panel in panels(board):
        if panel["type"] == "bargauge":
            legend = panel["targets"][0]["legendFormat"]
            assert (
                re.sub(r"\$\{__field\.labels\.(\w+)\}", r"{{\1}}", panel["fieldConfig"]["defaults"]["displayName"])
                == legend
            )
