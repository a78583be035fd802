"""The time of each stage of a `tf.data` pipeline: the pipeline is cut after each stage, and each part is run.

`skip` passes over elements inside TensorFlow. It computes each element (checked with 2.10 and 2.21) but hands none to
Python. The start alone is timed too and subtracted, so the filling of a shuffle buffer does not count. The stages run
without a step here, so no prefetching hides their time. A cache is filled first. Worker's side only.
"""

from __future__ import annotations

import inspect
import math
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.model.facts import CACHE, GENERATOR, PY_DATASET, PipelineStage
from bench.worker.stages import stages

ENOUGH_SECONDS = 0.2
"""Minimum time of a pass in seconds, without its start."""

REPEAT_SECONDS = 5.0
"""Time limit for all stages together. After it, only stages without a time are timed."""

FIRST_SECONDS = 60.0
"""Time limit after which no stage is timed any more. To time a stage, the buffers before it must be filled first."""

SLOW_START = 3.0
"""Seconds of a start after which the pipeline is started only once."""

FEW_ELEMENTS = 20
SLOW_SECONDS = 2.0
"""Maximum number of elements that are timed after such a start, and the seconds after which no other one is."""

MOST_ELEMENTS = 10_000_000

FILL_SECONDS = 10.0
"""Time limit to fill a cache, in seconds. A cache that takes longer is timed while it is filled."""

MOST_BATCHES = 7
ITEMS_SECONDS = 2.0
"""Maximum number of batches of a Keras `PyDataset` that are timed, and the seconds after which no other one is."""

REPEATS = 3
"""Number of times that each stage is timed, within the time limit."""

UNCOUNTED = re.compile(r"Unbatch|FlatMap|Interleave|Window|Filter|Rebatch|GroupBy|Scan|TakeWhile")
"""Stages that make an unknown number of elements from one."""

FUNCTIONS = ("_map_func", "_predicate", "_func", "_reduce_func")
"""Attributes in which a dataset may keep its function."""


def describe(stage: Any) -> PipelineStage:
    """Return a stage's kind, and where its function is defined. Its times are not set."""
    kind = re.sub(r"Dataset(V\d)?$", "", type(stage).__name__.lstrip("_"))
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()
    described = PipelineStage(stage=words.replace("parallel map", "map, parallel"))
    function = next((getattr(stage, name) for name in FUNCTIONS if hasattr(stage, name)), None)
    function = inspect.unwrap(getattr(function, "_func", function)) if function is not None else None
    if (generator := _generator(function)) is not None:
        described.stage, function = GENERATOR, generator
    code = getattr(function, "__code__", None)
    if code is not None:
        described.function, described.file, described.line = code.co_name, code.co_filename, code.co_firstlineno
    return described


def measure_py_dataset(data: Any, length: int | None, workers: int = 1) -> list[PipelineStage]:
    """Return the only stage of a Keras `PyDataset`: the method that prepares a batch, with its median time.

    Args:
        data: the `PyDataset`.
        length: number of its batches. None if it is endless.
        workers: threads or processes that prepare batches at the same time.
    """
    code = inspect.unwrap(type(data).__getitem__).__code__
    seconds = []
    for index in range(MOST_BATCHES if length is None else min(MOST_BATCHES, length)):
        start = time.perf_counter()
        data[index]
        seconds.append(time.perf_counter() - start)
        if sum(seconds) > ITEMS_SECONDS:
            break
    return [
        PipelineStage(
            stage=PY_DATASET,
            function=code.co_qualname if sys.version_info >= (3, 11) else f"{type(data).__name__}.{code.co_name}",
            file=code.co_filename,
            line=code.co_firstlineno,
            seconds=statistics.median(seconds) / max(1, workers) if seconds else None,
        )
    ]


def _generator(function: Any, depth: int = 3) -> Any:
    """Return the program's generator if a function of TensorFlow runs it: `from_generator` is a `flat_map` inside.

    The function holds the generator in a closure, a few functions deep.
    """
    for cell in getattr(function, "__closure__", None) or ():
        content = cell.cell_contents
        if type(content).__name__ == "_GeneratorState":
            return content._generator
        if depth and (found := _generator(content, depth - 1)) is not None:
            return found
    return None


