"""The kernels of a device are found in a trace, whatever the plug-in calls the device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bench.worker.diagnose import xplane


def plane(name: str, *lines: str) -> Any:
    """Return a plane of a trace, each of whose lines has one event: the name of the plane and of the line."""
    events = {n: SimpleNamespace(name=f"{name} {line}") for n, line in enumerate(lines)}
    return SimpleNamespace(
        name=name,
        event_metadata=events,
        lines=[
            SimpleNamespace(
                name=line,
                timestamp_ns=1,
                events=[SimpleNamespace(metadata_id=n, offset_ps=2, duration_ps=3)],
            )
            for n, line in enumerate(lines)
        ],
    )


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("/device:GPU:0", "Stream #13(Compute)"),
        ("/device:GPU:0 (DirectML) - NVIDIA T4", "Kernels (CPU Timeline)"),
    ],
)
def test_the_kernels_of_the_device_are_found_on_its_plane(name: str, line: str) -> None:
    others = [plane("/host:CPU", line), plane("/device:GPU:01", line), plane("/device:GPU:10 (DirectML) - B", line)]
    space = SimpleNamespace(planes=[*others, plane(name, "XLA Ops", line, "Steps")])
    assert list(xplane._device_operations(space, "/device:GPU:0")) == [(f"{name} {line}", (1002, 1005))]
