"""The parts of every dashboard: variables, queries and the board. The kinds of panel are in `dashboards.panels`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import prometheus
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    VariableOption,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

TAG = "devbench"
SOURCE = DataSourceRef("prometheus", "${datasource}")

HUB = "http://localhost:8080"
"""Default address of the hub: the one that the port-forward in the chart's notes gives it."""

SELECTED = 'workload=~"$workload", backend=~"$backend", pool=~"$pool"'
"""Selector of the info metrics that match the variables of a dashboard."""

Query: TypeAlias = prometheus.Dataquery


def query(expression: str, legend: str = "") -> Query:
    """Return a query over the time range of the dashboard."""
    return prometheus.Dataquery().expr(" ".join(expression.split())).legend_format(legend).range()


def now(expression: str, legend: str = "") -> Query:
    """Return a query of the latest values."""
    return prometheus.Dataquery().expr(" ".join(expression.split())).legend_format(legend).instant()


def rows(expression: str) -> Query:
    """Return a query of the latest values as a table, with a column per label."""
    return now(expression).format(PromQueryFormat.TABLE)


def with_workers(info: str) -> str:
    """Return an info metric whose label `loop` also names the workers, if there are any: "step, 2 workers".

    Args:
        info: Query of an info metric with the label `workers`.
    """
    joined = f'label_join({info}, "loop", ", ", "loop", "workers")'
    return f'label_replace({joined}, "loop", "$1", "loop", "(.*), ")'  # without workers, the label ends with the comma


def variable(name: str, label: str, info: str) -> build.QueryVariable:
    """Return a variable that selects values of a label. Default: all, including series without the label."""
    values: dict[str, object] = {"query": f"label_values({info}, {name})", "refId": name}
    selection = (
        build.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(values)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
    )
    return selection.multi(True).include_all(True).all_value(".*").sort(VariableSort.ALPHABETICAL_ASC)


def board(
    uid: str, title: str, description: str, info: str, panels: Sequence[Any], since: str = "24h"
) -> build.Dashboard:
    """Return a dashboard. A row holds two panels, or one of full width.

    Args:
        uid: Identifier in URLs.
        title: Title in Grafana's list.
        description: Purpose of the dashboard.
        info: Metric whose labels the variables select from.
        panels: Panels in order. A string is the title of a new section.
        since: Default time range, back from now.
    """
    dashboard = build.Dashboard(f"devbench / {title}").uid(f"devbench-{uid}").description(description).tags([TAG])
    dashboard.time(f"now-{since}", "now").refresh("30s").timezone("browser")
    dashboard.tooltip(DashboardCursorSync.CROSSHAIR).readonly()
    dashboard.with_variable(build.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    for name, label in (("workload", "Workload"), ("backend", "Backend"), ("pool", "Pool")):
        dashboard.with_variable(variable(name, label, info))
    hub = VariableOption(True, HUB, HUB)  # without it, the box is empty and links are broken
    box = build.TextBoxVariable("hub").label("Hub").default_value(HUB).current(hub).options([hub])
    dashboard.with_variable(box)
    dashboards = build.DashboardLink("Dashboards").type(DashboardLinkType.DASHBOARDS).tags([TAG]).as_dropdown(True)
    dashboard.link(dashboards.include_vars(True).keep_time(True))
    dashboard.link(build.DashboardLink("Hub").type(DashboardLinkType.LINK).url("${hub}").target_blank(True))
    for panel in panels:
        dashboard.with_row(build.Row(panel)) if isinstance(panel, str) else dashboard.with_panel(panel)
    return dashboard


def text(dashboard: build.Dashboard) -> str:
    """Return the JSON of a dashboard, with numbered panels and sorted keys."""
    model = dashboard.build()
    for number, panel in enumerate(model.panels or [], 1):
        panel.id_val = number
    return json.dumps(model, cls=JSONEncoder, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
