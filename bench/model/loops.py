"""The names of the loops. They are apart from the models of a spec, which the list of workloads does not need."""

from __future__ import annotations

from typing import Literal

Loop = Literal["as-written", "fit", "step", "host-batches", "resident", "fused"]
LOOPS: tuple[Loop, ...] = ("as-written", "fit", "step", "host-batches", "resident", "fused")
BARE: tuple[Loop, ...] = ("host-batches", "resident", "fused")
"""Loops that read no input. Their time is mostly computing."""
