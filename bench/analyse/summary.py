"""From samples to a result's figures: summary, projection, the answers' agreement, and warnings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.analyse import epochs, same_answer, stats
from bench.backends import capabilities
from bench.config.syntax import written_seconds
from bench.model.result import (
    Failure,
    FullTraining,
    Interval,
    ProcessSample,
    Projection,
    Result,
    ResultWarning,
    Stop,
    Summary,
    Telemetry,
)

DAY = 86_400
"""Seconds of a run that nobody is told to wait for."""

LONG_END = 1.0
"""Seconds from which on a pause at an epoch's end is told of, where it is several times as long as a usual one."""


def level_values(result: Result) -> list[float]:
    """One number a process, whose spread decides when to stop: its typical step, or its series' together."""
    values = list(stats.process_values(result).values())
    if values:
        return values
    return [sum(stats.median(x.blocks) for x in s.series if x.blocks) for s in stats.usable(result)]


def summarise(result: Result, total_steps: int | None, examples: int | None) -> None:
    """Computes summary and projection anew from the samples."""
    samples = stats.usable(result)
    done = stats.started_alone(samples)
    phases = {name: stats.arithmetic(list(found.values())) for name, found in stats.phase_values(done).items()}
    summary = Summary(phases=phases)
    steps = stats.process_values(result)
    examples = examples_of_a_step(examples, samples)
    if steps:
        summary.step_seconds = stats.interval(list(steps.values()))
        summary.step_seconds_mean = stats.arithmetic(list(stats.process_values(result, stats.mean).values()))
        if examples:
            summary.examples_per_second = examples / summary.step_seconds.value
    latency = [t for s in samples for t in s.latency]
    if latency:
        import numpy as np

        summary.step_seconds_p50, summary.step_seconds_p90, summary.step_seconds_p99 = (
            float(each) for each in np.percentile(latency, (50, 90, 99))
        )
    facts = stats.facts(samples)
    flops = facts.flops_formula or facts.flops_per_step
    if flops and summary.step_seconds:
        summary.flops_per_step = flops
        summary.flops_per_second = flops / summary.step_seconds.value
    if result.price is not None and summary.step_seconds_mean is not None:
        summary.cost_per_1000_steps = result.price.per_hour / 3600 * 1000 * summary.step_seconds_mean.value
    _series(samples, summary)
    result.summary = summary
    total = total_steps or facts.total_steps
    measured = result.projection.full_training if result.projection else None
    result.projection = _projection(result, done, int(total), measured) if total and steps else None


def examples_of_a_step(examples: int | None, samples: Sequence[ProcessSample]) -> int | None:
    """Those of a batch, or all that there are where a batch asks for more; none where a step has none."""
    if not examples:
        return None
    epoch = stats.facts(samples).epoch
    return min(examples, epoch.remainder) if epoch and epoch.batches == 0 and epoch.remainder else examples


def _series(samples: Sequence[ProcessSample], summary: Summary) -> None:
    """Times of series that are not the step, their floors subtracted within each process."""
    values: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    for sample in samples:
        times = {x.name: stats.median(x.blocks) for x in sample.series if x.blocks}
        for series in sample.series:
            if series.name == "step" or series.name not in times:
                continue
            floor = times.get(series.floor, 0.0) if series.floor else 0.0
            values.setdefault(series.name, []).append(max(0.0, times[series.name] - floor))
            if series.bytes:
                sizes[series.name] = series.bytes
    for name, found in values.items():
        summary.series[name] = stats.arithmetic(found)
        if name in sizes and summary.series[name].value > 0:
            summary.bytes_per_second[name] = sizes[name] / summary.series[name].value


def _projection(
    result: Result, samples: Sequence[ProcessSample], total: int, measured: FullTraining | None
) -> Projection:
    """Whole training time of each process, by its own phases and its own mean step.

    Build, preparation, tracing, the first step and warm-up as measured; the other steps at the mean of the
    steady blocks; an epoch's end and its partial batch as often as there are epochs. What is waited for there as often
    as short epochs did (`epochs.with_waits`).
    """
    article, cold = [], []
    for sample in samples:
        series = stats.main_series(sample)
        if series is None:
            continue
        phases, epoch = sample.phases, sample.facts.epoch
        mean = stats.mean(series.blocks)
        per_epoch = epochs.steps([sample])
        passes = total / per_epoch if per_epoch else 0
        partial = phases.get("partial_batch") if epoch and epoch.remainder else None
        whole = total - (passes if partial is not None else 0)
        warm_extra = stats.warm_up_extra(sample, mean) if sum(b.steps for b in series.warmup) < whole else 0.0
        seconds = sum(phases.get(name, 0.0) for name in ("build", "prepare", "trace", "first_step"))
        seconds += max(0.0, whole - 1) * mean + warm_extra
        if partial is not None:
            seconds += partial + (passes - 1) * phases.get("partial_batch_again", partial)
        seconds += max(0.0, passes - 1) * phases.get("epoch_end", 0.0)
        article.append(seconds)
        start = sum(phases.get(name, 0.0) for name in ("interpreter", "import", "device_init", "data"))
        cold.append(seconds + start)
    step = result.summary.step_seconds_mean
    (build_and_fit_seconds, waits), (whole_seconds, _) = (
        epochs.with_waits(stats.arithmetic(found), samples, total, step.value if step else 0.0)
        for found in (article, cold)
    )
    return Projection(
        steps=total,
        build_and_fit_seconds=build_and_fit_seconds,
        total_seconds=whole_seconds,
        epoch_end_wait_seconds=waits,
        cost=result.price.per_hour / 3600 * whole_seconds.value if result.price else None,
        full_training=measured,
    )


