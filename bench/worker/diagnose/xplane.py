"""Reads a trace of TensorFlow's profiler: how the time of its steps divides, and which operations took the time.

A trace (an XSpace, `*.xplane.pb`) holds planes: one for the host, whose lines are threads, and one for each GPU, whose
lines are streams. On a thread of the host, an operation is called "name:Type". On a stream, every event is a kernel or
a copy. Worker's side only, because TensorFlow provides the class of the message.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.errors import WorkloadError
from bench.model.profile import OperationTime, Profile

WINDOW = "devbench profile"
"""The event that spans the traced steps with their synchronization."""

STEP = "train"
"""The event that spans one step. Keras uses the same name."""

OPERATION = re.compile(r"^(?!Iterator::)[^:]+:(\w+)$")

CONTAINERS = {"PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile", "If", "StatelessIf", "Case"}
"""Operations that only hold others."""

INPUT = "Iterator::Root"
"""The event in which a step waits for the next element of its `tf.data` pipeline."""

NOT_WORK = re.compile(rf"^({WINDOW}|{STEP}$|ThreadpoolListener|Memory(Alloc|Dealloc)ation)")
"""Events of the host that are no work."""

STREAMS = ("Stream", "Kernels (CPU Timeline)")
"""A line whose name begins with one of these holds what a device runs: with CUDA, and with the DirectML plug-in."""

LONGEST = 8
"""Maximum number of types of operations that are listed."""

Span = tuple[int, int]
"""Start and end, in picoseconds."""


def read(folder: Path, device: str, steps: int) -> Profile:
    """Read the newest trace in a folder. On a CPU, the operations of the host count as those of the device.

    Args:
        folder: the folder that the profiler was given.
        device: the device that the steps ran on, such as "/device:GPU:0".
        steps: number of steps that were traced.

    Raises:
        WorkloadError: there is no trace, or it holds none of the steps.
    """
    files = sorted(folder.glob("plugins/profile/*/*.xplane.pb"), key=lambda path: path.stat().st_mtime)
    if not files:
        raise WorkloadError(f"TensorFlow's profiler wrote no trace to {folder}", "Check that the folder is writable.")
    space = _space_class()()
    space.ParseFromString(files[-1].read_bytes())
    host = next((plane for plane in space.planes if plane.name == "/host:CPU"), None)
    window = next((span for name, span, _ in _events(host) if name == WINDOW), None) if host else None
    if window is None:
        raise WorkloadError(f"the trace in {folder} holds no step", "Check that no other profiler is running.")
    on_cpu = "CPU" in device
    operations = list(_host_operations(host)) if on_cpu else list(_device_operations(space, device))
    running = [span for _, span in operations]
    waits = [span for name, span, _ in _events(host) if name == INPUT]
    host_work = [
        span for name, span, line in _events(host) if not line.startswith("tf_data") and not NOT_WORK.match(name)
    ]
    has_trace = on_cpu or bool(operations)
    computing = _covered(running, window)
    with_input = _covered([*running, *waits], window)
    with_host = _covered([*running, *waits, *host_work], window)
    duration = window[1] - window[0]
    return Profile(
        folder=str(folder),
        steps=steps,
        step_seconds=duration / steps / 1e12,
        device_share=computing / duration if has_trace else None,
        input_share=(with_input - computing) / duration,
        host_share=(with_host - with_input) / duration,
        idle_share=1 - with_host / duration,
        operations=_longest(operations, window, steps),
    )


def _space_class() -> Any:
    """Return the class of the message. Its module differs between versions of TensorFlow."""
    try:
        from tensorflow.tsl.profiler.protobuf import xplane_pb2
    except ImportError:
        from tensorflow.core.profiler.protobuf import xplane_pb2
    return xplane_pb2.XSpace


def _events(plane: Any) -> Iterator[tuple[str, Span, str]]:
    """Yield name, span and line of each event of a plane."""
    names = {key: metadata.name for key, metadata in plane.event_metadata.items()}
    for line in plane.lines:
        for event in line.events:
            start = line.timestamp_ns * 1000 + event.offset_ps
            yield names[event.metadata_id], (start, start + event.duration_ps), line.name


def _host_operations(plane: Any) -> Iterator[tuple[str, Span]]:
    """Yield the operations of the steps, by type, without those in functions of the input pipeline."""
    for name, span, line in _events(plane):
        match = OPERATION.match(name)
        if match and not line.startswith("tf_data") and match[1] not in CONTAINERS and "Iterator" not in match[1]:
            yield match[1].removeprefix("_"), span


def _device_operations(space: Any, device: str) -> Iterator[tuple[str, Span]]:
    """Yield kernels and copies on the streams of the device. The other lines of its plane repeat these."""
    # "/device:GPU:0", or with the DirectML plug-in "/device:GPU:0 (DirectML) - name of the adapter".
    of_device = re.compile(rf"/device:(?:.*:)?{re.escape(device.removeprefix('/device:'))}(?: \(.*)?", re.IGNORECASE)
    for plane in space.planes:
        if of_device.fullmatch(plane.name):
            yield from ((name, span) for name, span, line in _events(plane) if line.startswith(STREAMS))


def _covered(spans: Iterable[Span], window: Span) -> int:
    """Return how much of a window at least one span covers, in picoseconds."""
    covered, reached = 0, window[0]
    for start, end in sorted(spans):
        start, end = max(start, reached), min(end, window[1])
        if end > start:
            covered += end - start
            reached = end
    return covered


def _longest(operations: Iterable[tuple[str, Span]], window: Span, steps: int) -> list[OperationTime]:
    """Return the types of operations that took longest, with their seconds per step on all threads or streams."""
    seconds: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for name, (start, end) in operations:
        if window[0] <= start < window[1]:
            seconds[name] += (end - start) / 1e12
            calls[name] += 1
    order = sorted(seconds, key=lambda name: -seconds[name])[:LONGEST]
    return [OperationTime(name=name, seconds=seconds[name] / steps, calls=calls[name] / steps) for name in order]
