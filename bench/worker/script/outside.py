"""Samples what a script does before the first step of a loop and after its last one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from bench.model.facts import WHOLE_DATA_CALLS, Facts, OutsideWork
from bench.model.recognition import StepSource
from bench.worker.diagnose.named_lines import lines_of
from bench.worker.diagnose.own_time import StackSampler
from bench.worker.frames import Sources

INTERVAL = 0.01
"""Seconds between two samples. This work takes seconds, or it does not matter."""

LARGE = 0.2
"""A line is named if it takes at least this share of what the largest one takes."""


Key = TypeVar("Key")


class _Moment(NamedTuple):
    """A point in time, by the clock of `time.perf_counter` and by the number of samples until then."""

    at: float
    samples: int


class OutsideSampler:
    """Samples the stack of the thread that creates it.

    Args:
        sources: the script's files.
    """

    def __init__(self, sources: Sources) -> None:
        self._sampler = StackSampler(sources, INTERVAL)
        self._sampler.start()
        self._began = self._latest_start = self._now()
        self._first: dict[str, _Moment] = {}  # when the first step of each loop started
        self._last: dict[str, _Moment] = {}  # when the last step of each loop ended

    def starting(self) -> None:
        """Take note that a step may start."""
        self._latest_start = self._now()

    def step(self, token: str) -> None:
        """Take note that a loop has made a step."""
        self._first.setdefault(token, self._latest_start)
        self._last[token] = self._now()

    def read(self, facts: Facts, chosen: StepSource, ended: bool) -> None:
        """Stop sampling, and set the facts `before_steps` and `after_steps`.

        Args:
            facts: where to put the facts.
            chosen: the loop whose steps are timed.
            ended: whether the script ended by itself. If not, the last step was seen if a single `fit` has run all its
                steps.
        """
        self._sampler.stop()
        token = chosen.token
        if token not in self._first:
            return
        facts.before_steps = self._work(self._began, self._first[token])
        if ended or (chosen.kind == "fit" and chosen.planned == chosen.steps):
            facts.after_steps = self._work(self._last[token], self._now(), complete=ended)

    def _now(self) -> _Moment:
        return _Moment(time.perf_counter(), len(self._sampler.samples))

    def _work(self, start: _Moment, end: _Moment, complete: bool = True) -> OutsideWork:
        samples = self._sampler.samples[start.samples : end.samples]
        by_line = _seconds((place.source, seconds) for place, seconds in samples)
        by_call = _seconds((place.called, seconds) for place, seconds in samples)
        total, largest = sum(by_line.values()), max(by_line.values(), default=0.0)
        return OutsideWork(
            seconds=end.at - start.at,
            complete=complete,
            calls=[name for name in WHOLE_DATA_CALLS if by_call.get(name, 0.0) > total / 2],
            **lines_of(Counter(line for line, seconds in by_line.items() if seconds >= LARGE * largest)),
        )


def _seconds(samples: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    seconds: dict[Key, float] = {}
    for key, each in samples:
        seconds[key] = seconds.get(key, 0.0) + each
    return seconds