def truth(result: Result, full: FullTraining) -> None:
    """Puts the measured training beside its projection."""
    if result.projection is None:
        nothing = Interval(value=full.build_and_fit_seconds), Interval(value=full.total_seconds)
        result.projection = Projection(steps=full.steps, build_and_fit_seconds=nothing[0], total_seconds=nothing[1])
    result.projection.full_training = full
    end = result.summary.phases.get("epoch_end")
    usual = end.value if end else 0.0
    waits = [seconds - usual for seconds in full.epoch_ends if seconds > max(LONG_END, 4 * usual)]
    if not waits:
        return
    rest, projection = full.build_and_fit_seconds - sum(waits), result.projection
    short = (projection.build_and_fit_seconds.value - projection.epoch_end_wait_seconds) / rest - 1
    add_warning(
        result,
        "epoch-end",
        f"the training stood still for {sum(waits):.1f} s at {len(waits)} of its {len(full.epoch_ends)} epochs' ends, "
        f"where {projection.epoch_end_wait_seconds:.1f} s were projected, which is a matter of chance; "
        f"without either, it took {rest:.0f} s (projected {short:+.1%})",
        "tf.data may end an iterator only when its autotuning wakes up next: after 10 ms, then after twice as long "
        "each time, a minute at most. `autotune.enabled = False` in the dataset's options switches it off.",
    )


def compare_answers(results: Sequence[Result]) -> None:
    """The first steps' answers must agree among processes, and among a group's specs that compute the same."""
    bases: list[tuple[Result, ProcessSample]] = []
    for result in results:
        answered = same_answer.answered(result)
        if not answered:
            continue
        sample = answered[0]
        if not all(same_answer.agree(sample, other) for other in answered[1:]):
            message = "processes with the same seed did not compute the same first losses"
            add_warning(result, "same-answer", message, "Use --deterministic to see whether that makes them agree.")
        base = next(((r, s) for r, s in bases if same_answer.same_computation(r, result)), None)
        if base is None:
            bases.append((result, sample))
        elif not same_answer.agree(base[1], sample):
            mine, other = (", ".join(f"{v:.6g}" for v in s.first_losses) for s in (sample, base[1]))
            whose = f"{base[0].spec.backend}, {base[0].spec.loop}"
            message = f"its first answers ({mine}) are not those of {whose} ({other})"
            result.failure = Failure(
                kind="same-answer",
                message=message,
                hint="The two do not compute the same, so their times can't be compared.",
            )
            result.status = "failed"


def add_warning(result: Result, key: str, message: str, fix: str = "") -> None:
    """Adds a warning, of each key one."""
    if all(w.key != key for w in result.warnings):
        result.warnings.append(ResultWarning(key=key, message=message, fix=fix))


