"""Where the time of the program's own steps goes: the line that runs, and what it calls.

A thread samples the stack of the main thread while the program's generator runs a few steps. Sampling costs little, and
the same for Python code as for calls of TensorFlow, so the shares stay true. A tracer (`sys.settrace`) would slow down
every Python call, most of all while TensorFlow traces a graph. A sample counts for the time since the sample before it,
because the sampler runs late while another thread holds the interpreter's lock.

On an accelerator, these are the times of the host: a line that reads a value also waits for the device.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from types import FrameType
from typing import Any, NamedTuple

from bench.model.facts import WHOLE_DATA_CALLS, CallKind, OwnTime, OwnTimePart
from bench.worker.frames import WRAPPERS, library_folders

WARM_UP = 2
"""Steps before those that are sampled. The first one may trace."""

FEWEST_STEPS = 3
MOST_STEPS = 2000
SECONDS = 1.5
"""Time limit for sampling, once there are enough steps."""

INTERVAL = 0.001
"""Seconds between two samples."""

SWITCH_INTERVAL = 0.0002
"""Seconds after which Python lets the sampling thread run. Python's default is five times the sampling interval."""

MAX_PARTS = 8
"""Maximum number of lines in the fact."""

KERAS_CALLS = (*WHOLE_DATA_CALLS, "train_on_batch", "predict_on_batch", "test_on_batch")
"""Methods of a Keras model that run their own steps."""

READS = ("numpy", "_numpy", "__array__", "__float__", "__int__", "__bool__", "__index__", "tolist", "item")
"""Methods of a tensor that return its numbers to Python."""

TRACE = "func_graph_from_py_func"
"""The function of TensorFlow that traces Python into a graph."""

GRAPH_CALL = ("polymorphic_function.py", "def_function.py")
"""The file of TensorFlow that calls a `tf.function`, and its name in TensorFlow 2.10."""


class Place(NamedTuple):
    """What a sample of the stack shows.

    Attributes:
        line: innermost line of the program's file. 0 if none is being executed.
        called: name of the function that the line calls. Empty if it calls none.
        kind: what kind of work the call does.
    """

    line: int
    called: str
    kind: CallKind


def measure(start: Callable[[], Iterator[Any]], file: str) -> OwnTime | None:
    """Sample a few steps of the program's own generator.

    Args:
        start: starts the program's generator of steps.
        file: the program's own file.

    Returns:
        None if the program is too short.
    """
    steps = start()
    if len(list(islice(steps, WARM_UP))) < WARM_UP:
        return None
    seconds: Counter[Place] = Counter()
    count, began = 0, time.perf_counter()
    with _sampling(seconds, file):
        for _ in islice(steps, MOST_STEPS):
            count += 1
            if count >= FEWEST_STEPS and time.perf_counter() - began > SECONDS:
                break
    elapsed, total = time.perf_counter() - began, seconds.total()
    if count < FEWEST_STEPS or not total:
        return None
    return OwnTime(
        steps=count,
        step_seconds=elapsed / count,
        parts=[
            OwnTimePart(line=place.line, called=place.called, kind=place.kind, share=part / total)
            for place, part in seconds.most_common(MAX_PARTS)
        ],
    )


@contextmanager
def _sampling(seconds: Counter[Place], file: str) -> Iterator[None]:
    """Add the time of the calling thread to `seconds`, by place, until the block ends."""
    thread_id, libraries, ended = threading.get_ident(), library_folders(), threading.Event()

    def sample() -> None:
        last = time.perf_counter()
        while not ended.wait(INTERVAL):
            frame = sys._current_frames().get(thread_id)
            now = time.perf_counter()
            if frame is not None:
                seconds[place_of(frame, file, libraries)] += now - last  # type: ignore[assignment]
            last = now

    switch_interval = sys.getswitchinterval()
    sampler = threading.Thread(target=sample, name="devbench-sampler", daemon=True)
    sys.setswitchinterval(SWITCH_INTERVAL)
    sampler.start()
    try:
        yield
    finally:
        ended.set()
        sampler.join()
        sys.setswitchinterval(switch_interval)


def place_of(frame: FrameType | None, file: str, libraries: tuple[str, ...]) -> Place:
    """Return what a stack shows.

    Args:
        frame: innermost frame.
        file: the program's own file.
        libraries: folders of TensorFlow and Keras.
    """
    calls: list[tuple[str, str]] = []  # name and source of each function that the line calls, the innermost first
    while frame is not None and frame.f_code.co_filename != file:
        if frame.f_code.co_name not in WRAPPERS:
            calls.append((frame.f_code.co_name, frame.f_code.co_filename))
        frame = frame.f_back
    if frame is None:
        return Place(0, "", "other")
    called = calls[-1][0] if calls else ""
    return Place(frame.f_lineno, called, _kind(called, calls, libraries))


def _kind(called: str, calls: Sequence[tuple[str, str]], libraries: tuple[str, ...]) -> CallKind:
    library_calls = [(name, source) for name, source in calls if source.startswith(libraries)]
    if not library_calls:
        return "python"
    if called in KERAS_CALLS:
        return "keras"
    if any(name == TRACE for name, _ in library_calls):
        return "tracing"
    if called in READS:
        return "read"
    if called == "__next__":
        return "input"
    return "graph" if any(source.endswith(GRAPH_CALL) for _, source in library_calls) else "eager"
