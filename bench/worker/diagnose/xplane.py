"""Reading a trace that TensorFlow's profiler wrote: how the time of its steps divides, and which operations took it.

A trace (an XSpace, `*.xplane.pb`) holds planes: one of the host, whose lines are threads, and one of each GPU, whose
lines are streams. On a host thread an operation is called "name:Type"; on a stream every event is a kernel or a copy.
Worker's side only: it needs the message's class, which TensorFlow brings.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.errors import WorkloadError
from bench.model.result import OperationTime, Profile

WINDOW = "devbench profile"
"""The event that spans the traced steps, their synchronisation included."""

STEP = "train"
"""The event that spans one step: the name that Keras gives it too."""

OPERATION = re.compile(r"^(?!Iterator::)[^:]+:(\w+)$")
CONTAINERS = {"PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile", "If", "StatelessIf", "Case"}
"""Operations that only hold others."""

INPUT = "Iterator::Root"
"""The end of a `tf.data` pipeline being asked for its next element, and waited for."""

NOT_WORK = re.compile(rf"^({WINDOW}|{STEP}$|ThreadpoolListener|Memory(Alloc|Dealloc)ation)")
TOP = 8

Span = tuple[int, int]
"""Start and end, picoseconds."""


def read(folder: Path, device: str, steps: int) -> Profile:
    """What the newest trace below a folder says.

    Args:
        folder: as it was given to the profiler.
        device: where the steps ran, such as "/device:GPU:0".
        steps: traced.

    Raises:
        WorkloadError: there is no trace, or nothing of these steps in it.
    """
    files = sorted(folder.glob("plugins/profile/*/*.xplane.pb"), key=lambda path: path.stat().st_mtime)
    if not files:
        raise WorkloadError(f"TensorFlow's profiler wrote no trace into {folder}", "See whether it can be written.")
    space = _space_class()()
    space.ParseFromString(files[-1].read_bytes())
    host = next((plane for plane in space.planes if plane.name == "/host:CPU"), None)
    window = next((span for name, span, _ in _events(host) if name == WINDOW), None) if host else None
    if window is None:
        raise WorkloadError(f"the trace in {folder} holds none of the steps", "Another profiler may have been running.")
    on_cpu = "CPU" in device
    operations = list(_host_operations(host)) if on_cpu else list(_device_operations(space, device))
    waits = [span for name, span, _ in _events(host) if name == INPUT]
    host_work = [
        span for name, span, line in _events(host) if not line.startswith("tf_data") and not NOT_WORK.match(name)
    ]
    known = on_cpu or bool(operations)
    computing = _length([span for _, span in operations], window)
    with_input = _length([*(span for _, span in operations), *waits], window)
    with_host = _length([*(span for _, span in operations), *waits, *host_work], window)
    whole = window[1] - window[0]
    return Profile(
        folder=str(folder),
        steps=steps,
        step_seconds=whole / steps / 1e12,
        device_share=computing / whole if known else None,
        input_share=(with_input - computing) / whole,
        host_share=(with_host - with_input) / whole,
        idle_share=1 - with_host / whole,
        operations=_busiest(operations, window, steps),
    )


def _space_class() -> Any:
    """The class of the message, which moved between versions of TensorFlow."""
    try:
        from tensorflow.tsl.profiler.protobuf import xplane_pb2
    except ImportError:
        from tensorflow.core.profiler.protobuf import xplane_pb2
    return xplane_pb2.XSpace


def _events(plane: Any) -> Iterator[tuple[str, Span, str]]:
    """Name, span and line of each event of a plane."""
    names = {key: each.name for key, each in plane.event_metadata.items()}
    for line in plane.lines:
        for event in line.events:
            start = line.timestamp_ns * 1000 + event.offset_ps
            yield names[event.metadata_id], (start, start + event.duration_ps), line.name


def _host_operations(plane: Any) -> Iterator[tuple[str, Span]]:
    """Operations of the step, not those within the input pipeline's own functions."""
    for name, span, line in _events(plane):
        found = OPERATION.match(name)
        if found and not line.startswith("tf_data") and found[1] not in CONTAINERS and "Iterator" not in found[1]:
            yield found[1].removeprefix("_"), span


def _device_operations(space: Any, device: str) -> Iterator[tuple[str, Span]]:
    """Kernels and copies on the device's streams; the other lines of such a plane tell the same in other words."""
    wanted = device.lower().removeprefix("/device:")
    for plane in space.planes:
        if plane.name.lower().startswith("/device:") and plane.name.lower().endswith(wanted):
            yield from ((name, span) for name, span, line in _events(plane) if line.startswith("Stream"))


def _length(spans: Iterable[Span], window: Span) -> int:
    """How much of a window is covered by at least one span."""
    covered, reached = 0, window[0]
    for start, end in sorted(spans):
        start, end = max(start, reached), min(end, window[1])
        if end > start:
            covered += end - start
            reached = end
    return covered


def _busiest(operations: Iterable[tuple[str, Span]], window: Span, steps: int) -> list[OperationTime]:
    """Kinds of operations with the time that they took on all threads or streams together, the longest first."""
    seconds: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for name, (start, end) in operations:
        if window[0] <= start < window[1]:
            seconds[name] += (end - start) / 1e12
            calls[name] += 1
    order = sorted(seconds, key=lambda name: -seconds[name])[:TOP]
    return [OperationTime(name=name, seconds=seconds[name] / steps, calls=calls[name] / steps) for name in order]