def measure(dataset: Any, report: Callable[[str], None] = lambda stage: None) -> list[PipelineStage]:
    """Return each stage with the seconds that one element of the whole pipeline takes up to and including the stage.

    Usually, this element is a batch. If a stage makes an unknown number of elements from one, the stages before it are
    left out. So are those before a cache that is filled, because they run only in the first epoch. The whole pipeline
    is timed first, then its parts from the source on. This is repeated up to three times, and the shortest time counts,
    because other load only adds to it. A stage without seconds was not timed in time.

    Args:
        dataset: the pipeline.
        report: is called with a stage's kind before it is timed, which may take long.
    """
    counted = list(_with_elements(stages(dataset)))
    parts = [_PipelinePrefix(stage, elements) for stage, elements in counted[:1] + counted[:0:-1]]
    start, whole = time.perf_counter(), parts[0]
    for _ in range(REPEATS):
        for part in parts:
            if part is not whole and whole.starts_slowly and part.fills:
                part.share_start(whole)  # another start would fill the buffer again
            elif time.perf_counter() - start < (REPEAT_SECONDS if part.timed else FIRST_SECONDS):
                report(describe(part.stage).stage)
                part.time()
    return [part.described() for part in parts[1:] + parts[:1]]


def _with_elements(chain: list[Any]) -> Iterator[tuple[Any, int]]:
    """Yield the stages, the last one first. With each comes how many of its elements make one of the last stage.

    It ends at a stage that makes an unknown number of elements from one, and at a cache that is filled.
    """
    elements = 1
    for stage in reversed(chain):
        yield stage, elements
        if describe(stage).stage == CACHE and _fill(stage):
            return
        size = getattr(stage, "_batch_size", None)
        if size is not None:
            elements *= max(1, int(size))
        elif UNCOUNTED.search(type(stage).__name__):
            return


def _fill(cache: Any) -> bool:
    """Read a dataset that caches its elements to its end. Return whether that is done within the time limit."""
    start = time.perf_counter()
    return all(time.perf_counter() - start <= FILL_SECONDS for _ in cache)


class _PipelinePrefix:
    """The pipeline up to a stage. `elements` of its elements make one element of the whole pipeline."""

    def __init__(self, stage: Any, elements: int) -> None:
        self.stage, self.elements = stage, elements
        self._endless = stage.repeat()
        self._count = 0
        self._start = self._pass = math.inf

    def time(self) -> None:
        """Time a pass over no element, which is the start alone, and a pass that takes long enough."""
        if self.starts_slowly:
            return
        if not self._count:
            self._time_once()
            if self.starts_slowly:
                return
        self._start = min(self._start, _seconds_to_skip(self._endless, 0))
        if self._count:
            self._pass = min(self._pass, _seconds_to_skip(self._endless, self._count))
        if not self._count or (self._net < ENOUGH_SECONDS / 2 and self._count < MOST_ELEMENTS):
            self._pass = self._calibrate()  # again if a stall made too few elements seem enough

    def _time_once(self) -> None:
        """Time the start. If that takes long, also time a few elements that follow."""
        iterator, began = iter(self._endless), time.perf_counter()
        next(iterator)
        self._start = time.perf_counter() - began
        if not self.starts_slowly:
            return
        while self._count < FEW_ELEMENTS * self.elements and time.perf_counter() - began < self._start + SLOW_SECONDS:
            next(iterator)
            self._count += 1
        self._pass = time.perf_counter() - began

    def share_start(self, whole: _PipelinePrefix) -> None:
        """Take the start of the whole pipeline for the start of this part, which is most of it."""
        self._start = min(self._start, whole._start)

    def _calibrate(self) -> float:
        """Find a number of elements that takes long enough. Return the seconds of the last pass."""
        self._count = self.elements
        while True:
            seconds = _seconds_to_skip(self._endless, self._count)
            net = max(seconds - self._start, 1e-9)
            if net >= ENOUGH_SECONDS or self._count >= MOST_ELEMENTS:
                return seconds
            estimate = math.ceil(1.2 * self._count * ENOUGH_SECONDS / net)
            self._count = min(MOST_ELEMENTS, 16 * self._count, max(2 * self._count, estimate))

    def described(self) -> PipelineStage:
        """Return the stage with its times, if it was timed."""
        stage = describe(self.stage)
        if self.timed:
            stage.seconds = self._net / self._count * self.elements
        if self._start < math.inf:
            buffer = getattr(self.stage, "_buffer_size", None)
            if self.fills and buffer is not None:
                stage.buffer, stage.filling_seconds = int(buffer), self._start
        return stage

    @property
    def fills(self) -> bool:
        """Whether its last stage fills a buffer before it delivers an element."""
        return "Shuffle" in type(self.stage).__name__

    @property
    def starts_slowly(self) -> bool:
        """Whether its start takes so long that it is not repeated."""
        return SLOW_START < self._start < math.inf

    @property
    def timed(self) -> bool:
        """Whether it was timed."""
        return self._pass < math.inf

    @property
    def _net(self) -> float:
        return max(0.0, self._pass - self._start)


def _seconds_to_skip(dataset: Any, count: int) -> float:
    start = time.perf_counter()
    next(iter(dataset.skip(count)))
    return time.perf_counter() - start
