"""Every kind of chart conforms to the schema of Vega-Lite, which itself ignores unknown properties."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import datetime, timezone
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from bench.render.charts import curves, phases, ratios, roofline, speedup, steps, timeline, waterfall
from bench.render.charts.curves import CrossingMark, Line
from bench.render.charts.phases import Segment
from bench.render.charts.ratios import Ratio
from bench.render.charts.speedup import SpeedUp
from bench.render.charts.steps import Spread
from bench.render.charts.timeline import TimelinePoint
from bench.render.charts.vega_process import VEGA
from bench.render.charts.waterfall import Bar

pytestmark = pytest.mark.once

MOMENT = datetime(2026, 1, 1, tzinfo=timezone.utc)
CHARTS: dict[str, Callable[[], str]] = {
    "ratios": lambda: ratios.draw([Ratio("a, b", 0.2, 0.1, 0.3, "faster"), Ratio("c", 9.0, None, None, "?")], 0.02),
    "phases": lambda: phases.draw([Segment("a", n, n, phases.colour("import")) for n in (1, 2)]),
    "steps": lambda: steps.draw([Spread("a", [0.1, 0.2], 0.1, 0.1, 0.2)]),
    "waterfall": lambda: waterfall.draw([Bar("all", 0, 1, "1 ms", "step"), Bar("a", 1, 0.9, "10%", "unmeasurable")]),
    "curves": lambda: curves.draw(
        [Line("a", [(1, 1, 0.9, 1.1), (2, 2, None, None)]), Line("b", [(1, 2, None, None), (2, 1, None, None)])],
        "batch",
        [CrossingMark(1.5, 1.2, None)],
    ),
    "speedup": lambda: speedup.draw(
        [SpeedUp(1, 0.9, 0.8, 1.0), SpeedUp(2, 1.7, None, None), SpeedUp(8, 0.4, 0.2, 0.9)]
    ),
    "roofline": lambda: roofline.draw(3.0, 2e10, [("memory", 2e10), ("cache", 2e11)], 3e11),
    "timeline": lambda: timeline.draw([TimelinePoint(MOMENT, 1.0, 0.9, None), TimelinePoint(MOMENT, 2, 1, 3)], [1]),
}


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft7Validator:
    """Return the schema of Vega-Lite, which Vega-Altair contains."""
    (path,) = [
        schema
        for version in files("altair.vegalite").iterdir()
        if version.is_dir() and (schema := version / "schema" / "vega-lite-schema.json").is_file()
    ]
    return jsonschema.Draft7Validator(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_conforms_to_the_vega_lite_schema(
    name: str, schema: jsonschema.Draft7Validator, monkeypatch: pytest.MonkeyPatch
) -> None:
    charts: list[str] = []
    draw = VEGA.draw

    def describe(chart: dict[str, Any]) -> str:
        charts.append(json.dumps(chart))
        return draw(chart)

    monkeypatch.setattr(VEGA, "draw", describe)
    assert CHARTS[name]().count("<path") >= 2
    (chart,) = map(json.loads, charts)
    schema.validate(chart)
    chart["layer"][0]["mark"]["hue"] = "red"
    with pytest.raises(jsonschema.ValidationError):
        schema.validate(chart)


@pytest.mark.parametrize(
    ("draw", "labels"),
    [
        (lambda: curves.draw([Line("a", [(x, 1, 1, 1) for x in (0.001, 0.5, 4096)])], "n", []), "0.001 0.5 4,096"),
        (lambda: curves.draw([Line("a", [(1, 0.68, None, None), (2, 0.69, None, None)])], "n", []), "650 ms 700 ms"),
        (lambda: ratios.draw([Ratio("a", 150.0, 12.0, 1500.0, "slower")], 0.02), "10 100 1,000"),
        (lambda: speedup.draw([SpeedUp(1, 1, None, None), SpeedUp(1024, 90, 80, 99)]), "1,024 64× 1,024×"),
        (lambda: steps.draw([Spread("a", [3600, 9000], 3600, 4000, 9000)]), "4,000 s 6,000 s"),
        (lambda: roofline.draw(1500.0, 1e12, [("memory", 1e12)], 2e13), "100 1,000 10,000 1 TFLOP/s"),
    ],
)  # fmt: skip
def test_the_labels_of_axes_are_plain_numbers_with_units(draw: Callable[[], str], labels: str) -> None:
    texts = re.findall(r"<text[^>]*>(.*?)</text>", draw())
    shown = " ".join(texts)
    assert all(label in shown for label in re.split(r" (?=\d)", labels)), shown
    assert not any(re.search(r"^\.|\de[+-]?\d|\d[mkM]$", text) for text in texts), shown


@pytest.mark.parametrize(("low", "high"), [(0.0, math.inf), (1e-80, 1e80)])
def test_a_very_wide_interval_does_not_widen_the_scale(
    low: float, high: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    charts: list[dict[str, Any]] = []

    def describe(chart: dict[str, Any]) -> str:
        charts.append(chart)
        return ""

    monkeypatch.setattr(VEGA, "draw", describe)
    ratios.draw([Ratio("a", 0.9, 0.85, 0.95, "faster"), Ratio("b", 1.0, low, high, "undecided")], 0.02)
    (chart,) = charts
    scales = [layer["encoding"]["x"].get("scale", {}) for layer in chart["layer"]]
    assert {tuple(scale["domain"]) for scale in scales if "domain" in scale} == {(0.1 / 1.15, 10.0 * 1.15)}
