"""The copies of the built-in `transfer`. On a CPU they use the same code as on a GPU."""

from __future__ import annotations

from bench.workloads import transfer

Params = transfer.Params
probes = transfer.probes
