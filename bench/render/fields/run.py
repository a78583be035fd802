"""How a result was measured: its status, where it ran, its data, XLA, and the number of processes."""

from __future__ import annotations

from bench.model.interval import uncertainty
from bench.model.placement import Placement
from bench.model.result import Result, Stop
from bench.render import numbers
from bench.render.fields.field import Field

DATA = {"full": "full set", "sample": "sample, repeated", "synthetic": "synthetic", "own": "the program's own"}
"""Kinds of data in words."""


def _status(result: Result) -> str:
    """Return the status, and the reason unless the result is complete."""
    if result.status == "complete":
        return "complete"
    reason = result.failure.kind if result.failure else result.stop.reason if result.stop else ""
    return result.status.upper() + (f": {reason}" if reason else "")


def _place(placement: Placement) -> str:
    """Return the outcome of the placement check."""
    if placement.misplaced:
        devices = ", ".join(sorted({operation.device for operation in placement.misplaced}))
        operations = numbers.count(len(placement.misplaced), "operation")
        return f"NOT on {placement.requested_device}: {operations} on {devices}"
    if not placement.verified:
        return f"NOT VERIFIED on {placement.requested_device}"
    operations = f"all {placement.on_device:,} operations" if placement.on_device > 1 else "the only operation"
    return f"{placement.requested_device}, {operations}"


def _data(result: Result) -> str:
    """Return the name and the kind of the data."""
    source = result.spec.data
    return ", ".join(filter(None, (source.name, DATA[source.kind])))


def _xla(result: Result) -> str | None:
    """Say whether XLA compiled the step, and who decided that. None if unknown."""
    actual, requested = result.summary.xla, result.spec.xla
    value = requested if actual is None else actual
    if value is None:
        return None
    text = "on" if value else "off"
    if requested is None:
        return f"{text}, chosen by the program"
    return text if value == requested else f"{text}, despite --xla {'on' if requested else 'off'}"


def _processes(stop: Stop) -> str:
    """Return the number of processes, and why there are no more."""
    error = "" if stop.error is None else f", known {uncertainty(stop.error)}"
    target = "" if stop.target is None else f" of ±{numbers.percent(stop.target)}"
    goal, success = f"the target{target}", f"target{target} met"
    if stop.error_of == "ratio":
        goal, success = "a verdict", "verdict settled"
        error = "" if stop.error is None else f", ratio known {uncertainty(stop.error)}"
    reason = {
        "target": f"{success}{error}",
        "max-time": f"--max-time reached before {goal}{error}",
        "max-processes": f"--max-processes reached before {goal}{error}",
        "failed": "a process failed",
        "interrupted": f"interrupted{error}",
    }[stop.reason]
    duration = "" if stop.seconds is None else f" in {numbers.time(stop.seconds)}"
    return f"{stop.trials}{duration}: {reason}"


FIELDS = (
    Field("status", "status", _status, brief="status", alarm=lambda text: text != "complete"),
    Field(
        "placement",
        "where it ran",
        lambda result: result.placement,
        _place,
        brief="where it ran",
        alarm=lambda placement: not placement.verified,
    ),
    Field(
        "misplaced_operations",
        "misplaced operations",
        lambda result: len(result.placement.misplaced) if result.placement else None,
        lambda count: str(count) if count else "",
        metric="misplaced_operations",
    ),
    Field("data", "data", _data),
    Field("xla", "XLA", _xla),
    Field("stop", "processes", lambda result: result.stop, _processes),
    Field(
        "forked",
        "forked processes",
        lambda result: sum(sample.forked for sample in result.samples),
        lambda count: str(count) if count else "",
    ),
)
