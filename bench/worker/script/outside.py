"""Samples what a script does before the first step of a loop and after its last one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from bench.model.facts import WHOLE_DATA_CALLS, Facts, OutsideWork
from bench.model.recognition import Recognition
from bench.worker.diagnose.named_lines import lines_of
from bench.worker.diagnose.own_time import StackSampler
from bench.worker.frames import Sources

INTERVAL = 0.01
"""Seconds between two samples. This work takes seconds, or it does not matter."""

LARGE = 0.2
"""A line is named if it takes at least this share of what the largest one takes."""


IDLE_CPU = 0.05
"""A script waits if it uses less than this share of a CPU."""

Key = TypeVar("Key")


class _Moment(NamedTuple):
    """A point in time.

    Attributes:
        at: by the clock of `time.perf_counter`.
        cpu: CPU seconds of this process until then.
        samples: number of samples until then.
    """

    at: float
    cpu: float
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
        self._last: dict[str, _Moment] = {}  # when the last step of each loop ended, or the call of `fit` that made it
        self._in_fit: set[str] = set()  # loops whose `fit` has not returned since its last step
        self._between: dict[str, list[tuple[_Moment, _Moment]]] = {}  # from the end of a `fit` to the next one's start

    def starting(self) -> None:
        """Take note that a step may start."""
        self._latest_start = self._now()

    def step(self, token: str, in_fit: bool) -> None:
        """Take note that a loop has made a step.

        Args:
            token: the loop.
            in_fit: whether a `fit` makes its steps.
        """
        self._first.setdefault(token, self._latest_start)
        if in_fit and token not in self._in_fit:
            if token in self._last:
                self._between.setdefault(token, []).append((self._last[token], self._latest_start))
            self._in_fit.add(token)
        self._last[token] = self._now()

    def returned(self, token: str) -> None:
        """Take note that the `fit` of a loop has returned. Its last validation is no work after the training."""
        self._in_fit.discard(token)
        self._last[token] = self._now()

    def read(self, facts: Facts, recognition: Recognition) -> None:
        """Stop sampling, and set the facts `before_steps`, `between_fits` and `after_steps` of the chosen loop.

        A fact stays None if another loop trains in this time. If the script did not end by itself, it may train again,
        unless a single `fit` has run all its steps. It may also wait, for example for input, which is no work.
        """
        self._sampler.stop()
        chosen, now, token = recognition.chosen, self._now(), recognition.chosen.token
        if token not in self._first:
            return
        first, last = self._first[token], self._last[token]
        others = [other.token for other in recognition.others if other.trains and other.token in self._first]
        if not any(self._first[other].at < first.at for other in others):
            facts.before_steps = self._work([(self._began, first)])
        if token in self._between:
            facts.between_fits = self._work(self._between[token])
        is_over = recognition.ended or (chosen.kind == "fit" and chosen.planned == chosen.steps)
        waits = not recognition.ended and now.cpu - last.cpu < IDLE_CPU * (now.at - last.at)
        trains = token in self._in_fit or any(self._last[other].at > last.at for other in others)
        if is_over and not waits and not trains:
            facts.after_steps = self._work([(last, now)], complete=recognition.ended)

    def _now(self) -> _Moment:
        return _Moment(time.perf_counter(), time.process_time(), len(self._sampler.samples))

    def _work(self, times: Sequence[tuple[_Moment, _Moment]], complete: bool = True) -> OutsideWork:
        """Return the work in some stretches of time, with their mean length."""
        samples = [sample for a, b in times for sample in self._sampler.samples[a.samples : b.samples]]
        by_line = _seconds((place.source, seconds) for place, seconds in samples)
        by_call = _seconds((place.called, seconds) for place, seconds in samples)
        total, largest = sum(by_line.values()), max(by_line.values(), default=0.0)
        return OutsideWork(
            seconds=sum(end.at - start.at for start, end in times) / len(times),
            complete=complete,
            call=next((name for name in WHOLE_DATA_CALLS if by_call.get(name, 0.0) > total / 2), None),
            **lines_of(Counter(line for line, seconds in by_line.items() if seconds >= LARGE * largest)),
        )


def _seconds(samples: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    seconds: dict[Key, float] = {}
    for key, each in samples:
        seconds[key] = seconds.get(key, 0.0) + each
    return seconds
