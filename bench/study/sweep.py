"""The study behind a sweep: one workload at several values of its parameters. Each point is a session.

Points are measured from the smallest value up. A point is left out if a point that is no larger in any parameter ran
out of memory. If backends or loops are compared along one parameter, further points narrow down each crossing.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from bench.analyse.sweep import interpolate, open_brackets, ran_out_of_memory, sweep_of
from bench.config.settings import RunSettings
from bench.config.syntax import sweep_values
from bench.errors import DeviceAbsent, Interrupted, SettingsError, UsageError
from bench.model.result import Result, SweepMembership
from bench.model.sweep import Sweep
from bench.publish.recorder import Recorder
from bench.session import stopping
from bench.session.design import Design
from bench.session.session import Session
from bench.study.plan import plan
from bench.study.recorded import keeping, recorded, title_of

POINT = Design(purpose="sweep", pilot=3, clear_trials=3, full=False, profiled="none")
"""The design of a point. It needs fewer trials, because its neighbours support it."""

CLOSE = 1.1
"""Neighbours whose values differ by less than this factor get no point between them. Next to 0, a tenth of the axis
counts."""

MOST_FAILED = 3
"""Number of failed or refused points after which no more are tried between two neighbours."""

MOST_POINTS = 64

SECONDS = 900.0
"""Default time limit of a whole sweep."""


def sweep(workload: str, settings: RunSettings, point_time: float, recorder: Recorder | None = None) -> Sweep:
    """Measure a workload over a range. The arguments, results and errors are those of `bench.api.sweep`."""
    results: list[Result] = []

    def kept() -> tuple[list[Result], Sweep | None]:
        return results, sweep_of(results, settings.threshold) if results else None

    title = f"sweep {title_of([workload], settings)}"
    with recorded(settings, title, recorder) as record, keeping(kept):
        study = SweepStudy(workload, settings, record, point_time, results)
        try:
            curves = study.run()
        except Interrupted:
            study.cut_short("it was interrupted")
            raise
        record.judge([result for result in results if not ran_out_of_memory(result)])
    return curves


@dataclass
class SweepStudy:
    """Measures the points of a sweep.

    Args:
        workload: Name or file.
        settings: The settings of every point. `param` holds the ranges and the fixed parameters; `max_time` limits the
            whole sweep.
        recorder: Saves results and receives the progress.
        point_time: Time limit of a point, in seconds.

    Attributes:
        results: All results so far.
    """

    workload: str
    settings: RunSettings
    recorder: Recorder
    point_time: float
    results: list[Result] = field(default_factory=list)
    _out_of_memory: list[tuple[Mapping[str, str], str]] = field(default_factory=list)
    """Points that ran out of memory, and their backends."""
    _tried: list[Mapping[str, str]] = field(default_factory=list)
    """All points, including those that failed or were refused."""

    def __post_init__(self) -> None:
        if self.settings.vary:
            raise SettingsError("sweep does not take --vary", "Sweep a parameter: --param batch=1..4096.")
        if self.settings.profile is not None:
            raise SettingsError(
                "sweep does not take --profile", "Profile one point with `devbench run … --profile DIR`."
            )
        if self.settings.full:
            raise SettingsError("sweep does not take --full", "Train to the end at one point: `devbench run … --full`.")
        self.settings = stopping.with_time_limit(self.settings, SECONDS)
        self.axes = axes_of(self.settings.param)
        self.fixed = {name: value for name, value in self.settings.param.items() if name not in self.axes}
        self.id = self.recorder.new_id()
        self._start = time.monotonic()
        numbers = [value for values in self.axes.values() for value in values if _is_number(value)]
        self._integral = all(value.lstrip("-").isdigit() for value in numbers)

    def run(self) -> Sweep:
        """Measure all points.

        Raises:
            UsageError: No point can be measured, because of a wrong name, range or device.
            Interrupted: A signal. `results` holds what was measured.
        """
        grid = list(self._grid())
        for number, point in enumerate(grid):
            smaller = next((failed for failed in self._out_of_memory if _is_beyond(point, failed[0])), None)
            if smaller is not None:
                self.cut_short(f"out of memory at {_point_text(smaller[0])} ({smaller[1]})")
                continue
            if self._is_time_over() or not self._measure(point, len(grid) - number):
                break
        while len(self.axes) == 1 and self.results:
            point_between = self._next_point()
            if point_between is None or self._is_time_over():
                break
            self._measure(point_between)
        return self.read()

    def read(self) -> Sweep:
        """Return what the points so far show.

        Raises:
            UsageError: There is no point.
        """
        if not self.results:
            raise UsageError("no point of the sweep was measured", "Give it more time with --max-time.")
        return sweep_of(self.results, self.settings.threshold)

    def cut_short(self, reason: str) -> None:
        """Record with the last point why not all values were measured. The first reason stays."""
        if not self.results or any(result.sweep and result.sweep.incomplete_reason for result in self.results):
            return
        for result in self.results:
            if result.group == self.results[-1].group:
                result.sweep = SweepMembership(axes=list(self.axes), incomplete_reason=reason)
                self.recorder.save(result)

    def _grid(self) -> Iterator[dict[str, str]]:
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    def _point_settings(self, point: Mapping[str, str], points_left: int) -> RunSettings:
        share = max(0.0, self._seconds_left()) / points_left
        update = {"param": {**self.fixed, **point}, "max_time": min(self.point_time, share)}
        return self.settings.model_copy(update=update)

    def _seconds_left(self) -> float:
        return self.settings.max_time - (time.monotonic() - self._start)

    def _is_time_over(self) -> bool:
        if self._seconds_left() < 0 and self.results:
            self.cut_short("the time limit was reached; give it more with --max-time")
            return True
        return False

    def _measure(self, point: Mapping[str, str], points_left: int = 1) -> bool:
        """Measure a point. Return False if larger points need not be tried.

        Args:
            point: The value of each swept parameter.
            points_left: Number of points that share the time left, with this one.
        """
        self._tried.append(point)
        settings = self._point_settings(point, points_left)
        try:
            (group,) = plan([self.workload], settings, swept=self.axes)
        except (UsageError, DeviceAbsent) as error:
            if not self.results:
                raise
            self.cut_short(f"{_point_text(point)} was refused: {error.message}")
            return False
        session = Session(group, settings, replace(POINT, parent=self.id), self.recorder)
        for result in session.results:
            result.sweep = SweepMembership(axes=list(self.axes))
        self.results += session.results
        session.run()
        backends = [result.spec.backend for result in session.results if ran_out_of_memory(result)]
        if backends:
            self._out_of_memory.append((point, ", ".join(backends)))
        return True

    def _next_point(self) -> dict[str, str] | None:
        """Return the middle of the widest gap around a crossing. None if all gaps are narrow or cannot be measured.

        A point that failed or was refused leaves no ratio. It divides its gap, and another point there may work.
        """
        (name,) = self.axes
        tried_values = sorted(float(point[name]) for point in self._tried if _is_number(point[name]))
        gaps: list[tuple[float, float, float]] = []
        for low, high in open_brackets(self.read()):
            failed_values = [value for value in tried_values if low < value < high]
            if len(failed_values) < MOST_FAILED:
                ends = pairwise([low, *failed_values, high])
                gaps += [(_width(left, right, tried_values[-1] - tried_values[0]), left, right) for left, right in ends]
        for width, low, high in sorted(gaps, key=lambda gap: gap[0], reverse=True):
            middle = interpolate(low, high, 0.5)
            value = round(middle) if self._integral else float(f"{middle:.4g}")
            point = {name: str(value)}
            is_beyond = any(_is_beyond(point, failed) for failed, _ in self._out_of_memory)
            if width > math.log(CLOSE) and low < value < high and not is_beyond:
                return point
        return None


def axes_of(params: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the values of each parameter that is a range or a list.

    Raises:
        SettingsError: There is none, a range is wrong, or there are too many points.
    """
    axes = {}
    for name, text in params.items():
        try:
            values = sweep_values(text)
        except ValueError as error:
            raise SettingsError(f"invalid range '{text}' for --param {name}", f"{str(error).capitalize()}.") from None
        if values is not None:
            axes[name] = sorted(values, key=float) if all(map(_is_number, values)) else values
    if not axes:
        raise SettingsError("no parameter to sweep", "Give a parameter a range: --param batch=1..4096.")
    points = math.prod(map(len, axes.values()))
    if points > MOST_POINTS:
        raise SettingsError(
            f"the sweep has {points} points, more than {MOST_POINTS}", "Take larger steps, for example 1..4096*4."
        )
    return axes


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _width(low: float, high: float, axis: float) -> float:
    """Return the distance of two values: the logarithm of their ratio, or next to 0, their difference by the axis."""
    return math.log(high / low) if low > 0 else (high - low) / axis


def _is_beyond(point: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Return whether a point is at least as large as another in every parameter. Words have no order."""
    return all(
        value == other[name] or (_is_number(value) and _is_number(other[name]) and float(value) > float(other[name]))
        for name, value in point.items()
    )


def _point_text(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.items())
