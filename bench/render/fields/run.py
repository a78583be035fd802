"""How a result was measured: its status, where it ran, its data, XLA, and the number of processes."""

from __future__ import annotations

from bench.model.interval import uncertainty
from bench.model.placement import Placement
from bench.model.recognition import WORDS, Recognition
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


def _step(recognition: Recognition) -> str:
    """Return what a step of a script is, and how many were seen."""
    chosen = recognition.chosen
    seen = "" if recognition.ended else " until devbench stopped the script"
    return f"{WORDS[chosen.kind][1]} ({chosen.place}); {numbers.count(chosen.steps, 'step')}{seen}"


def _other_loops(recognition: Recognition) -> str:
    """Return the other loops of a script with their numbers of steps."""
    return "; ".join(f"{source.place}: {numbers.count(source.steps, 'step')}" for source in recognition.others)


def _printed(result: Result) -> str:
    """Return the last line that a script printed, and the number of its lines."""
    printed = next((sample.printed for sample in result.samples if sample.printed is not None), None)
    if printed is None or not printed.lines:
        return ""
    return f"{numbers.count(printed.lines, 'line')}, the last: {(printed.last or printed.first)[-1].strip()}"


def _data(result: Result) -> str:
    """Return the name and the kind of the data."""
    source = result.spec.data
    return ", ".join(filter(None, (source.name, DATA[source.kind])))


def _xla(result: Result) -> str | None:
    """Return whether XLA compiled the step, and whether the program or `--xla` decided it. None if unknown."""
    actual, requested = result.summary.xla, result.spec.xla
    value = requested if actual is None else actual
    if value is None:
        return None
    text = "on" if value else "off"
    if requested is None:
        return f"{text}, chosen by the program"
    return text if value == requested else f"{text}, despite --xla {'on' if requested else 'off'}"


def _processes(stop: Stop) -> str:
    """Return the number of processes, and why devbench stopped after them."""
    error = "" if stop.error is None else f", {uncertainty(stop.error)}"
    target = "" if stop.target is None else f" of ±{numbers.percent(stop.target)}"
    goal, success = f"the target{target}", f"target{target} met"
    if stop.error_of == "ratio":
        goal, success, ratio = "a verdict", "verdict settled", "ratio"
        if stop.by_epochs:
            success, ratio = "verdicts settled, at least one only over whole epochs", "ratio of steps"
        error = "" if stop.error is None else f", {ratio} {uncertainty(stop.error)}"
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
    Field("recognition", "a step is", lambda result: result.recognition, _step, brief="a step is"),
    Field("other_loops", "other loops", lambda result: result.recognition, _other_loops, brief="other loops"),
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
    Field("printed", "printed", _printed),
    Field("stop", "processes", lambda result: result.stop, _processes),
    Field(
        "forked",
        "forked processes",
        lambda result: sum(sample.forked for sample in result.samples),
        lambda count: str(count) if count else "",
    ),
)
