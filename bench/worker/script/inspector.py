"""Looks into the steps of a script while the scout counts them: samples the stack, counts reads and the like.

Which loop is the training is known only at the end, so the steps of every loop are looked into. The stack is sampled
all the time, except in a few steps of each loop, in which it counts: counting makes steps slow.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bench.model.facts import Facts, LongSteps
from bench.model.recognition import StepSource
from bench.worker.diagnose.inspection import STEPS, WARM_UP, Observed, observing
from bench.worker.diagnose.named_lines import lines_of
from bench.worker.diagnose.own_time import FEWEST_STEPS, Place, StackSampler, summary
from bench.worker.frames import SourceLine, Sources
from bench.worker.script.replay_function import obstacle
from bench.worker.script.running import Arguments

SPACING = 0.0005
"""Least seconds between two marks of a loop."""

SECONDS = 1.5
"""Time limit for the steps in which reads and eager operations are counted."""

LONG = 20.0
"""A step is long if it takes more than this many times the median step time."""

RARE = 0.05
"""Long steps are left out if their share is at most this: they trace a validation or save a checkpoint."""


FEWEST_LONG = 3
"""Fewest long steps that show how often they come. The first ones may only trace."""

LARGE = 0.2
"""A line of the long steps is named if it takes at least this share of what the largest one takes."""


@dataclass(eq=False)
class Mark:
    """The end of a step.

    Attributes:
        at: when it ended, by the clock of `time.perf_counter`.
        samples: number of samples until then.
        steps: number of steps of the loop until then.
        follows: whether all of the time since the previous mark was sampled.
    """

    at: float
    samples: int
    steps: int
    follows: bool


@dataclass
class _SeenLoop:
    steps: int = 0
    marks: list[Mark] = field(default_factory=list)
    sampled: int = 0
    follows_other: int = 0  # calls before which another loop made a step
    arguments: Arguments | None = None
    observed: Observed | None = None
    observed_from: int = 0
    observed_steps: int = 0


class StepInspector:
    """Looks into the steps of every loop.

    Args:
        tf: TensorFlow.
        sources: the script's files.
    """

    def __init__(self, tf: Any, sources: Sources) -> None:
        self._tf = tf
        self._sources = sources
        self._sampler = StackSampler(sources)
        self._loops: dict[str, _SeenLoop] = {}
        self._stack = ExitStack()
        self._watched: _SeenLoop | None = None  # the loop in whose steps reads and eager operations are counted
        self._latest: dict[int, str] = {}  # the loop that made the latest step of each thread
        self._trains = False  # whether a loop that trains was seen
        self._watched_at = 0.0
        self._resumed = 0.0  # when sampling went on
        self._ended = False

    def step(self, token: str, steps: int, trains: bool, arguments: Arguments | None) -> None:
        """Take note that a loop made steps. Once a loop trains, those that do not train are ignored.

        Args:
            token: the loop.
            steps: number of steps.
            trains: whether they train.
            arguments: the arguments of the latest `tf.function`. None if the step ran eagerly.
        """
        thread = threading.get_ident()
        follows_other = self._latest.get(thread, token) != token
        self._latest[thread] = token
        if self._ended or (self._trains and not trains):
            return
        if trains and not self._trains and self._watched is not None:
            self._unwatch()
        if not self._loops:
            self._sampler.start()
        elif trains and not self._trains:
            self._sampler.follow()  # the loops so far may be those of another thread
        self._trains = trains
        loop = self._loops.setdefault(token, _SeenLoop())
        loop.steps += steps
        loop.follows_other += follows_other
        loop.arguments = arguments
        if self._watched is None and loop.observed is None and loop.steps > WARM_UP:
            self._watch(loop)
        elif loop is self._watched:
            if loop.steps - loop.observed_from >= STEPS or time.perf_counter() - self._watched_at > SECONDS:
                self._unwatch()
        elif self._watched is None:
            self._mark(loop)

    def _mark(self, loop: _SeenLoop) -> None:
        now = time.perf_counter()
        follows = bool(loop.marks) and loop.marks[-1].at > self._resumed
        if loop.steps > WARM_UP and not (follows and now - loop.marks[-1].at < SPACING):
            loop.sampled += follows
            loop.marks.append(Mark(now, len(self._sampler.samples), loop.steps, follows))

    def _watch(self, loop: _SeenLoop) -> None:
        self._sampler.paused, self._watched, loop.observed_from = True, loop, loop.steps
        self._watched_at = time.perf_counter()
        loop.observed = self._stack.enter_context(observing(self._tf, self._sources))

    def _unwatch(self) -> None:
        assert self._watched is not None
        self._watched.observed_steps = self._watched.steps - self._watched.observed_from
        self._stack.close()
        self._sampler.paused, self._watched = False, None
        self._resumed = time.perf_counter()

    def knows(self, tokens: Iterable[str]) -> bool:
        """Whether enough steps of one of these loops were sampled."""
        return any(self._loops[token].sampled >= FEWEST_STEPS for token in tokens if token in self._loops)

    def end(self) -> None:
        """Stop looking into steps."""
        if self._loops and not self._ended:
            if self._watched is not None:
                self._unwatch()
            self._sampler.stop()
        self._ended = True

    def facts(self, source: StepSource) -> Facts:
        """Return the facts about the steps of a loop: `own_time`, `replay_obstacle` and those of `Observed`."""
        loop = self._loops.get(source.token)
        facts = Facts(replay_obstacle=self._obstacle(source, loop))
        if loop is None:
            return facts
        if loop.observed is not None and loop.observed_steps:
            loop.observed.read(facts, loop.observed_steps)
        pairs = [(a, b) for a, b in pairwise(loop.marks) if b.follows and b.steps > a.steps]
        if not pairs:
            return facts
        seconds = [(b.at - a.at) / (b.steps - a.steps) for a, b in pairs]
        median = statistics.median(seconds)
        limit = LONG * median
        is_rare = sum(each > limit for each in seconds) <= RARE * len(seconds)
        kept = [pair for pair, each in zip(pairs, seconds, strict=True) if not is_rare or each <= limit]
        samples = self._samples(kept)
        if is_rare:
            facts.long_steps = self._long_steps(pairs, [pair for pair in pairs if pair not in kept], median)
        steps, elapsed = sum(b.steps - a.steps for a, b in kept), sum(b.at - a.at for a, b in kept)
        facts.own_time = summary(samples, steps, elapsed)
        return facts

    def _samples(self, pairs: Iterable[tuple[Mark, Mark]]) -> list[tuple[Place, float]]:
        """Return the samples between the two marks of each pair."""
        return [sample for a, b in pairs for sample in self._sampler.samples[a.samples : b.samples]]

    def _long_steps(
        self, pairs: Sequence[tuple[Mark, Mark]], long: Sequence[tuple[Mark, Mark]], median: float
    ) -> LongSteps | None:
        """Return what the rare long steps have in common. None if there are too few.

        Args:
            pairs: the marks before and after each sampled call.
            long: those of them whose steps are long.
            median: the median step time in seconds.
        """
        if len(long) < FEWEST_LONG:
            return None
        seconds: dict[SourceLine, float] = {}
        for place, part in self._samples(long):
            seconds[place.source] = seconds.get(place.source, 0.0) + part
        least = LARGE * max(seconds.values(), default=0.0)
        return LongSteps(
            count=len(long),
            seconds=sum(b.at - a.at - median * (b.steps - a.steps) for a, b in long) / len(long),
            every=sum(b.steps - a.steps for a, b in pairs) / len(long),
            median=median,
            **lines_of(Counter(line for line, part in seconds.items() if part >= least)),
        )

    def _obstacle(self, source: StepSource, loop: _SeenLoop | None) -> str | None:
        reason = obstacle(self._tf, loop.arguments if loop is not None else None)
        if reason is None and loop is not None and 2 * loop.follows_other > loop.steps:
            return "a step calls several functions or models"
        if reason is None and source.steps_per_call != 1:
            return "each call of its tf.function has several steps"
        return reason
