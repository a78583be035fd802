"""Where the time of the program's own steps goes: to which lines, and to what these lines call.

A thread samples the stack of the main thread while the program's generator runs a few steps. Sampling costs little, and
as much for Python code as for calls of TensorFlow, so the shares stay true. A tracer (`sys.settrace`) would slow down
every Python call, most of all while TensorFlow traces a graph. A sample counts for the time since the previous sample,
because the sampler runs late while another thread holds the interpreter's lock.

On an accelerator, these are the times of the host: a line that reads a value also waits for the device.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from types import FrameType
from typing import Any, NamedTuple

from bench.model.facts import KERAS_CALLS, CallKind, OwnTime, OwnTimePart
from bench.worker.frames import WORKER, WRAPPERS, SourceLine, Sources, is_own_work, library_folders

WARM_UP = 2
"""Steps before those that are sampled. The first one may trace."""

FEWEST_STEPS = 3
MOST_STEPS = 2000
SECONDS = 1.5
"""Time limit for sampling, once there are enough steps."""

INTERVAL = 0.001
"""Seconds between two samples."""

SWITCHES = 5
"""How often in an interval Python lets another thread run. By default, it does so every five milliseconds."""

FREEING = 1.0
"""Longest time to free what a call of Keras leaves, as a share of the call's own time."""

MAX_PARTS = 20
"""Maximum number of lines in the fact. All others of a kind are one part."""

READS = (
    "numpy", "_numpy", "__array__", "__float__", "__int__", "__bool__", "__index__", "tolist", "item",
    "__format__", "__str__", "__repr__",
)  # fmt: skip
"""Methods of a tensor that return its numbers to Python."""

ARRAY_READS = ("_numpy", "__array__")
"""Those of them that functions of NumPy call."""

ITERATOR_READS = ("__next__", "get_next", "_next_internal")
"""Methods of an iterator that return the next element."""

BUILDS = ("__init__", "__new__")
"""Methods of Keras' classes that build layers, models, optimizers and metrics."""

ADAPTS = ("adapt",)
"""Methods of Keras' layers that compute what the layers need to know about the data."""

TRACE = "func_graph_from_py_func"
"""The function of TensorFlow that traces Python into a graph."""

GRAPH_CALL = (
    "polymorphic_function.py", "concrete_function.py", "def_function.py", "eager/function.py", "session.py"
)  # fmt: skip
"""The files of TensorFlow that call functions, their names in TensorFlow 2.10, and the file that runs sessions."""


SUMMARIES = "summary_ops_v2.py"
"""The file of TensorFlow that writes summaries."""


class Place(NamedTuple):
    """What a sample of the stack shows.

    Attributes:
        source: innermost line of the program that runs.
        called: name of the function that the line calls. Empty if it calls none.
        kind: what kind of work the call does.
    """

    source: SourceLine
    called: str
    kind: CallKind


def measure(start: Callable[[], Iterator[Any]], sources: Sources) -> OwnTime | None:
    """Sample a few steps of the program's own generator. Return the share of each line.

    Args:
        start: starts the program's generator of steps.
        sources: the program's own files.

    Returns:
        None if the program is too short.
    """
    steps = start()
    if len(list(islice(steps, WARM_UP))) < WARM_UP:
        return None
    count, began = 0, time.perf_counter()
    sampler = StackSampler(sources)
    sampler.start()
    try:
        for _ in islice(steps, MOST_STEPS):
            count += 1
            if count >= FEWEST_STEPS and time.perf_counter() - began > SECONDS:
                break
    finally:
        sampler.stop()
    return summary(sampler.samples, count, time.perf_counter() - began)


def summary(samples: Iterable[tuple[Place, float]], steps: int, elapsed: float) -> OwnTime | None:
    """Return the shares of sampled steps. None if there are too few steps or no samples.

    Args:
        samples: what each sample shows, and the seconds that it counts for.
        steps: number of steps that were sampled.
        elapsed: seconds that these steps took.
    """
    seconds: dict[Place, float] = {}
    for place, part in samples:
        seconds[place] = seconds.get(place, 0.0) + part
    _add_freeing(seconds)
    total = sum(seconds.values())
    if steps < FEWEST_STEPS or not total:
        return None
    largest = sorted(seconds.items(), key=lambda item: -item[1])
    others: dict[Place, float] = {}
    for place, part in largest[MAX_PARTS:]:
        other = Place(SourceLine("", 0), "", place.kind)
        others[other] = others.get(other, 0.0) + part
    return OwnTime(
        steps=steps,
        step_seconds=elapsed / steps,
        parts=[
            OwnTimePart(
                line=place.source.line, file=place.source.file, called=place.called, kind=place.kind, share=part / total
            )
            for place, part in [*largest[:MAX_PARTS], *others.items()]
        ],
    )


