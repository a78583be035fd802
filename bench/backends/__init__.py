"""Backends: where a workload runs. One module each; the files present are the backends there are.

A backend module holds

    NAME, DESCRIPTION, EXTRA (package extra), IMAGE (container image), PLATFORMS (where it can be)
    environment(spec) -> dict[str, str]   variables that a worker needs before TensorFlow is imported
    require() -> None                     raises DeviceAbsent with cause and fix; quick, without TensorFlow
    configure(tf) -> str                  in the worker: chooses the device, hides the others, returns its
                                          name such as "/device:GPU:0"; raises DeviceAbsent
    slow_start(tf) -> str                 in the worker, before it is configured: why its first start may take
                                          many minutes; empty where it does not
    describe(tf) -> dict[str, Any]        in the worker: what device it is, with versions of what drives it
    checks() -> Iterator[Check]           doctor's checks, without TensorFlow in this process

Importing a backend module imports no TensorFlow.
"""

from __future__ import annotations

from bench.model.check import Check, Status

__all__ = ["Check", "Status"]
