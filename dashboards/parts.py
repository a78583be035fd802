"""What all dashboards are put together from: variables, queries, and panels with a unit and a description each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from grafana_foundation_sdk.builders import (
    barchart,
    bargauge,
    common,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

TAG = "devbench"
SOURCE = DataSourceRef("prometheus", "${datasource}")
WIDTH, HEIGHT = 12, 9
SCRAPED = ("job", "instance", "namespace", "pod", "container", "endpoint", "service")
"""Labels that a scrape adds, in Kubernetes more of them than elsewhere."""

CHOSEN = 'workload=~"$workload", backend=~"$backend", pool=~"$pool"'
"""What the variables choose, among the labels of an info."""

Query: TypeAlias = prometheus.Dataquery


def query(expression: str, legend: str = "") -> Query:
    """A query over the dashboard's time."""
    return prometheus.Dataquery().expr(" ".join(expression.split())).legend_format(legend).range()


def now(expression: str, legend: str = "") -> Query:
    """A query of the latest values."""
    return prometheus.Dataquery().expr(" ".join(expression.split())).legend_format(legend).instant()


def rows(expression: str) -> Query:
    """A query of the latest values, with a column a label."""
    return now(expression).format(PromQueryFormat.TABLE)


def _common(panel: Any, title: str, description: str, queries: Sequence[Query]) -> Any:
    panel.title(title).description(description).datasource(SOURCE).span(WIDTH).height(HEIGHT)
    for index, each in enumerate(queries):
        panel.with_target(each.ref_id(chr(ord("A") + index)).datasource(SOURCE))
    return panel


def over_time(title: str, description: str, unit: str, *queries: Query) -> Any:
    """Lines over time."""
    panel = timeseries.Panel().unit(unit).line_width(2).fill_opacity(5).axis_label(title)
    legend = common.VizLegendOptions().show_legend(True).calcs(["lastNotNull"])
    panel.legend(legend.display_mode(kinds.LegendDisplayMode.TABLE).placement(kinds.LegendPlacement.BOTTOM))
    panel.tooltip(common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI))
    return _common(panel, title, description, queries)


def bars(title: str, description: str, unit: str, *queries: Query) -> Any:
    """A bar for each series, of its latest value."""
    panel = bargauge.Panel().unit(unit).min(0).orientation(kinds.VizOrientation.HORIZONTAL)
    panel.display_mode(kinds.BarGaugeDisplayMode.BASIC)
    return _common(panel, title, description, queries)


def figures(title: str, description: str, unit: str, *queries: Query) -> Any:
    """Large figures, of the latest values."""
    return _common(stat.Panel().unit(unit), title, description, queries)


def states(title: str, description: str, *queries: Query) -> Any:
    """What was so when: a band for each series while it is 1."""
    panel = statetimeline.Panel().unit("none").show_value(kinds.VisibilityMode.NEVER)
    return _common(panel, title, description, queries)


def listing(title: str, description: str, unit: str, *queries: Query, hidden: Sequence[str] = ()) -> Any:
    """A table of the latest values, with a column a label but for the hidden ones."""
    panel = table.Panel().unit(unit)
    away = dict.fromkeys(("Time", "__name__", *SCRAPED, *hidden), True)
    panel.with_transformation(DataTransformerConfig("organize", options={"excludeByName": away}))
    return _common(panel, title, description, queries)


def stacked(title: str, description: str, unit: str, bar: str, parts: tuple[str, Sequence[str]], one: Query) -> Any:
    """Bars of the latest values, each of parts that lie on each other.

    Args:
        title: of the panel.
        description: what it shows.
        unit: of the values.
        bar: label that names a bar.
        parts: label that names a part, and the parts from the first on.
        one: gives a row for each part of each bar.
    """
    panel = barchart.Panel().unit(unit).axis_label(title).orientation(kinds.VizOrientation.HORIZONTAL)
    panel.stacking(kinds.StackingMode.NORMAL).show_value(kinds.VisibilityMode.NEVER)
    panel.x_tick_label_max_length(60)
    legend = common.VizLegendOptions().show_legend(True).display_mode(kinds.LegendDisplayMode.LIST)
    panel.legend(legend.placement(kinds.LegendPlacement.BOTTOM))
    panel.tooltip(common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI))
    label, names = parts
    by = {"rowField": bar, "columnField": label, "valueField": "Value", "emptyValue": "null"}
    panel.with_transformation(DataTransformerConfig("groupingToMatrix", options=by))
    order = {name: place for place, name in enumerate((f"{bar}\\{label}", *names))}
    panel.with_transformation(DataTransformerConfig("organize", options={"indexByName": order}))
    return _common(panel, title, description, [one])


def heat(title: str, description: str, unit: str, one: Query) -> Any:
    """How many fall into each bucket of a histogram, over time."""
    panel = heatmap.Panel().calculate(False).y_axis(heatmap.YAxisConfig().unit(unit)).unit("short")
    panel.color(heatmap.HeatmapColorOptions().scheme("Spectral").steps(64)).show_legend()
    return _common(panel, title, description, [one.format(PromQueryFormat.HEATMAP)])


def variable(name: str, label: str, info: str) -> build.QueryVariable:
    """A choice among the values of a label, all of them at first; also those series that lack it."""
    values: dict[str, object] = {"query": f"label_values({info}, {name})", "refId": name}
    made = (
        build.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(values)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
    )
    return made.multi(True).include_all(True).all_value(".*").sort(VariableSort.ALPHABETICAL_ASC)


def board(uid: str, title: str, description: str, info: str, panels: Sequence[Any]) -> build.Dashboard:
    """A dashboard of panels in rows of two.

    Args:
        uid: names it in addresses.
        title: as Grafana lists it.
        description: what it is for.
        info: metric whose labels the variables choose from.
        panels: in their order; one with a text alone begins a new row.
    """
    made = build.Dashboard(f"devbench / {title}").uid(f"devbench-{uid}").description(description).tags([TAG])
    made.time("now-6h", "now").refresh("30s").timezone("browser").tooltip(DashboardCursorSync.CROSSHAIR).readonly()
    made.with_variable(build.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    for name, label in (("workload", "Workload"), ("backend", "Backend"), ("pool", "Pool")):
        made.with_variable(variable(name, label, info))
    made.with_variable(build.TextBoxVariable("hub").label("Hub").default_value("http://localhost:8080"))
    others = build.DashboardLink("Dashboards").type(DashboardLinkType.DASHBOARDS).tags([TAG]).as_dropdown(True)
    made.link(others.include_vars(True).keep_time(True))
    made.link(build.DashboardLink("Hub").type(DashboardLinkType.LINK).url("${hub}").target_blank(True))
    for each in panels:
        made.with_row(build.Row(each)) if isinstance(each, str) else made.with_panel(each)
    return made


def text(made: build.Dashboard) -> str:
    """A dashboard as its file holds it: numbered panels, keys in order."""
    model = made.build()
    for number, panel in enumerate(model.panels or [], 1):
        panel.id_val = number
    return json.dumps(model, cls=JSONEncoder, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
