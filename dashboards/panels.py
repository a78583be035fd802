"""Kinds of panel. Each has a title, a description and a unit. Different colours mean good and bad."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from grafana_foundation_sdk.builders import (
    barchart,
    bargauge,
    common,
    heatmap,
    stat,
    statetimeline,
    table,
    timeseries,
    trend,
)
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.parts import SOURCE, Query, rows

WIDTH, HEIGHT = 12, 9
FULL_WIDTH = 24
"""Columns of a full row. A panel has WIDTH of them."""

SCRAPED = ("job", "instance", "namespace", "pod", "container", "endpoint", "service")
"""Labels that a scrape adds. Kubernetes adds the most."""

PLAIN, GOOD, WARNING, BAD = "blue", "green", "orange", "red"
"""Colours of values: neutral, good, suspicious and bad."""

BOUND = ", (low|high)$"
"""Regular expression for the end of a bound's legend."""

IDEAL = ", ideal$"
"""Regular expression for the end of an ideal line's legend."""


def _common(panel: Any, title: str, description: str, queries: Sequence[Query]) -> Any:
    panel.title(title).description(description).datasource(SOURCE).span(WIDTH).height(HEIGHT)
    for index, query in enumerate(queries):
        panel.with_target(query.ref_id(chr(ord("A") + index)).datasource(SOURCE))
    return panel


def _legend(mode: kinds.LegendDisplayMode) -> common.VizLegendOptions:
    options = common.VizLegendOptions().show_legend(True).display_mode(mode)
    return options.placement(kinds.LegendPlacement.BOTTOM)


def _all_series() -> common.VizTooltipOptions:
    return common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI)


def _letters(title: int, value: int) -> common.VizTextDisplayOptions:
    """Return fixed letter sizes in px. Otherwise the letters grow if there are few series."""
    return common.VizTextDisplayOptions().title_size(title).value_size(value)


def steps(first: str, *others: tuple[float, str]) -> build.ThresholdsConfig:
    """Return colours by value: the first for the lowest values, and others from a value on."""
    thresholds = [Threshold(None, first), *(Threshold(value, colour) for value, colour in others)]
    return build.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(thresholds)


def over_time(title: str, description: str, unit: str, *queries: Query, zero: bool = True) -> Any:
    """Return a panel of lines over time.

    Bounds of an interval are dashed and not in the legend. If `zero` is false, the axis need not include 0.
    """
    panel = timeseries.Panel().unit(unit).line_width(2).fill_opacity(5).axis_label(title)
    panel.legend(_legend(kinds.LegendDisplayMode.TABLE).calcs(["lastNotNull"])).tooltip(_all_series())
    if zero:
        panel.axis_soft_min(0)
    _dash_bounds(panel)
    return _common(panel, title, description, queries)


def _dash_bounds(panel: Any) -> None:
    """Draw the bounds of intervals as thin dashed lines, which are not in the legend."""
    bound = {
        "custom.lineStyle": {"fill": "dash", "dash": [4, 4]},
        "custom.lineWidth": 1,
        "custom.fillOpacity": 0,
        "custom.hideFrom": {"legend": True, "tooltip": False, "viz": False},
    }
    panel.override_by_regexp(f"/{BOUND}/", [DynamicConfigValue(*item) for item in bound.items()])


def counts(title: str, description: str, unit: str, *queries: Query) -> Any:
    """Return a panel of whole numbers over time."""
    return over_time(title, description, unit, *queries).decimals(0).axis_soft_max(1)


def bars(title: str, description: str, unit: str, query: Query) -> Any:
    """Return a panel with a bar per series for its latest value. All bars have the same colour."""
    panel = bargauge.Panel().unit(unit).min(0).orientation(kinds.VizOrientation.HORIZONTAL)
    panel.display_mode(kinds.BarGaugeDisplayMode.BASIC).text(_letters(13, 14)).thresholds(steps(PLAIN))
    # The legend again, by fields. Otherwise, a single bar has no name.
    panel.display_name(re.sub(r"\{\{(\w+)\}\}", r"${__field.labels.\1}", query.build().legend_format or ""))
    panel.sizing(kinds.BarGaugeSizing.MANUAL).min_viz_height(16).max_viz_height(32)
    return _common(panel, title, description, [query])


