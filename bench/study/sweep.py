"""A sweep: one workload at several values of its parameters, each point a session of its own.

Points go from the smallest up, and what is larger in every parameter than one that memory did not hold is not tried;
along one parameter, where several backends or loops are compared, further points then close in on where one overtakes
another.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from bench.analyse.sweep import memory_ended, open_brackets, sweep_of, way
from bench.config.settings import RunSettings
from bench.config.syntax import axis
from bench.errors import DataError, NotApplicable, SettingsError, UsageError
from bench.model.result import Result, SweepMembership
from bench.model.sweep import Sweep
from bench.publish.recorder import Recorder
from bench.session import stopping
from bench.session.design import Design
from bench.session.session import Session
from bench.study.plan import plan

POINT = Design(purpose="sweep", pilot=3)
"""A point needs fewer trials, since its neighbours tell of it too."""

CLOSE = 1.1
"""Neighbours nearer than this factor need no point between them; of 0 a neighbour within a tenth of the axis."""

MOST_FAILED = 3
"""Points between two neighbours that failed or were refused, after which no more are tried there."""

MOST_POINTS = 64

SECONDS = 900.0
"""For a whole sweep, unless `--max-time` says otherwise: it has many points."""


@dataclass
class SweepStudy:
    """Measures points until there are enough.

    Args:
        workload: name or file.
        settings: of every point; `param` holds the ranges and the fixed parameters.
        recorder: saves results and hears of progress.
        point_time: seconds after which no more trials of a point are started; the whole sweep has `max_time`.
    """

    workload: str
    settings: RunSettings
    recorder: Recorder
    point_time: float
    results: list[Result] = field(default_factory=list)
    ended: list[tuple[Mapping[str, str], str]] = field(default_factory=list)
    """Points that memory did not hold, and on which backends."""
    tried: list[Mapping[str, str]] = field(default_factory=list)
    """All points, those that failed or were refused too."""

    def __post_init__(self) -> None:
        if self.settings.vary:
            raise SettingsError("a sweep has no --vary", "Sweep it: --param batch=1..4096 is the range of a parameter.")
        if self.settings.profile is not None:
            raise SettingsError("a sweep has no profile", "Trace one of its points: `devbench run … --profile DIR`.")
        self.settings = stopping.limited(self.settings, SECONDS)
        self.axes = axes_of(self.settings.param)
        self.fixed = {name: value for name, value in self.settings.param.items() if name not in self.axes}
        self.id = self.recorder.new_id()
        self.begun = time.monotonic()
        self.integral = all(value.lstrip("-").isdigit() for values in self.axes.values() for value in values)

    def run(self) -> Sweep:
        """All points; what came of them.

        Raises:
            UsageError: no point can be measured: a wrong name, range or device.
            Interrupted: by a signal; `results` hold what was measured.
        """
        for point in self._grid():
            smaller = next((each for each in self.ended if _beyond(point, each[0])), None)
            if smaller is not None:
                self.cut_short(f"memory ended at {_said(smaller[0])} ({smaller[1]})")
                continue
            if self._enough() or not self._measure(point):
                break
        while len(self.axes) == 1 and self.results:
            between = self._between()
            if between is None or self._enough():
                break
            self._measure(between)
        return self.read()

    def read(self) -> Sweep:
        """What the points so far show.

        Raises:
            UsageError: there is no point.
        """
        if not self.results:
            raise UsageError("no point of the sweep was measured", "Give it more --max-time.")
        return sweep_of(self.results, self.settings.threshold)

    def cut_short(self, why: str) -> None:
        """Keeps with the last point why not all values were measured; the first reason holds."""
        if self.results and not any(each.sweep and each.sweep.cut_short for each in self.results):
            for each in self.results:
                if each.group == self.results[-1].group:
                    each.sweep = SweepMembership(axes=list(self.axes), cut_short=why)
                    self.recorder.save(each)

    def _grid(self) -> Any:
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    def _at(self, point: Mapping[str, str]) -> RunSettings:
        """The settings of one point."""
        changed = {"param": {**self.fixed, **point}, "max_time": self.point_time, "full": False}
        return self.settings.model_copy(update=changed)

    def _enough(self) -> bool:
        """Whether the sweep's time is over."""
        if time.monotonic() - self.begun > self.settings.max_time and self.results:
            self.cut_short("its time was over; --max-time gives it more")
            return True
        return False

    def _measure(self, point: Mapping[str, str]) -> bool:
        """Measures a point; false where there is no sense in going on to larger ones."""
        self.tried.append(point)
        settings = self._at(point)
        try:
            (group,) = plan([self.workload], settings, swept=self.axes)
        except (NotApplicable, DataError):
            raise
        except UsageError as error:
            if not self.results:
                raise
            self.cut_short(f"{_said(point)} can't be: {error.message}")
            return False
        session = Session(group, settings, replace(POINT, parent=self.id), self.recorder)
        for each in session.results:
            each.sweep = SweepMembership(axes=list(self.axes))
        self.results += session.results
        session.run()
        if any(memory_ended(r) for r in session.results):
            self.ended.append((point, ", ".join(r.spec.backend for r in session.results if memory_ended(r))))
        return True

    def _between(self) -> dict[str, str] | None:
        """The middle (`way`) of the widest gap around a crossing that can be measured; none where all are narrow.

        A point that failed or was refused leaves no ratio, so its bracket stays, which it divides: another point there
        may do.
        """
        (name,) = self.axes
        tried = sorted(float(point[name]) for point in self.tried if _is_number(point[name]))
        gaps: list[tuple[float, float, float]] = []
        for low, high in open_brackets(self.read()):
            failed = [value for value in tried if low < value < high]
            if len(failed) < MOST_FAILED:
                ends = pairwise([low, *failed, high])
                gaps += [(_width(left, right, tried[-1] - tried[0]), left, right) for left, right in ends]
        for width, low, high in sorted(gaps, key=lambda gap: gap[0], reverse=True):
            middle = way(low, high, 0.5)
            value = round(middle) if self.integral else float(f"{middle:.4g}")
            point = {name: str(value)}
            ended = any(_beyond(point, each) for each, _ in self.ended)
            if width > math.log(CLOSE) and low < value < high and not ended:
                return point
        return None


def axes_of(params: Mapping[str, str]) -> dict[str, list[str]]:
    """Parameter: its values, of those that are ranges or lists.

    Raises:
        SettingsError: none is, a range is wrong, or there are more points than anybody would wait for.
    """
    found = {}
    for name, text in params.items():
        try:
            values = axis(text)
        except ValueError as error:
            raise SettingsError(f"--param {name}={text} is no range", f"{str(error).capitalize()}.") from None
        if values is not None:
            found[name] = sorted(values, key=float) if all(map(_is_number, values)) else values
    if not found:
        raise SettingsError("there is nothing to sweep", "Give a parameter a range: --param batch=1..4096")
    points = math.prod(map(len, found.values()))
    if points > MOST_POINTS:
        raise SettingsError(f"that makes {points} points", f"At most {MOST_POINTS}: take larger steps, as in 1..4096*4")
    return found


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _width(low: float, high: float, axis: float) -> float:
    """How far apart two values are: the logarithm of their factor; where there is none, their share of the axis."""
    return math.log(high / low) if low > 0 else (high - low) / axis


def _beyond(point: Mapping[str, str], ended: Mapping[str, str]) -> bool:
    """Whether a point is as large as one that memory did not hold, or larger; words are no larger than each other."""
    return all(
        value == ended[name] or (_is_number(value) and _is_number(ended[name]) and float(value) > float(ended[name]))
        for name, value in point.items()
    )


def _said(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.items())
