"""Which stage of a `tf.data` pipeline takes the time: the pipeline is cut after each stage, and each part is run.

Elements are passed over in TensorFlow by `skip`, which computes every one (seen with 2.10 and 2.21) but hands none to
Python. A start by itself is timed too, so that what it costs, a shuffle buffer that fills above all, drops out. Stages
run alone here, without the prefetching that hides them behind a step. Worker's side only.
"""

from __future__ import annotations

import inspect
import math
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.model.facts import PipelineStage

ENOUGH_SECONDS = 0.2
"""The least that a pass takes beyond its start."""

MOST_SECONDS = 10.0
"""For all stages together: after that none is timed again."""

WHOLE_SECONDS = 60.0
"""After which none is timed for the first time; a buffer that fills for long is waited for by each that follows it."""

MOST_ELEMENTS = 10_000_000

TURNS = 3
"""How often each is timed while that lasts."""

UNCOUNTED = re.compile(r"Unbatch|FlatMap|Interleave|Window|Filter|Rebatch|GroupBy|Scan|TakeWhile")
"""Stages that make an unknown number of elements of one."""

FUNCTIONS = ("_map_func", "_predicate", "_func", "_reduce_func")


def stages(dataset: Any) -> list[Any]:
    """The pipeline's datasets, its source first."""
    found: list[Any] = []
    while dataset is not None:
        found.append(dataset)
        dataset = getattr(dataset, "_input_dataset", None) or getattr(dataset, "_dataset", None)
    return [each for each in reversed(found) if not type(each).__name__.endswith(("OptionsDataset", "Adapter"))]


def described(stage: Any) -> PipelineStage:
    """What a stage is: its name, and of its function the name, the file and the line."""
    kind = re.sub(r"Dataset(V\d)?$", "", type(stage).__name__.lstrip("_"))
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()
    told = PipelineStage(stage=words.replace("parallel map", "map, parallel"))
    function = next((getattr(stage, name) for name in FUNCTIONS if hasattr(stage, name)), None)
    function = inspect.unwrap(getattr(function, "_func", function)) if function is not None else None
    code = getattr(function, "__code__", None)
    if code is not None:
        told.function, told.file, told.line = code.co_name, code.co_filename, code.co_firstlineno
    return told


def measured(dataset: Any, tell: Callable[[str], None] = lambda stage: None) -> list[PipelineStage]:
    """Each stage with the seconds that one of the last stage's elements (a batch, mostly) takes up to and with it.

    What comes before a stage that makes an unknown number of elements of one can't be told by the batch: left out.
    The whole pipeline is timed first, then from the source on, the lot up to three times; the least time counts,
    since whatever else ran on the machine only added to one. A stage that there was no time for has none.

    Args:
        dataset: the pipeline.
        tell: called with a stage's name before it is timed, which may take long.
    """
    told = list(_with_elements(stages(dataset)))
    cuts = [_Cut(stage, elements) for stage, elements in told[:1] + told[:0:-1]]
    begun = time.perf_counter()
    for _ in range(TURNS):
        for cut in cuts:
            if time.perf_counter() - begun < (MOST_SECONDS if cut.timed else WHOLE_SECONDS):
                tell(described(cut.stage).stage)
                cut.time()
    return [cut.described() for cut in cuts[1:] + cuts[:1]]


def _with_elements(chain: list[Any]) -> Iterator[tuple[Any, int]]:
    """Each stage that can be told with how many of its elements make one of the last stage's; the last one first."""
    elements = 1
    for stage in reversed(chain):
        yield stage, elements
        size = getattr(stage, "_batch_size", None)
        if size is not None:
            elements *= max(1, int(size))
        elif UNCOUNTED.search(type(stage).__name__):
            return


class _Cut:
    """A pipeline that ends with `stage`, `elements` of whose own elements make one of the whole pipeline's."""

    def __init__(self, stage: Any, elements: int) -> None:
        self.stage, self.elements = stage, elements
        self._endless = stage.repeat()
        self._count = 0
        self._start = self._passed = math.inf

    def time(self) -> None:
        """Passes over no element, which is what a start costs, and over a number that takes long enough."""
        self._start = min(self._start, _passing(self._endless, 0))
        if self._count:
            self._passed = min(self._passed, _passing(self._endless, self._count))
        if not self._count or (self._spent < ENOUGH_SECONDS / 2 and self._count < MOST_ELEMENTS):
            self._passed = self._calibrate()  # anew where a stall of the machine had made too few look enough

    def _calibrate(self) -> float:
        """Finds how many elements take long enough beyond what a start costs; the seconds of the last try."""
        self._count = self.elements
        while True:
            taken = _passing(self._endless, self._count)
            spent = max(taken - self._start, 1e-9)
            if spent >= ENOUGH_SECONDS or self._count >= MOST_ELEMENTS:
                return taken
            guess = math.ceil(1.2 * self._count * ENOUGH_SECONDS / spent)
            self._count = min(MOST_ELEMENTS, 16 * self._count, max(2 * self._count, guess))

    def described(self) -> PipelineStage:
        """The stage with its times, as far as there was time for it."""
        found = described(self.stage)
        if self.timed:
            found.seconds = self.seconds
            buffer = getattr(self.stage, "_buffer_size", None)
            if "Shuffle" in type(self.stage).__name__ and buffer is not None:
                found.buffer, found.filling_seconds = int(buffer), self._start
        return found

    @property
    def timed(self) -> bool:
        """Whether there was time for it."""
        return self._passed < math.inf

    @property
    def seconds(self) -> float:
        """What `elements` of them take."""
        return self._spent / self._count * self.elements

    @property
    def _spent(self) -> float:
        return max(0.0, self._passed - self._start)


def _passing(dataset: Any, count: int) -> float:
    begun = time.perf_counter()
    next(iter(dataset.skip(count)))
    return time.perf_counter() - begun
