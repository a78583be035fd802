"""Facts about the program itself: its lengths and graphs, its pipeline, its call of `fit`, and its own steps."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bench.model.facts import Facts, FitCall, Retraced
from bench.registry.program_errors import is_devbench
from bench.whatif.without_metrics import metrics_of
from bench.worker import examples
from bench.worker.diagnose import graph_facts, inspection, own_time, pipeline_stages, repeated_calls
from bench.worker.epoch_timer import EpochTimer
from bench.worker.failure import short_text
from bench.worker.fit_epochs import FitEpochs, validated_epochs
from bench.worker.fit_hook import FitHook
from bench.worker.frames import Sources
from bench.worker.protocol import Note, PhaseStarted
from bench.worker.rig import Rig, epochs_of, steps_of_training
from bench.worker.trace_reasons import TraceReasons
from bench.worker.tracing import Traced, Tracing

FEW_TRACES = 5
"""A function that was traced more often than this is listed as retraced."""

WORK = {"class_weight", "sample_weight"}
"""Arguments of `fit` that change the work of a step."""

MAX_FUNCTIONS = 5
"""Maximum number of functions that are listed."""


def read_facts(rig: Rig, hook: FitHook, timer: EpochTimer, tracing: Tracing) -> None:
    """Read the facts of every run: lengths, traces, and whether XLA and eager execution are on."""
    facts, model = rig.facts, hook.model
    steps = rig.state.program_steps
    _read_lengths(rig, hook, timer)
    facts.traces, facts.trace_seconds = tracing.count, tracing.seconds
    facts.functions_eager = bool(rig.tf.config.functions_run_eagerly())
    if rig.spec.script is not None and rig.spec.dtype != "float64":
        policy = str(rig.tf.keras.mixed_precision.global_policy().name)
        facts.dtype_policy = policy if policy != rig.spec.dtype else None
    if model is not None:
        facts.jit_compile = bool(getattr(model, "jit_compile", getattr(model, "_jit_compile", None)))
        facts.run_eagerly = bool(getattr(model, "run_eagerly", False)) or facts.functions_eager
    elif rig.state.function is not None:
        facts.jit_compile = bool(rig.spec.xla)
    if steps is not None:
        rig.send(Note(text=f"The program has {steps} steps. devbench restarted it to measure for longer."))


def _read_lengths(rig: Rig, hook: FitHook, timer: EpochTimer) -> None:
    """Read how long an epoch and the whole training are. What the program did overrides its parameters."""
    facts, epochs, run = rig.facts, hook.epochs, hook.epochs.first_run
    facts.epoch = epochs.epoch or rig.epoch
    facts.validated_epochs = validated_epochs(hook.arguments) if hook.model is not None else None
    facts.ended_epochs = len(timer.ends) or None
    if rig.has("total_steps"):
        try:
            facts.total_steps = steps_of_training(rig)
        except Exception as error:  # the steps are measured already
            rig.send(Note(text=f"total_steps failed: {short_text(error)}"))
    elif rig.state.program_steps:
        facts.total_steps = rig.state.program_steps
    elif run is not None and rig.spec.loop == "as-written":
        facts.total_steps = run.planned or run.run
    else:
        facts.total_steps = _planned_steps(rig, epochs)
    if run is not None and run.planned and run.run < run.planned:
        facts.stopped_after = run.run


def _planned_steps(rig: Rig, epochs: FitEpochs) -> int | None:
    """Return the steps that the program plans. None if the number is not known.

    A call of `fit` for one epoch may be one of several calls, so the parameters then give the number of epochs.
    """
    written = rig.has("as_written") or rig.spec.script is not None
    own = rig.spec.loop == "as-written" and written  # else the call of `fit` is devbench's, without end
    if not own or epochs.planned is None or epochs.epoch is None:
        length = epochs.epoch or rig.epoch
        return length.steps * epochs_of(rig) if length else None
    return epochs.planned if epochs.plans[-1].epochs > 1 else epochs.epoch.steps * epochs_of(rig)


def read_pipeline(rig: Rig, hook: FitHook, timed: bool) -> None:
    """Read the facts `pipeline_reachable` and, if `timed`, `pipeline` with the time of each stage.

    A Keras `PyDataset` has one stage: the method that prepares a batch. A pipeline is reachable if `fit` or devbench
    iterates over it, because a what-if can then change it. If the program iterates over the pipeline, no what-if can.
    """
    reachable = [hook.arguments.get("x"), rig.data]
    own_loop = rig.has("as_written") or rig.spec.script is not None
    own_iteration = rig.spec.loop == "as-written" and own_loop and hook.model is None
    candidates = [*reachable, *([hook.dataset] if own_iteration else [])]
    dataset = next((candidate for candidate in candidates if isinstance(candidate, rig.tf.data.Dataset)), None)
    if dataset is None:
        keras_data = next((data for data in reachable if examples.is_py_dataset(rig.tf, data)), None)
        if timed and keras_data is not None:
            length = examples.py_dataset_length(keras_data)
            # Threads share one interpreter, so only processes divide the time. Keras 2 has these arguments of `fit`.
            has_processes = getattr(keras_data, "use_multiprocessing", False) or hook.arguments.get(
                "use_multiprocessing"
            )
            workers = examples.py_dataset_workers(keras_data, hook.arguments) if has_processes else 1
            rig.facts.pipeline = pipeline_stages.measure_py_dataset(keras_data, length, workers)
        return
    rig.facts.pipeline_reachable = any(candidate is dataset for candidate in reachable)
    if timed:
        with rig.tf.device("/device:CPU:0"):
            rig.facts.pipeline = pipeline_stages.measure(
                dataset, lambda stage: rig.send(PhaseStarted(phase="pipeline", note=stage))
            )


def inspect(rig: Rig, tracing: Tracing, traced: Counter[Traced], hook: FitHook) -> None:
    """Read the facts of an explanation: `fit`, `retraced`, `own_time`, and those of `graph_facts` and `inspection`.

    Args:
        rig: the rig.
        tracing: holds the latest graphs. It counts the traces of the diagnosis too.
        traced: number of traces in the steps that were counted.
        hook: the hook into `fit`.
    """
    sources = rig.sources or Sources(str(rig.module.__file__))
    graph_facts.read_graphs(rig.facts, tracing.graphs, sources)
    if rig.yields:
        with rig.scope():
            rig.facts.own_time = own_time.measure(lambda: rig.call("as_written"), sources)
            inspection.read_steps(rig.facts, rig.tf, lambda: rig.call("as_written"), sources)
            if any(count > FEW_TRACES for count in traced.values()):
                rig.facts.retracing_share = repeated_calls.measure(rig.tf, lambda: rig.call("as_written"), tracing)
    if hook.model is not None:
        rig.facts.fit = _fit_call(hook)
    read_retraced(rig.facts, traced, tracing.reasons)


def read_retraced(facts: Facts, traced: Counter[Traced], reasons: TraceReasons) -> None:
    """Read the fact `retraced`.

    Args:
        facts: where to put the fact.
        traced: number of traces in the steps that were counted.
        reasons: why functions were traced again.
    """
    counts: Counter[Traced] = Counter()
    of_pipelines: Counter[Traced] = Counter()
    for key, count in traced.items():
        whole = key._replace(of_pipeline=False)
        counts[whole] += count
        of_pipelines[whole] += count if key.of_pipeline else 0
    facts.retraced = [
        Retraced(
            **key._replace(of_pipeline=2 * of_pipelines[key] > count)._asdict(),
            count=count,
            reason=reasons.typical(key),
        )
        for key, count in counts.most_common(MAX_FUNCTIONS)
        if count > FEW_TRACES and not is_devbench(Path(key.file))
    ]


def _fit_call(hook: FitHook) -> FitCall:
    callbacks, verbose = hook.arguments.get("callbacks") or [], hook.arguments.get("verbose", "auto")
    if not isinstance(callbacks, (list, tuple)):
        callbacks = [callbacks]
    return FitCall(
        callbacks=[type(callback).__name__ for callback in callbacks],
        verbose=verbose if isinstance(verbose, (int, str)) else str(verbose),
        metrics=bool(metrics_of(hook.model)),
        input=type(hook.arguments.get("x")).__name__,
        shuffles=hasattr(hook.arguments.get("x"), "shape") and bool(hook.arguments.get("shuffle", True)),
        options=sorted(hook.arguments.keys() & WORK),
    )
