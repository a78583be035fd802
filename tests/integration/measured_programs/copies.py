"""The built-in copies between host and device, on a device whose memory is the host's: the way is the same."""

from __future__ import annotations

from bench.workloads import transfer

Params = transfer.Params
probes = transfer.probes
