"""Findings about what the program's own steps do: reads, eager operations, tapes, retraces, float64, host work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.analyse.explain.lines import lines_of_traced, named_lines
from bench.analyse.explain.own_time import keras_calls, share_of, whole_data_calls
from bench.analyse.samples import mean_step, median_step, merged_facts, process_values, usable_samples
from bench.backends import capabilities
from bench.model.causes import EAGER, FLOAT64, NEW_DATASET, ON_HOST, PYTHON_IN_GRAPH, READS, RECOMPILING, RETRACING
from bench.model.explanation import Finding
from bench.model.facts import WHOLE_DATA_CALLS, Facts, Retraced
from bench.model.result import Result
from bench.model.sample import ProcessSample
from bench.model.words import count
from bench.whatif import on_batch, reduce_retracing, single_use_tapes

Reader = Callable[[Result, list[ProcessSample]], Iterator[Finding]]
"""From a result and its usable samples to findings."""


READ_LESS = {
    True: "Read the loss every 100 steps or once per epoch.",
    False: "Read the outputs of many steps at once.",
    None: "Keep the values as tensors, and read those of many steps at once.",
}
"""Advice for reads after each step, by whether the steps train. None: that is not known."""


def host_reads(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if Python reads numbers back after each step."""
    reads = merged_facts(samples).host_reads
    if reads and reads.per_step >= 0.5:
        numbers = f"{reads.per_step:.3g} number{'' if reads.per_step == 1 else 's'}"
        yield Finding(
            cause=READS,
            sentence=f"Python reads {numbers} back after each step{named_lines(base, reads.lines, reads.elsewhere)}.",
            evidence="calls of .numpy(), float() and similar, counted in a few steps",
            fix=f"{READ_LESS[_trains(base, samples)]} Each read waits for the device.",
            share=share_of(samples, "read"),
            estimated=True,
        )


def _trains(base: Result, samples: Sequence[ProcessSample]) -> bool | None:
    """Return whether the steps train. None if that is not known: the own loop of a workload may also only predict."""
    if base.recognition is not None:
        return base.recognition.chosen.trains
    return True if merged_facts(samples).fit is not None else None


