"""The figures of a result: each is declared once, with its label, unit, text and metric.

The terminal's table, the report and the hub's metrics are made from this list, so a figure has one name everywhere.
Each module declares the figures under one heading of the table.
"""

from __future__ import annotations

from bench.render.fields import cold_start, run, series, steady_state, traced_step, training
from bench.render.fields.field import Field

METRIC_PREFIX = "devbench_result_"
"""Prefix of the hub's metrics."""

FIELDS: tuple[Field, ...] = (
    *run.FIELDS,
    *cold_start.FIELDS,
    *steady_state.FIELDS,
    *traced_step.FIELDS,
    *series.FIELDS,
    *training.FIELDS,
)
"""In the order of the table."""
