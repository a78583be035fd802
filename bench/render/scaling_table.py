"""A scaling study as the rows and columns of tables, for the terminal, the report and the hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.model.interval import Interval
from bench.model.scaling import PartName, ScalingPart, ScalingStudy, Size
from bench.render import numbers

NONE = "–"
"""A cell without a value."""

WHAT: dict[PartName, str] = {
    "ideal": "the step of one worker without a strategy, divided by the number of workers if they share each batch",
    "strategy": "the extra time of one worker's step under the strategy",
    "input": "the extra time of the input, beyond its ideal share",
    "batch": "the extra time of the computation: batches are smaller, and workers of one machine share its memory",
    "waiting": "the time for which the other workers wait for the slowest one of each step",
    "all-reduce": "the time to exchange the gradients and add them up",
}
"""What each part of a step is, in the order in which tables show the parts."""


@dataclass(frozen=True)
class SizeRow:
    """A row: its label, a cell for each column, and the positions of cells that report a problem."""

    label: str
    cells: tuple[str, ...]
    wrong: tuple[int, ...] = ()


def noun(study: ScalingStudy) -> str:
    """Return what the study counts: "replica" or "worker"."""
    return "replica" if study.strategy == "mirrored" else "worker"


def head(study: ScalingStudy) -> tuple[str, ...]:
    """Return the heads of the columns. The first column holds the labels of the rows."""
    return (f"{noun(study)}s", "examples/s", "speed-up", "efficiency", "step")


def rows(study: ScalingStudy, brief: bool = False) -> list[SizeRow]:
    """Return a row for one worker without a strategy, and one for each size.

    Args:
        study: the study.
        brief: whether to leave out the interval of the efficiency, which has the relative width of the speed-up's.
    """
    bare = ("bare", (_rate(study.bare_examples_per_second), "1", "100%", _step(study.bare)))
    return [SizeRow(*bare), *(size_row(size, brief) for size in study.sizes)]


def size_row(size: Size, brief: bool = False) -> SizeRow:
    """Return the row of a size. The arguments are those of `rows`."""
    label, rate = str(size.workers), _rate(size.examples_per_second)
    if size.failure:
        return SizeRow(label, (NONE, NONE, NONE, "failed"), (3,))
    if size.refused:
        return SizeRow(label, (rate, "refused", NONE, _step(size.step_seconds)), (1,))
    if size.step_seconds is None:
        return SizeRow(label, (NONE, NONE, NONE, "not measured"))
    speed_up = numbers.factor(size.speed_up) if size.speed_up else NONE
    efficiency = NONE
    if size.efficiency:
        efficiency = numbers.percent(size.efficiency.value) if brief else numbers.share(size.efficiency)
    return SizeRow(label, (rate, speed_up, efficiency, _step(size.step_seconds)))


def divided(study: ScalingStudy) -> list[Size]:
    """Return the sizes of several workers whose step is divided into parts."""
    return [size for size in study.sizes if size.workers > 1 and size.parts]


def parts(sizes: Sequence[Size]) -> list[PartName]:
    """Return the parts that any of these sizes has, in order."""
    present = {part.name for size in sizes for part in size.parts}
    return [name for name in WHAT if name in present]


def part_label(study: ScalingStudy, name: PartName, sizes: Sequence[Size]) -> str:
    """Return the label of a part in a table of these sizes, at least one."""
    if name == "ideal":
        return "bare step" if study.scaling == "weak" else f"bare step / {noun(study)}s"
    if name == "waiting":
        slowest = {size.slowest_worker for size in sizes}
        which = slowest.pop() if len(slowest) == 1 else None
        return f"waiting for the slowest {noun(study)}" + ("" if which is None else f" ({noun(study)} {which})")
    labels: dict[PartName, str] = {"strategy": "overhead of the strategy", "batch": "slower computation"}
    return labels.get(name, name)


def short_part_label(study: ScalingStudy, name: PartName, size: Size) -> str:
    """Return the label of a part in a chart of one size. It is shorter than that of `part_label`."""
    if name == "waiting":
        which = "the slowest" if size.slowest_worker is None else f"{noun(study)} {size.slowest_worker}"
        return f"waiting for {which}"
    return part_label(study, name, [size])


def part_of(size: Size, name: PartName) -> ScalingPart | None:
    """Return a part of a size's step; None if the step has no such part."""
    return next((part for part in size.parts if part.name == name), None)


def part_seconds(part: ScalingPart | None) -> str:
    """Return the time of a part. If the part may take no time, return the longest time that it may take."""
    if part is None:
        return NONE
    most = part.seconds.high
    return numbers.interval(part.seconds) if most is None or is_measurable(part) else f"at most {numbers.time(most)}"


def part_share(part: ScalingPart | None) -> str:
    """Return the share of the step that a part takes; a dash if the part may take no time."""
    return NONE if part is None or not is_measurable(part) else numbers.percent(part.share)


def is_measurable(part: ScalingPart) -> bool:
    """Return whether the interval of a part excludes 0. A part without an interval counts as measurable."""
    return part.seconds.low is None or part.seconds.high is None or not part.seconds.may_be_zero


def part_cell(part: ScalingPart | None) -> str:
    """Return the time of a part, and its share if the part is measurable."""
    if part is None or not is_measurable(part):
        return part_seconds(part)
    return f"{part_seconds(part)} ({part_share(part)})"


def _rate(rate: Interval | None) -> str:
    return numbers.rate(rate, "") if rate else NONE


def _step(step: Interval | None) -> str:
    return numbers.interval(step) if step else NONE