def eager_execution(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if operations run one by one from Python."""
    eager = merged_facts(samples).eager
    if any(sample.facts.functions_eager for sample in samples):
        yield Finding(
            cause=EAGER,
            sentence="The operations of a step run one by one from Python, because each tf.function runs eagerly.",
            evidence="tf.config.functions_run_eagerly() is true",
            fix="Remove tf.config.run_functions_eagerly(True). It is only for debugging.",
            share=share_of(samples, "eager"),
            estimated=True,
        )
    elif eager and eager.per_step >= 3:
        names, wrapped = ", ".join(eager.operations), merged_facts(samples).eager_step is not None
        yield Finding(
            cause=EAGER,
            sentence=f"{eager.per_step:.0f} operations per step run one by one from Python"
            f"{named_lines(base, eager.lines, eager.elsewhere)}: {names}.",
            evidence="operations counted in a few steps",
            fix="" if wrapped else "Put the whole step into one @tf.function.",
            what_ifs=["function"] if wrapped else [],
            share=share_of(samples, "eager"),
            estimated=True,
        )
    elif any(sample.facts.run_eagerly for sample in samples):
        yield Finding(
            cause=EAGER,
            sentence="The operations of a step run one by one from Python, not as a graph.",
            evidence="the model's run_eagerly is on",
            what_ifs=["graph"],
        )


def persistent_tapes(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if a step makes persistent tapes that compute at most one gradient each."""
    tapes = merged_facts(samples).persistent_tapes
    if tapes and tapes.per_step >= 0.5:
        number = f"{tapes.per_step:.3g} persistent gradient tape{'' if tapes.per_step == 1 else 's'}"
        lines = named_lines(base, tapes.lines, tapes.elsewhere)
        yield Finding(
            cause=single_use_tapes.CAUSE,
            sentence=f"Each step makes {number} for one gradient each{lines}.",
            evidence="tapes and their gradients counted in a few steps",
            fix=single_use_tapes.ADVICE if tapes.several_gradients else "",
            what_ifs=[] if tapes.several_gradients else ["single-use-tapes"],
        )


def retraced(samples: Sequence[ProcessSample]) -> tuple[list[Retraced], int, int] | None:
    """Return what is traced again and again within one run of the program.

    Returns:
        What is traced, the number of steps, and the number of runs of the program; None if nothing is.
    """
    facts = next((s.facts for s in samples if s.facts.retraced), Facts())
    steps = facts.steps_issued or facts.steps_run
    if not facts.retraced or not steps:
        return None
    runs = 1 + (facts.restarts or 0)  # a program that devbench starts again traces its functions again
    often = [
        traced
        for traced in facts.retraced
        if traced.count / runs > 5 and traced.count > (OFTEN if _is_training(traced, samples) else 0.02) * steps
    ]
    return (often, steps, runs) if often else None


def _is_training(traced: Retraced, samples: Sequence[ProcessSample]) -> bool:
    """Return whether a call is the training itself, not one in each step. Its validation is traced too."""
    return traced.is_call and traced.function == "fit" and merged_facts(samples).fit is not None


def retracing(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if a function, or a call, makes TensorFlow trace again and again in one run of the program."""
    found = retraced(samples)
    if found is None:
        return
    often, steps, runs = found
    evidence = f"traces counted in {count(runs, 'run')} of the program"
    calls = [traced for traced in often if traced.is_call]
    if calls:
        names, lines = dict.fromkeys(call.function for call in calls), lines_of_traced(base, calls)
        named = " and ".join("iterating" if name == ITERATES else name for name in names)
        traces = sum(call.count for call in calls)
        verb = "makes" if len(names) == 1 else "make"
        rebuilds = all(call.of_pipeline for call in calls)
        trains = any(_is_training(call, samples) for call in calls)
        whole = set() if trains else set(names) & {*WHOLE_DATA_CALLS}
        if whole and whole_data_calls(samples):  # `keras_calls` names them, with their share
            return
        yield Finding(
            cause=NEW_DATASET if whole else RETRACING,
            sentence=f"{named}{lines} {verb} TensorFlow trace {count(traces, 'new graph')} in {count(steps, 'step')}"
            + (", because each call builds a new dataset." if whole else f"{BUILT_AGAIN if rebuilds else ''}."),
            evidence=evidence,
            fix=on_batch.ADVICE
            if whole
            else "Create one iterator before the loop. Call repeat() on the dataset before it is distributed."
            if set(names) == {ITERATES}
            else "Train for more epochs in one call of fit, or for more steps in each epoch."
            if trains and rebuilds
            else "Give all batches the same shape: drop_remainder=True, or pad to a few lengths."
            if trains
            else "Call it once, outside the loop.",
            share=None if whole else _trace_share(base, samples),
            estimated=not whole,
        )
        return
    most = often[0]
    why, fix = _reason(most)
    is_tried = most.reason is not None and reduce_retracing.removes(most.reason)
    yield Finding(
        cause=RETRACING,
        sentence=f"TensorFlow traced {most.function} ({Path(most.file).name} line {most.line}) into a new graph "
        f"{count(most.count, 'time')} in {count(steps, 'step')}{why}.",
        evidence=evidence,
        fix=fix,
        what_ifs=["reduce-retracing"] if is_tried else [],
        share=_trace_share(base, samples),
        estimated=True,
    )


def recompiling(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if XLA compiles again and again, because shapes change."""
    found = merged_facts(samples).recompiled
    if found is None:
        return
    what = f"{found.function} ({Path(found.file).name} line {found.line})" if found.function else "the train step"
    share = min(1.0, found.seconds / median_step(base, mean_step)) if process_values(base) else None
    if share is not None and share <= MIN_RECOMPILING:
        return
    yield Finding(
        cause=RECOMPILING,
        sentence=f"XLA compiled {what} for {count(found.shapes, 'new shape')} in {count(found.calls, 'call')}, for "
        f"example for {found.before} and then for {found.after}.",
        evidence="calls with new shapes, compared with other calls of the same function",
        fix="Pad batches to a few lengths, for example with bucket_by_sequence_length.",
        what_ifs=["xla"],
        share=share,
        estimated=True,
    )


def _reason(traced: Retraced) -> tuple[str, str]:
    """Return why a function is traced again, as the end of a sentence, and what to do about it."""
    reason = traced.reason
    if reason is None:
        return "", (
            "Create the tf.function once, outside the loop. Pass tensors instead of Python numbers. Keep shapes fixed."
        )
    name, changed = reason.argument, f"changes, for example from {reason.before} to {reason.after}"
    return {
        "value": (
            f", because its argument {name} {changed}",
            f"Pass {name} as a tensor, with tf.constant({name}). TensorFlow traces a graph for each Python value.",
        ),
        "shape": (
            f", because the shape of its argument {name} {changed}",
            "Use @tf.function(reduce_retracing=True), or pad batches to a few lengths.",
        ),
        "dtype": (
            f", because the dtype of its argument {name} {changed}",
            f"Convert {name} to one dtype before the call.",
        ),
        "object": (
            f", because its argument {name} is a new object each time",
            f"Create the object {name} once, or pass its values as tensors.",
        ),
        "structure": (
            f", because its argument {name} is missing or of another kind in some calls",
            "Call the function with the same kinds of arguments each time.",
        ),
        "new function": (
            ", because each time it is a new tf.function",
            "Create the tf.function once, outside the loop.",
        ),
    }[reason.kind]


def _trace_share(base: Result, samples: Sequence[ProcessSample]) -> float | None:
    """Return the share of the step that new graphs take. If their calls were not repeated, only tracing counts."""
    share = merged_facts(samples).retracing_share
    if share is not None:
        return share
    facts = next((s.facts for s in samples if s.facts.trace_seconds is not None), Facts())
    steps = facts.steps_issued or facts.steps_run
    if facts.trace_seconds is None or not steps or not process_values(base):
        return None
    return min(1.0, facts.trace_seconds / steps / median_step(base, mean_step))


def float64(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if operations or batches use float64 although the spec asks for fewer bits."""
    double = merged_facts(samples).float64
    if not double or base.spec.dtype == "float64":
        return
    if double.operations:
        yield Finding(
            cause=FLOAT64,
            sentence=f"{_computing(double.operations)} in float64{named_lines(base, double.lines, double.elsewhere)}.",
            evidence="dtypes in the traced graphs",
            fix="Convert the data to float32 once. float32 is twice as fast on a CPU and up to 64 times on a GPU.",
        )
    elif double.arguments:
        yield Finding(
            cause=FLOAT64,
            sentence="Batches arrive as float64 and are converted in each step.",
            evidence=f"{count(double.arguments, 'float64 argument')} in the traced graphs",
            fix='Convert the data once: rows.astype("float32").',
        )


def int32(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if a step computes in int32 on an accelerator. The placement check cannot see this."""
    integers = merged_facts(samples).int32
    if integers and integers.operations and capabilities(base.spec.backend).gpu:
        yield Finding(
            cause=ON_HOST,
            sentence=f"{_computing(integers.operations)} in int32, which TensorFlow does on the host"
            f"{named_lines(base, integers.lines, integers.elsewhere)}.",
            evidence="dtypes and shapes in the traced graphs; TensorFlow keeps int32 in host memory",
            fix="Compute in float32 or int64, or move the computation from the step into the input pipeline.",
        )


def _computing(operations: int) -> str:
    """Return the beginning of a sentence about operations that compute in some dtype."""
    return f"{count(operations, 'operation')} of the step {'computes' if operations == 1 else 'compute'}"


def host_operations(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield findings if a graph calls Python, or if operations run outside the device."""
    placement = base.placement
    if placement is None:
        return
    calls = merged_facts(samples).python
    lines = named_lines(base, calls.lines, calls.elsewhere) if calls is not None else ""
    python = [operation for operation in placement.host_by_design if "PyFunc" in operation]
    misplaced = {operation.op: operation.device for operation in placement.misplaced}
    if calls is not None and calls.operations and not python:
        yield Finding(
            cause=PYTHON_IN_GRAPH,
            sentence=f"TensorFlow calls back into Python from inside a graph{lines}.",
            evidence=f"{calls.operations} py_function or numpy_function in the traced graphs",
            fix="Use TensorFlow's own operations. Python runs on the host, one call at a time.",
        )
    if python or misplaced:
        names = ", ".join([*python, *(f"{operation} on {device}" for operation, device in misplaced.items())])
        device = placement.requested_device
        yield Finding(
            cause=ON_HOST,
            sentence=f"Operations of a step run outside {device}{lines}: {names}.",
            evidence=f"partition graphs of one step; {placement.on_device} operations run on {device}",
            fix="Replace py_function and numpy_function with TensorFlow's own operations. Keep int32 and strings "
            "out of the step.",
        )


ITERATES = "__iter__"
"""What a loop over a dataset calls first."""
BUILT_AGAIN = ", because the input pipeline is built again and again"

MIN_RECOMPILING = 0.05
"""Smallest share of a step for which compiling again is a finding."""

OFTEN = 0.2
"""Traces per step from which the program's own call of `fit` counts as retracing: its batches differ in shape."""

READERS: Sequence[Reader] = (
    host_reads,
    eager_execution,
    persistent_tapes,
    retracing,
    recompiling,
    keras_calls,
    float64,
    int32,
    host_operations,
)


def causes(level: Result) -> set[str] | None:
    """Return the causes that `READERS` find in a level. None if its steps could not be inspected."""
    samples = usable_samples(level)
    facts = merged_facts(samples)
    if facts.retraced is None or level.placement is None:
        return None
    names = {finding.cause for reader in READERS for finding in reader(level, samples)}
    if facts.python is not None and facts.python.operations:
        names |= {PYTHON_IN_GRAPH, ON_HOST}  # a loop names one of the two, by its evidence
    return names
