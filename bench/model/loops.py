"""The loops, by name. The list of workloads needs only these, so they are apart from the models of a spec."""

from __future__ import annotations

from typing import Literal

Loop = Literal["as-written", "fit", "step", "host-batches", "resident", "fused"]
LOOPS: tuple[Loop, ...] = ("as-written", "fit", "step", "host-batches", "resident", "fused")
BARE: tuple[Loop, ...] = ("host-batches", "resident", "fused")
"""Loops without input. What they take is mostly computing."""
