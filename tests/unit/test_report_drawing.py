"""Every kind of chart is one that Vega-Lite's schema allows: a word that it has not would be left out in silence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime, timezone
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from bench.render.charts import bars, curves, timeline
from bench.render.charts.bars import Bar, Ratio, Segment, Spread
from bench.render.charts.curves import Crossing, Line
from bench.render.charts.engine import ENGINE

pytestmark = pytest.mark.once

WHEN = datetime(2026, 1, 1, tzinfo=timezone.utc)
CHARTS: dict[str, Callable[[], str]] = {
    "ratios": lambda: bars.ratios([Ratio("a, b", 0.2, 0.1, 0.3, "faster"), Ratio("c", 9.0, None, None, "?")], 0.02),
    "phases": lambda: bars.phases([Segment("a", n, "import", n, bars.colour("import")) for n in (1, 2)]),
    "steps": lambda: bars.steps([Spread("a", [0.1, 0.2], 0.1, 0.1, 0.2)]),
    "waterfall": lambda: bars.waterfall([Bar("all", 0, 1, "1 ms", "whole"), Bar("a", 1, 0.9, "10%", "unsure")]),
    "curves": lambda: curves.curves(
        [Line("a", [(1, 1, 0.9, 1.1), (2, 2, None, None)]), Line("b", [(1, 2, None, None), (2, 1, None, None)])],
        "batch",
        [Crossing(1.5, 1.2, None)],
    ),
    "roofline": lambda: curves.roofline(3.0, 2e10, [("memory", 2e10, 6e10), ("cache", 2e11, 6e11)], 3e11),
    "history": lambda: timeline.history([timeline.Moment(WHEN, 1.0, 0.9, None), timeline.Moment(WHEN, 2, 1, 3)], [1]),
}


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft7Validator:
    """Vega-Lite's own, as Vega-Altair carries it."""
    (path,) = [
        found
        for version in files("altair.vegalite").iterdir()
        if version.is_dir() and (found := version / "schema" / "vega-lite-schema.json").is_file()
    ]
    return jsonschema.Draft7Validator(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_holds_nothing_that_vega_lite_does_not_know(
    name: str, schema: jsonschema.Draft7Validator, monkeypatch: pytest.MonkeyPatch
) -> None:
    described: list[str] = []
    draw = ENGINE.draw

    def describe(chart: dict[str, Any]) -> str:
        described.append(json.dumps(chart))
        return draw(chart)

    monkeypatch.setattr(ENGINE, "draw", describe)
    assert CHARTS[name]().count("<path") >= 2
    (chart,) = map(json.loads, described)
    schema.validate(chart)
    chart["layer"][0]["mark"]["hue"] = "red"
    with pytest.raises(jsonschema.ValidationError):
        schema.validate(chart)


@pytest.mark.parametrize(("low", "high"), [(0.0, math.inf), (1e-80, 1e80)])
def test_an_interval_that_bounds_nothing_leaves_the_others_room(
    low: float, high: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    described: list[dict[str, Any]] = []

    def describe(chart: dict[str, Any]) -> str:
        described.append(chart)
        return ""

    monkeypatch.setattr(ENGINE, "draw", describe)
    bars.ratios([Ratio("a", 0.9, 0.85, 0.95, "faster"), Ratio("b", 1.0, low, high, "undecided")], 0.02)
    (chart,) = described
    scales = [layer["encoding"]["x"].get("scale", {}) for layer in chart["layer"]]
    assert {tuple(each["domain"]) for each in scales if "domain" in each} == {(0.1 / 1.15, 10.0 * 1.15)}
