"""Looks into the steps of a script while the scout counts them: samples the stack, counts reads and the like.

Which loop is the training is known only at the end, so the steps of every loop are looked into. The stack is sampled
all the time, except in a few steps of each loop, in which it counts: counting makes steps slow.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bench.model.facts import Facts
from bench.model.recognition import StepSource
from bench.worker.diagnose.inspection import STEPS, WARM_UP, Observed, observing
from bench.worker.diagnose.own_time import FEWEST_STEPS, StackSampler, summary
from bench.worker.frames import Sources
from bench.worker.script.rare_steps import TimedCall, described, rare_calls
from bench.worker.script.replay_function import obstacle
from bench.worker.script.running import Arguments

SPACING = 0.0005
"""Least seconds between two marks of a loop."""

SECONDS = 1.5
"""Time limit for the steps in which reads and eager operations are counted."""

LONG = 20.0
"""A step is left out if it takes more than this many times the median step time, because it may trace a validation."""

RARE = 0.05
"""Such steps are left out only if their share is at most this."""


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
        calls = [
            TimedCall(b.steps - a.steps, b.at - a.at, self._sampler.samples[a.samples : b.samples])
            for a, b in pairwise(loop.marks)
            if b.follows and b.steps > a.steps
        ]
        if not calls:
            return facts
        rare, lines = rare_calls(calls)
        if rare:
            facts.long_steps = described(rare, calls, lines)
        limit = LONG * statistics.median(call.step_seconds for call in calls)
        is_rare = sum(call.step_seconds > limit for call in calls) <= RARE * len(calls)
        kept = [call for call in calls if call not in rare and not (is_rare and call.step_seconds > limit)]
        samples = [sample for call in kept for sample in call.samples]
        facts.own_time = summary(samples, sum(call.steps for call in kept), sum(call.seconds for call in kept))
        return facts

    def _obstacle(self, source: StepSource, loop: _SeenLoop | None) -> str | None:
        reason = obstacle(self._tf, loop.arguments if loop is not None else None)
        if reason is None and loop is not None and 2 * loop.follows_other > loop.steps:
            return "a step calls several functions or models"
        if reason is None and source.steps_per_call != 1:
            return "each call of its tf.function has several steps"
        return reason
