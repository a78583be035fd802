"""What the program's own steps do that costs time: reads, eager operations, retraces, float64, work on the host."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.analyse import stats
from bench.backends import capabilities
from bench.model.explanation import Finding
from bench.model.facts import Facts
from bench.model.result import ProcessSample, Result


def reads(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Numbers that Python reads back after each step."""
    found = stats.facts(samples).host_reads
    if found and found.per_step >= 0.5:
        yield Finding(
            cause="per-step synchronisation",
            sentence=f"Python reads {_count(found.per_step, 'number')} back after each step{_at(base, found.lines)}",
            evidence="calls of .numpy(), float() and the like in a few steps",
            fix="Read the loss every hundredth step, or once an epoch: each read waits for the device.",
        )


def eager(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Operations that run one by one from Python."""
    found = stats.facts(samples).eager
    placement = base.placement
    if found and found.per_step >= 3:
        names = ", ".join(found.operations)
        at = _at(base, found.lines)
        yield Finding(
            cause="eager execution",
            sentence=f"{found.per_step:.0f} operations a step run one by one from Python{at}: {names}",
            evidence="operations seen in a few steps",
            fix="Put the whole step into one @tf.function.",
        )
        return
    by_keras = any(s.facts.run_eagerly for s in samples)
    if by_keras or (placement and placement.method.startswith("eager")):
        yield Finding(
            cause="eager execution",
            sentence="its operations run one by one from Python, not as a graph",
            evidence="the model's run_eagerly" if by_keras or placement is None else f"proof by {placement.method}",
            fix="Decorate the step with @tf.function, or compile the model without run_eagerly.",
        )


def retraces(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """One function of Python's that is traced into new graphs again and again within one run of the program."""
    often = next((s.facts for s in samples if s.facts.retraced), Facts())
    steps = [s.facts.steps_run for s in samples if s.facts.steps_run]
    if not often.retraced or not steps:
        return
    most = often.retraced[0]
    begun = 1 + (often.restarts or 0)  # a program that devbench begins again traces anew
    run, a_run = statistics.median(steps), most.count / begun
    if a_run > 5 and most.count > 0.02 * run:
        name = f"{most.function} ({Path(most.file).name} line {most.line})"
        yield Finding(
            cause="retracing",
            sentence=f"TensorFlow traced {name} into a new graph {most.count} times in {run:.0f} steps",
            evidence=f"traces counted while the program ran {begun} time{'' if begun == 1 else 's'}",
            fix="Make the tf.function once, outside the loop; pass tensors, not Python numbers; fix shapes.",
        )


def float64(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Computing, or batches, in float64 where the run asks for fewer bits."""
    found = stats.facts(samples).float64
    if not found or base.spec.dtype == "float64":
        return
    if found.operations:
        yield Finding(
            cause="float64",
            sentence=f"{found.operations} operations of the step compute in float64{_at(base, found.lines)}",
            evidence="dtypes in the graphs that were traced",
            fix="Convert once to float32, which is twice as fast on a CPU and up to 64 times on a GPU.",
        )
    elif found.arguments:
        yield Finding(
            cause="float64",
            sentence="batches arrive as float64 and are converted at each step",
            evidence=f"{found.arguments} float64 arguments in the graphs that were traced",
            fix='Convert the data once: rows.astype("float32").',
        )


def integers(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Arithmetic in int32, which the placement of its operations says nothing of."""
    found = stats.facts(samples).int32
    if found and found.operations and capabilities(base.spec.backend).gpu:
        yield Finding(
            cause="operations kept on the host",
            sentence=f"{found.operations} operations of the step compute in int32, which TensorFlow does on the "
            f"host{_at(base, found.lines)}",
            evidence="dtypes and shapes in the graphs that were traced; TensorFlow keeps int32 in the host's memory",
            fix="Compute in float32 or int64, or before the step, within the input's pipeline.",
        )


def hosted(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Python within the graph, and operations outside of the device."""
    placement = base.placement
    if placement is None:
        return
    called = stats.facts(samples).python
    lines = called.lines if called is not None else []
    python = {op: n for op, n in placement.host_by_design.items() if "PyFunc" in op}
    strays = {o.op: o.device for o in placement.misplaced}
    if called is not None and called.operations and not python:
        yield Finding(
            cause="Python within the graph",
            sentence=f"TensorFlow calls back into Python from within a graph{_at(base, lines)}",
            evidence=f"{called.operations} py_function or numpy_function in the graphs that were traced",
            fix="Write it in TensorFlow's own operations: Python runs on the host, one call at a time.",
        )
    if python or strays:
        names = ", ".join([*python, *(f"{op} on {device}" for op, device in strays.items())])
        yield Finding(
            cause="operations kept on the host",
            sentence=f"a step runs {names} outside of {placement.requested_device}{_at(base, lines)}",
            evidence=f"partition graphs of one step, {placement.on_device} operations on {placement.requested_device}",
            fix="Replace py_function and numpy_function by TensorFlow's own operations; keep int32 and strings out.",
        )


OF_PYTHON = {"Python within the graph", "operations kept on the host"}
"""What calls of Python from a graph are named: which of the two depends on the evidence that a loop gives."""

READERS: Sequence[Callable[[Result, list[ProcessSample]], Iterator[Finding]]] = (
    reads, eager, retraces, float64, integers, hosted,
)  # fmt: skip


def causes(level: Result) -> set[str] | None:
    """The causes above that a level has; none where its steps could not be looked at, which tells of nothing."""
    samples = stats.usable(level)
    if stats.facts(samples).retraced is None or level.placement is None:
        return None
    found = {each.cause for reader in READERS for each in reader(level, samples)}
    called = stats.facts(samples).python
    return found | OF_PYTHON if called is not None and called.operations else found


def _count(number: float, what: str) -> str:
    return f"{number:.3g} {what}{'' if number == 1 else 's'}"


def _at(base: Result, lines: Sequence[int]) -> str:
    """The lines of the program's own file, in parentheses."""
    name = Path(base.spec.file).name if base.spec.file else f"{base.spec.workload}'s source"
    return f" ({name} line {', '.join(map(str, lines))})" if lines else ""
