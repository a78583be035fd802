"""Panels for the metrics of a run that no other panel shows, made from their declarations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bench.publish.prometheus.metrics import METRICS, RunMetric
from dashboards.panels import over_time
from dashboards.parts import query

UNITS = {"seconds": "s", "bytes": "bytes", "ratio": "percentunit", "watts": "watt"}
"""Base unit of a metric: Grafana's name for it. A metric without a base unit is a plain number."""


def other_metrics(panels: Sequence[Any], labels: str, legend: str, metrics: Sequence[RunMetric] = METRICS) -> list[Any]:
    """Return the title of a row and a panel for each metric that `panels` do not query. Empty if they query all.

    Args:
        panels: panels, and titles of rows.
        labels: the second factor of a query, which selects runs and adds their labels: `on (run) group_left …`.
        legend: the legend of a run.
        metrics: the metrics to look for.
    """
    builders = (panel for panel in panels if not isinstance(panel, str))
    queries = " ".join(target.expr for builder in builders for target in builder.build().targets)
    others = [
        _panel(metric, labels, legend) for metric in metrics if not re.search(rf"\b{metric.name}(_bucket)?\b", queries)
    ]
    return ["Other metrics", *others] if others else []


def _panel(metric: RunMetric, labels: str, legend: str) -> Any:
    """Return a value over time, the rate of a counter, or the median of a histogram."""
    groups = ", ".join(filter(None, ("run", metric.label)))
    expression, unit, meaning = metric.name, UNITS.get(metric.unit, "short"), metric.help
    if metric.kind == "counter":
        expression, unit, meaning = f"rate({metric.name}[$__rate_interval])", "short", f"Rate per second. {metric.help}"
    elif metric.kind == "histogram":
        groups, meaning = "run, le", f"Median. {metric.help}"
        expression = f"rate({metric.name}_bucket[$__rate_interval])"
    series = f"max by ({groups}) ({expression}) * {labels}"
    if metric.kind == "histogram":
        series = f"histogram_quantile(0.5, {series})"
    suffix = f", {{{{{metric.label}}}}}" if metric.label else ""
    return over_time(metric.name, meaning, unit, query(series, legend + suffix))
