"""What all dashboards are put together from: variables, queries, the board itself. Its panels: `dashboards.panels`."""

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
"""Where a hub is, if nothing else is said: the address that the chart's port-forward gives it."""

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


def board(
    uid: str, title: str, description: str, info: str, panels: Sequence[Any], since: str = "24h"
) -> build.Dashboard:
    """A dashboard of panels in rows of two, or one that is as wide.

    Args:
        uid: names it in addresses.
        title: as Grafana lists it.
        description: what it is for.
        info: metric whose labels the variables choose from.
        panels: in their order; one with a text alone begins a new row.
        since: how far back it shows at first.
    """
    made = build.Dashboard(f"devbench / {title}").uid(f"devbench-{uid}").description(description).tags([TAG])
    made.time(f"now-{since}", "now").refresh("30s").timezone("browser")
    made.tooltip(DashboardCursorSync.CROSSHAIR).readonly()
    made.with_variable(build.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    for name, label in (("workload", "Workload"), ("backend", "Backend"), ("pool", "Pool")):
        made.with_variable(variable(name, label, info))
    hub = VariableOption(True, HUB, HUB)  # without one chosen Grafana shows an empty box, and links lead nowhere
    box = build.TextBoxVariable("hub").label("Hub").default_value(HUB).current(hub).options([hub])
    made.with_variable(box)
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
