"""Kinds of panel, each with a title, a description and a unit, whose colours mean something or are all one."""

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
WHOLE = 24
"""Columns of a panel; of a whole row."""

SCRAPED = ("job", "instance", "namespace", "pod", "container", "endpoint", "service")
"""Labels that a scrape adds, in Kubernetes more of them than elsewhere."""

PLAIN, GOOD, DOUBTFUL, BAD = "blue", "green", "orange", "red"
"""Colours: of a value that is neither good nor bad, and of one that is."""

BOUND = ", (low|high)$"
"""How the legend of an interval's bound ends."""


def _common(panel: Any, title: str, description: str, queries: Sequence[Query]) -> Any:
    panel.title(title).description(description).datasource(SOURCE).span(WIDTH).height(HEIGHT)
    for index, each in enumerate(queries):
        panel.with_target(each.ref_id(chr(ord("A") + index)).datasource(SOURCE))
    return panel


def _legend(mode: kinds.LegendDisplayMode) -> common.VizLegendOptions:
    made = common.VizLegendOptions().show_legend(True).display_mode(mode)
    return made.placement(kinds.LegendPlacement.BOTTOM)


def _all_series() -> common.VizTooltipOptions:
    return common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI)


def _letters(title: int, value: int) -> common.VizTextDisplayOptions:
    """Letters of these sizes in px, however few series there are."""
    return common.VizTextDisplayOptions().title_size(title).value_size(value)


def steps(first: str, *others: tuple[float, str]) -> build.ThresholdsConfig:
    """Colours by value: one from the least value on, and others from theirs on."""
    found = [Threshold(None, first), *(Threshold(value, colour) for value, colour in others)]
    return build.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(found)


def over_time(title: str, description: str, unit: str, *queries: Query, zero: bool = True) -> Any:
    """Lines over time, from zero or else close up; an interval's bounds are dashed, and are not in the legend."""
    panel = timeseries.Panel().unit(unit).line_width(2).fill_opacity(5).axis_label(title)
    panel.legend(_legend(kinds.LegendDisplayMode.TABLE).calcs(["lastNotNull"])).tooltip(_all_series())
    if zero:
        panel.axis_soft_min(0)
    bound = {
        "custom.lineStyle": {"fill": "dash", "dash": [4, 4]},
        "custom.lineWidth": 1,
        "custom.fillOpacity": 0,
        "custom.hideFrom": {"legend": True, "tooltip": False, "viz": False},
    }
    panel.override_by_regexp(f"/{BOUND}/", [DynamicConfigValue(*each) for each in bound.items()])
    return _common(panel, title, description, queries)


def counts(title: str, description: str, unit: str, *queries: Query) -> Any:
    """Whole numbers over time."""
    return over_time(title, description, unit, *queries).decimals(0).axis_soft_max(1)


def bars(title: str, description: str, unit: str, one: Query) -> Any:
    """A bar for each series, of its latest value, all of one colour."""
    panel = bargauge.Panel().unit(unit).min(0).orientation(kinds.VizOrientation.HORIZONTAL)
    panel.display_mode(kinds.BarGaugeDisplayMode.BASIC).text(_letters(13, 14)).thresholds(steps(PLAIN))
    # Its legend once more, by fields: else a bar that is alone has no name.
    panel.display_name(re.sub(r"\{\{(\w+)\}\}", r"${__field.labels.\1}", one.build().legend_format or ""))
    panel.sizing(kinds.BarGaugeSizing.MANUAL).min_viz_height(16).max_viz_height(32)
    return _common(panel, title, description, [one])


def figures(title: str, description: str, unit: str, colours: Mapping[str, str], *queries: Query) -> Any:
    """Large figures, of the latest values.

    Args:
        title: of the panel.
        description: what it shows.
        unit: of the values.
        colours: of a series that is not 0, by its legend.
        queries: of the latest values.
    """
    panel = stat.Panel().unit(unit).text(_letters(20, 48)).thresholds(steps("text"))
    panel.graph_mode(kinds.BigValueGraphMode.NONE)
    for name, colour in colours.items():
        panel.override_by_name(name, [DynamicConfigValue("thresholds", steps("text", (1, colour)).build())])
    return _common(panel, title, description, queries)