def _add_freeing(seconds: dict[Place, float]) -> None:
    """Add to calls of Keras the samples of their lines that call nothing.

    Such a call leaves a pipeline and its graphs. They are freed when it has returned. If these samples take longer than
    that can, the line does other work.
    """
    bare = [place for place in seconds if place.kind == "python" and not place.called]
    for place in bare:
        calls = [other for other in seconds if other.source == place.source and other.kind == "keras"]
        largest = max(calls, key=lambda call: seconds[call], default=None)
        if largest is not None and seconds[place] <= FREEING * seconds[largest]:
            seconds[largest] += seconds.pop(place)


class StackSampler:
    """A thread that samples the stack of the thread that starts it.

    Args:
        sources: the program's own files.
        interval: seconds between two samples.

    Attributes:
        samples: what each sample shows, and the seconds since the previous one. Work of devbench is left out.
        paused: whether samples are dropped.
    """

    def __init__(self, sources: Sources, interval: float = INTERVAL) -> None:
        self.samples: list[tuple[Place, float]] = []
        self.paused = False
        self._sources = sources
        self._interval = interval
        self._libraries = library_folders()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="devbench-sampler", daemon=True)
        self._switch_interval = sys.getswitchinterval()

    def start(self) -> None:
        """Start sampling the stack of the calling thread."""
        self.follow()
        sys.setswitchinterval(min(self._switch_interval, self._interval / SWITCHES))
        self._thread.start()

    def follow(self) -> None:
        """Sample the stack of the calling thread from now on."""
        self._thread_id = threading.get_ident()

    def stop(self) -> None:
        """Stop sampling."""
        self._ended.set()
        self._thread.join()
        sys.setswitchinterval(self._switch_interval)

    def _run(self) -> None:
        last = time.perf_counter()
        while not self._ended.wait(self._interval):
            last = self._sample(last)

    def _sample(self, last: float) -> float:
        """Take a sample. Return when it was taken. No frame is kept, since it would keep the program's objects alive.

        Args:
            last: when the previous sample was taken, by the clock of `time.perf_counter`.
        """
        frame = sys._current_frames().get(self._thread_id)
        now = time.perf_counter()
        if frame is not None and not self.paused and not is_own_work(frame, self._sources):
            self.samples.append((place_of(frame, self._sources, self._libraries), now - last))
        return now


def place_of(frame: FrameType | None, sources: Sources, libraries: tuple[str, ...]) -> Place:
    """Return what a stack shows: a line of the program and what it calls.

    Args:
        frame: the innermost frame.
        sources: the program's own files.
        libraries: folders of TensorFlow and Keras.
    """
    calls: list[tuple[str, str]] = []  # name and file of each function below the line, the innermost first
    while frame is not None:
        name, path = frame.f_code.co_name, frame.f_code.co_filename
        if (file := sources.name(path)) is not None:
            called = calls[-1][0] if calls else ""
            line = frame.f_lineno or frame.f_code.co_firstlineno  # Python knows no line of some instructions
            return Place(SourceLine(file, line), called, _kind(called, calls, libraries))
        if name not in WRAPPERS and not path.startswith(WORKER):
            calls.append((name, path))
        frame = frame.f_back
    return Place(SourceLine("", 0), "", "other")


def _kind(called: str, calls: Sequence[tuple[str, str]], libraries: tuple[str, ...]) -> CallKind:
    library_calls = [(name, source) for name, source in calls if source.startswith(libraries)]
    if not library_calls:
        return "python"
    outermost = library_calls[-1][1]
    if called in (*BUILDS, *ADAPTS) and outermost.startswith(libraries[1:]):
        return "building"
    if called == "function" and outermost.endswith(GRAPH_CALL):
        return "building"
    if called in KERAS_CALLS:
        return "keras"
    if any(source.endswith(SUMMARIES) for _, source in library_calls):
        return "summary"
    if any(name == TRACE for name, _ in library_calls):
        return "tracing"
    names = {name for name, _ in library_calls}
    if called in READS or not names.isdisjoint(ARRAY_READS):
        return "read"
    if called == "__next__" or not names.isdisjoint(ITERATOR_READS):
        return "input"
    return "graph" if any(source.endswith(GRAPH_CALL) for _, source in library_calls) else "eager"