def figures(title: str, description: str, unit: str, colours: Mapping[str, str], *queries: Query) -> Any:
    """Return a panel of large figures for the latest values.

    Args:
        title: Title of the panel.
        description: Description of the panel.
        unit: Unit of the values.
        colours: Colour of a series that is not 0, by legend.
        queries: Queries of the latest values.
    """
    panel = stat.Panel().unit(unit).text(_letters(20, 48)).thresholds(steps("text"))
    panel.graph_mode(kinds.BigValueGraphMode.NONE)
    for name, colour in colours.items():
        panel.override_by_name(name, [DynamicConfigValue("thresholds", steps("text", (1, colour)).build())])
    return _common(panel, title, description, queries)


def states(title: str, description: str, colours: Mapping[str, str], *queries: Query) -> Any:
    """Return a panel of states over time, with a row per series.

    Args:
        title: Title of the panel.
        description: Description of the panel.
        colours: Colours by state, in the order of the states' numbers, which start at 1.
        queries: Queries of the numbers of states.
    """
    panel = statetimeline.Panel().unit("none").show_value(kinds.VisibilityMode.NEVER)
    results = {str(number): ValueMappingResult(name, colours[name]) for number, name in enumerate(colours, 1)}
    panel.mappings([ValueMap(results)]).color_scheme(build.FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC))
    panel.row_height(0.8).merge_values(True).legend(_legend(kinds.LegendDisplayMode.LIST))
    return _common(panel, title, description, queries)


def listing(
    title: str,
    description: str,
    unit: str,
    columns: Mapping[str, str],
    *queries: Query,
    sort: Sequence[str] = (),
    hidden: Sequence[str] = (),
    link_columns: Sequence[str] = (),
) -> Any:
    """Return a table of the latest values, with a row per set of labels.

    Args:
        title: Title of the panel.
        description: Description of the panel.
        unit: Unit of the values.
        columns: Titles of the columns in order, by label, or by `Value #A` and so on for the values of the queries.
        queries: Queries with the same labels.
        sort: Columns to sort the rows by.
        hidden: Labels to leave out.
        link_columns: Labels that links need. They are not shown.
    """
    panel = table.Panel().unit(unit).thresholds(steps("text")).min_width(60)
    panel.sort_by([common.TableSortByFieldState().display_name(name) for name in sort])
    excluded = dict.fromkeys(("Time", "__name__", *SCRAPED, *hidden), True)
    order = {name: place for place, name in enumerate((*columns, *link_columns))}
    options = {"excludeByName": excluded, "indexByName": order, "renameByName": dict(columns)}
    panel.with_transformation(DataTransformerConfig("merge", options={}))
    panel.with_transformation(DataTransformerConfig("organize", options=options))
    for name in link_columns:
        panel.override_by_name(name, [DynamicConfigValue("custom.hidden", True)])
    return _common(panel, title, description, queries)


class Cells(NamedTuple):
    """The latest values by program and by another label.

    Args:
        expression: Query that has a value per cell.
        program: Labels that together name a row or a bar.
        label: Label that names a column or a part of a bar.
        columns: Values of the label, in order.
    """

    expression: str
    program: Sequence[str]
    label: str
    columns: Sequence[str]


