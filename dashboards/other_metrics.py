"""A panel for the metrics of a run that no other panel queries, whatever they are called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dashboards.panels import FULL_WIDTH, over_time
from dashboards.parts import query

HUB_PREFIXES = ("devbench_result_", "devbench_hub_")
"""Beginnings of the names of the hub's metrics, which are not those of a run."""

SUFFIXES = ("info", "total", "bucket", "count", "sum")
"""Ends of the names of series that are not plain values."""


def other_metrics(panels: Sequence[Any], labels: str, legend: str) -> list[Any]:
    """Return the title of a row, and a panel of all metrics of a run that `panels` do not query.

    It shows values, the rates of counters and the medians of histograms. A new metric of a run therefore appears
    without a change to the dashboard.

    Args:
        panels: panels, and titles of rows.
        labels: the second factor of a query, which selects runs and adds their labels: `on (run) group_left …`.
        legend: the legend of a run.
    """
    builders = (panel for panel in panels if not isinstance(panel, str))
    queries = " ".join(target.expr for builder in builders for target in builder.build().targets)
    queried = sorted({name.removesuffix("_bucket") for name in re.findall(r"\bdevbench_\w+", queries)})
    excluded = [*(f"{name}(_bucket)?" for name in queried), *(f"{prefix}.*" for prefix in HUB_PREFIXES)]

    def series(names: str, *others: str) -> str:
        none_of = "|".join([*excluded, *others])
        return f'label_replace({{__name__=~"{names}", __name__!~"{none_of}"}}, "metric", "$1", "__name__", "(.+)")'

    def of_runs(expression: str, groups: str = "run, metric") -> str:
        return f"max by ({groups}) ({expression}) * {labels}"

    values = of_runs(series("devbench_.+", *(f".+_{suffix}" for suffix in SUFFIXES)))
    counters, buckets = series("devbench_.+_total"), series("devbench_.+_bucket")
    rates = of_runs(f"rate({counters}[$__rate_interval:])")
    medians = f"histogram_quantile(0.5, {of_runs(f'rate({buckets}[$__rate_interval:])', 'run, metric, le')})"
    panel = over_time(
        "Other metrics",
        "Metrics of runs that have no panel of their own: values, rates per second of counters, medians of histograms.",
        "short",
        *(query(expression, f"{legend}, {{{{metric}}}}") for expression in (values, rates, medians)),
    )
    return ["Other metrics", panel.span(FULL_WIDTH).no_value("Every metric has a panel of its own")]