def warn(result: Result) -> None:
    """What makes this result doubtful, each with what to do about it."""
    samples = stats.usable(result)
    for note in dict.fromkeys(n for s in samples for n in s.notes):
        if note not in result.notes:
            result.notes.append(note)
    placement = result.placement
    if placement is not None and placement.misplaced:
        names = ", ".join(f"{o.op} '{o.name}' on {o.device}" for o in placement.misplaced[:5])
        fix = "Look for tf.device, strings, py_function or int32 in the step."
        add_warning(result, "misplaced", f"{placement.reason}: {names}", fix)
    facts = stats.facts(samples)
    became = facts.jit_compile
    if result.spec.xla is not None and became is not None and became != result.spec.xla:
        asked, how = ("on", "without") if result.spec.xla else ("off", "with")
        message = f"--xla {asked} changed nothing: the program's own loop runs its steps {how} XLA"
        add_warning(result, "xla", message, "Say it in the program, @tf.function(jit_compile=…), or use --loop step.")
    if not result.interleaved:
        message = "memory does not hold all workers at once, so whole processes took turns instead of blocks"
        add_warning(result, "not-interleaved", message, "Compare fewer specs at a time, or take a smaller data set.")
    unsettled = sum(any(not x.settled for x in s.series) for s in samples)
    if unsettled:
        message = f"{unsettled} of {len(samples)} processes never settled: their steps went on getting faster or slower"
        add_warning(result, "unsettled", message, "Close other programs, or fix the CPU's clock.")
    _warn_machine(result, [s.telemetry for s in samples if s.telemetry])
    if capabilities(result.spec.backend).gpu and result.environment.host.deployment.shared_gpu:
        message = "this pool may run on a GPU that others use at the same time (allowSharedGpu)"
        add_warning(
            result, "shared-gpu", message, "Take its figures for nobody's; for your own, a GPU that is not shared."
        )
    _warn_target(result)
    epochs.note(result, samples)
    counted, formula = facts.flops_per_step, facts.flops_formula
    if counted and formula and not 0.8 <= counted / formula <= 1.25:
        result.notes.append(
            f"TensorFlow counts {counted:.3g} operations in the step's unoptimised graph; "
            f"by formula it needs {formula:.3g}, which FLOP/s is computed from."
        )


def _warn_target(result: Result) -> None:
    stop = result.stop
    if stop and stop.target is not None and not stop.settled and stop.reason in ("max-time", "max-processes"):
        known = f"to {stop.error:.1%}" if stop.error is not None else "from one process only"
        if stop.error_of == "ratio":
            message = f"a verdict is not settled: a ratio is known {known}, and {stop.reason} ended the run"
        else:
            message = f"the step is known {known}, not to {stop.target:.0%}: {stop.reason} ended the run"
        wider = "--threshold" if stop.error_of == "ratio" else "--target-error"
        more = _more(stop)
        fix = f"Use {more}, or a larger {wider}."
        if more is None:
            fix = f"It would take more than a day: use a quieter machine, or a larger {wider}."
        add_warning(result, "target", message, fix)


def _more(stop: Stop) -> str | None:
    """The option that would let the target be reached: as many trials as are known to be needed, else twice as many.

    Where their cap ended the run, intervals shrink by the square root of their number. None where it would take more
    than a day.
    """
    timed = stop.reason == "max-time"
    missed = stop.error / stop.target if stop.error and stop.target else 1.0
    times = max(2.0, 1.1 * (stop.needed_trials or 0) / stop.trials if timed else missed**2)
    seconds = (stop.seconds or 0.0) * times
    if seconds > DAY:
        return None
    if timed:
        return f"--max-time {written_seconds(60 * max(10, math.ceil(seconds / 60)))}"
    return f"--max-processes {max(5, math.ceil(stop.trials * times))}"


def _warn_machine(result: Result, telemetry: Sequence[Telemetry]) -> None:
    wall = sum(t.wall_seconds for t in telemetry)
    if not wall:
        return
    had = wall * result.spec.threads.intra  # what is throttled is added up over CPUs
    throttled = min(had, sum(t.throttled_seconds or 0.0 for t in telemetry))
    stolen = sum(t.stolen_seconds or 0.0 for t in telemetry)
    if throttled > 0.01 * had:
        message = f"the CPU quota held the program's threads back for {throttled / had:.0%} of the time"
        add_warning(result, "throttled", message, "Give it whole CPUs: --cpus=4, or requests = limits in Kubernetes.")
    if stolen > 0.02 * wall:
        message = f"the hypervisor gave {stolen / wall:.0%} of a CPU's time to other machines"
        add_warning(result, "stolen", message, "Measure on a machine of your own, or compare within one run.")
    loads = [t.load_before for t in telemetry if t.load_before is not None]
    cpus = result.spec.threads.intra
    if loads and loads[0] > 0.5 * cpus:
        message = f"the machine was busy before the run: load {loads[0]:.1f} on {cpus} CPUs"
        add_warning(result, "load", message, "Close other programs and run again.")
    clocks = [t.gpu_sm_clock_spread for t in telemetry if t.gpu_sm_clock_spread is not None]
    if clocks and max(clocks) > 0.1:
        message = f"the GPU's clock moved by {max(clocks):.0%} while steps were measured"
        add_warning(result, "clocks", message, "Let it warm up, or lock the clocks: nvidia-smi -lgc.")
    warmed = [t.gpu_temperature_rise_celsius for t in telemetry if t.gpu_temperature_rise_celsius is not None]
    if warmed and max(warmed) > 5:
        message = f"the GPU became {max(warmed):.0f} °C warmer while steps were measured"
        add_warning(result, "temperature", message, "Let it warm up, or measure for longer: --max-time 10m.")