def _by_program(panel: Any, title: str, description: str, cells: Cells) -> Any:
    """Turn rows of one value into a matrix with sorted programs and ordered columns."""
    corner = f"what\\{cells.label}"
    names = ", ".join(f'"{name}"' for name in cells.program)
    query = rows(f'label_join({cells.expression}, "what", " ", {names})')
    matrix_options = {"rowField": "what", "columnField": cells.label, "valueField": "Value", "emptyValue": "null"}
    panel.with_transformation(DataTransformerConfig("groupingToMatrix", options=matrix_options))
    panel.with_transformation(DataTransformerConfig("sortBy", options={"sort": [{"field": corner}]}))
    order = {name: place for place, name in enumerate((corner, *cells.columns))}
    options = {"indexByName": order, "renameByName": {corner: "program"}}
    panel.with_transformation(DataTransformerConfig("organize", options=options))
    return _common(panel, title, description, [query])


def matrix(title: str, description: str, unit: str, cells: Cells) -> Any:
    """Return a table of the latest values, with a row per program and a column per value of another label."""
    panel = table.Panel().unit(unit).thresholds(steps("text")).min_width(60)
    panel.override_by_name("program", [DynamicConfigValue("custom.width", 320)])
    return _by_program(panel, title, description, cells)


def curve(title: str, description: str, unit: str, expression: str, x: str, axis: str) -> Any:
    """Return a panel of lines over a number, such as the number of workers.

    Bounds of an interval and ideal lines are dashed. Only the bounds are not in the legend.

    Args:
        title: Title of the panel, and of the vertical axis.
        description: Description of the panel.
        unit: Unit of the values.
        expression: Query of the latest values. The label `what` names the line.
        x: Label with the number, in digits.
        axis: Title of the horizontal axis.
    """
    panel = trend.Panel().unit(unit).line_width(2).axis_label(title).axis_soft_min(0).x_field(axis)
    panel.show_points(kinds.VisibilityMode.ALWAYS).point_size(6).span_nulls(True)
    panel.legend(_legend(kinds.LegendDisplayMode.LIST)).tooltip(_all_series())
    _dash_bounds(panel)
    ideal = {"custom.lineStyle": {"fill": "dot", "dash": [2, 6]}, "custom.lineWidth": 1, "custom.showPoints": "never"}
    panel.override_by_regexp(f"/{IDEAL}/", [DynamicConfigValue(*item) for item in ideal.items()])
    panel.override_by_name(axis, [DynamicConfigValue("unit", "none"), DynamicConfigValue("custom.axisLabel", axis)])
    corner = f"{x}\\what"
    options = {"rowField": x, "columnField": "what", "valueField": "Value", "emptyValue": "null"}
    panel.with_transformation(DataTransformerConfig("groupingToMatrix", options=options))
    numbers = {"conversions": [{"targetField": corner, "destinationType": "number"}], "fields": {}}
    panel.with_transformation(DataTransformerConfig("convertFieldType", options=numbers))
    panel.with_transformation(DataTransformerConfig("sortBy", options={"sort": [{"field": corner}]}))
    panel.with_transformation(DataTransformerConfig("organize", options={"renameByName": {corner: axis}}))
    return _common(panel, title, description, [rows(expression)])


def stacked(title: str, description: str, unit: str, cells: Cells) -> Any:
    """Return stacked bars of the latest values, one bar per program."""
    panel = barchart.Panel().unit(unit).axis_label(title).orientation(kinds.VizOrientation.HORIZONTAL)
    panel.stacking(kinds.StackingMode.NORMAL).show_value(kinds.VisibilityMode.NEVER).x_tick_label_max_length(60)
    panel.legend(_legend(kinds.LegendDisplayMode.LIST)).tooltip(_all_series())
    return _by_program(panel, title, description, cells)


def heat(title: str, description: str, unit: str, query: Query) -> Any:
    """Return a heat map of a histogram: the count per bucket over time."""
    panel = heatmap.Panel().calculate(False).y_axis(heatmap.YAxisConfig().unit(unit)).unit("short")
    panel.color(heatmap.HeatmapColorOptions().scheme("Spectral").steps(64)).show_legend()
    return _common(panel, title, description, [query.format(PromQueryFormat.HEATMAP)])