def states(title: str, description: str, named: Mapping[str, str], *queries: Query) -> Any:
    """What was so when: a row for each series.

    Args:
        title: of the panel.
        description: what it shows.
        named: states and their colours; the first is the value 1, the next 2.
        queries: of numbers of states.
    """
    panel = statetimeline.Panel().unit("none").show_value(kinds.VisibilityMode.NEVER)
    by = {str(number): ValueMappingResult(name, named[name]) for number, name in enumerate(named, 1)}
    panel.mappings([ValueMap(by)]).color_scheme(build.FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC))
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
    kept: Sequence[str] = (),
) -> Any:
    """A table of the latest values, a row for each set of labels.

    Args:
        title: of the panel.
        description: what it shows.
        unit: of the values.
        columns: labels, and `Value #A` and so on for the queries' values, in their order, and what each is called.
        queries: with the same labels.
        sort: columns that its rows are sorted by.
        hidden: labels that are left out.
        kept: labels that links need, and that are not shown.
    """
    panel = table.Panel().unit(unit).thresholds(steps("text")).min_width(60)
    panel.sort_by([common.TableSortByFieldState().display_name(name) for name in sort])
    away = dict.fromkeys(("Time", "__name__", *SCRAPED, *hidden), True)
    order = {name: place for place, name in enumerate((*columns, *kept))}
    options = {"excludeByName": away, "indexByName": order, "renameByName": dict(columns)}
    panel.with_transformation(DataTransformerConfig("merge", options={}))
    panel.with_transformation(DataTransformerConfig("organize", options=options))
    for name in kept:
        panel.override_by_name(name, [DynamicConfigValue("custom.hidden", True)])
    return _common(panel, title, description, queries)


class Cells(NamedTuple):
    """The latest values by program and by another label.

    Args:
        expression: gives a value for each cell.
        program: labels that together name a row or a bar.
        label: names a column or a part of a bar.
        columns: its values from the first on.
    """

    expression: str
    program: Sequence[str]
    label: str
    columns: Sequence[str]


def _by_program(panel: Any, title: str, description: str, cells: Cells) -> Any:
    """Makes of a value a row a matrix: programs in their order, columns in the order given."""
    corner = f"what\\{cells.label}"
    names = ", ".join(f'"{name}"' for name in cells.program)
    one = rows(f'label_join({cells.expression}, "what", " ", {names})')
    by = {"rowField": "what", "columnField": cells.label, "valueField": "Value", "emptyValue": "null"}
    panel.with_transformation(DataTransformerConfig("groupingToMatrix", options=by))
    panel.with_transformation(DataTransformerConfig("sortBy", options={"sort": [{"field": corner}]}))
    order = {name: place for place, name in enumerate((corner, *cells.columns))}
    options = {"indexByName": order, "renameByName": {corner: "program"}}
    panel.with_transformation(DataTransformerConfig("organize", options=options))
    return _common(panel, title, description, [one])


def matrix(title: str, description: str, unit: str, cells: Cells) -> Any:
    """A table of the latest values: a row a program, a column for each value of another label."""
    panel = table.Panel().unit(unit).thresholds(steps("text")).min_width(60)
    panel.override_by_name("program", [DynamicConfigValue("custom.width", 320)])
    return _by_program(panel, title, description, cells)


def stacked(title: str, description: str, unit: str, cells: Cells) -> Any:
    """Bars of the latest values, one a program, each of parts that lie on each other."""
    panel = barchart.Panel().unit(unit).axis_label(title).orientation(kinds.VizOrientation.HORIZONTAL)
    panel.stacking(kinds.StackingMode.NORMAL).show_value(kinds.VisibilityMode.NEVER).x_tick_label_max_length(60)
    panel.legend(_legend(kinds.LegendDisplayMode.LIST)).tooltip(_all_series())
    return _by_program(panel, title, description, cells)


def heat(title: str, description: str, unit: str, one: Query) -> Any:
    """How many fall into each bucket of a histogram, over time."""
    panel = heatmap.Panel().calculate(False).y_axis(heatmap.YAxisConfig().unit(unit)).unit("short")
    panel.color(heatmap.HeatmapColorOptions().scheme("Spectral").steps(64)).show_legend()
    return _common(panel, title, description, [one.format(PromQueryFormat.HEATMAP)])
