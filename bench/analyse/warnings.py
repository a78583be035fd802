"""Warnings and notes: reasons to trust a result less, each with its fix.

A warning's message is shown after "warning:", so it starts in lower case and has no full stop. Its fix is a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.analyse import epoch_waits
from bench.analyse.samples import merged_facts, usable_samples
from bench.analyse.throttled_time import throttled_time
from bench.analyse.training_time import lacks_validation
from bench.backends import capabilities
from bench.config.syntax import write_seconds
from bench.machine.gpu import BUSY_SHARE
from bench.machine.limits import WHOLE_CPUS
from bench.model.interval import uncertainty
from bench.model.placement import Placement
from bench.model.result import Result, ResultWarning, Stop
from bench.model.sample import ProcessSample
from bench.model.telemetry import Telemetry
from bench.model.words import count

DAY_SECONDS = 86_400
"""Longest run that a fix suggests."""

DISTURBANCES = ("load", "stolen", "throttled", "unsettled", "gpu-busy", "clocks", "temperature")
"""Keys of the warnings about what disturbs a measurement."""

NAMED_OPERATIONS = 5
"""Largest number of misplaced operations that a warning names."""


def add_warning(result: Result, key: str, message: str, fix: str = "") -> None:
    """Add a warning, unless the result has one with this key."""
    if all(warning.key != key for warning in result.warnings):
        result.warnings.append(ResultWarning(key=key, message=message, fix=fix))


def add_warnings(result: Result) -> None:
    """Add all warnings and notes to a result that is otherwise final."""
    samples = usable_samples(result)
    for note in (note for sample in samples for note in sample.notes):
        result.add_note(note)
    if result.placement is not None and result.placement.misplaced:
        _add_placement_warning(result, result.placement)
    _add_xla_warning(result, samples)
    _add_settings_warning(result, samples)
    _add_steadiness_warnings(result, samples)
    quota = throttled_time(result, samples)
    if quota is not None:
        add_warning(result, "throttled", quota.message, WHOLE_CPUS)
    _add_disturbance_warnings(result, [sample.telemetry for sample in samples if sample.telemetry])
    if capabilities(result.spec.backend).gpu and result.environment.host.deployment.shared_gpu:
        message = "timings may include other tenants' work, because the pool allows a shared GPU (allowSharedGpu)"
        add_warning(result, "shared-gpu", message, "Use a dedicated GPU.")
    _add_early_end_warning(result)
    projection = result.projection
    if projection and not projection.full_training and result.purpose == "run" and lacks_validation(samples):
        message = "the projection lacks the validations of fit, because they were not timed"
        add_warning(result, "validation", message, "To time the whole training, use --full.")
    if result.stop is not None:
        _add_target_warning(result, result.stop)
    epoch_waits.add_note(result, samples)
    _add_flops_note(result, samples)


def _add_placement_warning(result: Result, placement: Placement) -> None:
    names = ", ".join(
        f"{operation.op} '{operation.name}' on {operation.device}"
        for operation in placement.misplaced[:NAMED_OPERATIONS]
    )
    fix = "Look for tf.device, strings, py_function or int32 in the step."
    add_warning(result, "misplaced", f"{placement.reason}: {names}", fix)


def _add_xla_warning(result: Result, samples: Sequence[ProcessSample]) -> None:
    requested, compiled = result.spec.xla, merged_facts(samples).jit_compile
    option, how = ("on", "without") if requested else ("off", "with")
    own_loop = result.recognition is not None and result.recognition.chosen.kind != "fit"
    if requested is not None and own_loop and result.spec.loop == "as-written":
        message = f"--xla {option} had no effect: the script's own loop decides whether XLA compiles its steps"
        add_warning(result, "xla", message, "Set jit_compile in the script's @tf.function.")
    if requested is None or compiled is None or compiled == requested:
        return
    message = f"--xla {option} had no effect: the program's own loop runs its steps {how} XLA"
    add_warning(result, "xla", message, "Set jit_compile in the program's @tf.function, or use --loop step.")


def _add_settings_warning(result: Result, samples: Sequence[ProcessSample]) -> None:
    chosen = merged_facts(samples).script_settings
    if chosen:
        message = f"the script sets by itself: {'; '.join(chosen)}"
        add_warning(result, "script-settings", message, "Remove it from the script, or ask for the same in the run.")


def _add_steadiness_warnings(result: Result, samples: Sequence[ProcessSample]) -> None:
    if not result.interleaved:
        message = "the workers do not all fit into memory, so whole processes alternated instead of blocks"
        add_warning(result, "not-interleaved", message, "Compare fewer specs at a time, or use a smaller data set.")
    unsettled = sum(any(not series.settled for series in sample.series) for sample in samples)
    if unsettled:
        message = f"{unsettled} of {len(samples)} processes never settled: their steps kept getting faster or slower"
        add_warning(result, "unsettled", message, "Close other programs, or set a constant CPU frequency.")


def _add_disturbance_warnings(result: Result, telemetry: Sequence[Telemetry]) -> None:
    wall = sum(t.wall_seconds for t in telemetry)
    if not wall:
        return
    threads = result.spec.threads.intra
    cpus = result.environment.host.cpu.logical_cores or threads
    stolen = sum(t.stolen_seconds or 0.0 for t in telemetry)
    if stolen > 0.02 * wall:
        message = f"the hypervisor gave {stolen / wall:.0%} of a CPU's time to other virtual machines"
        add_warning(result, "stolen", message, "Use a dedicated machine, or compare within one run.")
    loads = [t.load_before for t in telemetry if t.load_before is not None]
    if loads and loads[0] > cpus - 0.5 * threads:
        message = f"the machine was busy before the run: load average {loads[0]:.1f} on {count(cpus, 'CPU')}"
        add_warning(result, "load", message, "Close other programs and run again.")
    busy = [t.gpu_utilization_before for t in telemetry if t.gpu_utilization_before is not None]
    if busy and busy[0] > BUSY_SHARE:
        message = f"the GPU was busy before the run, for {busy[0]:.0%} of the time"
        fix = "End the other programs that use it (`nvidia-smi` lists them), or choose another GPU."
        add_warning(result, "gpu-busy", message, fix)
    clocks = [t.gpu_sm_clock_spread for t in telemetry if t.gpu_sm_clock_spread is not None]
    if clocks and max(clocks) > 0.1:
        message = f"the GPU's clock varied by {max(clocks):.0%} during the measurement"
        add_warning(result, "clocks", message, "Let the GPU warm up, or lock its clocks with `nvidia-smi -lgc`.")
    rises = [t.gpu_temperature_rise_celsius for t in telemetry if t.gpu_temperature_rise_celsius is not None]
    if rises and max(rises) > 5:
        message = f"the GPU became {max(rises):.0f} °C warmer during the measurement"
        add_warning(result, "temperature", message, "Let the GPU warm up, or measure for longer: --max-time 10m.")


def _add_early_end_warning(result: Result) -> None:
    projection = result.projection
    if projection is None or projection.planned_steps is None or projection.steps >= projection.planned_steps:
        return
    message = f"the training stopped by itself after {projection.steps:,} of {projection.planned_steps:,} steps"
    fix = "The projection is for these steps. Where a training stops can depend on the device and on the seed."
    add_warning(result, "stopped", message, fix)


def _add_target_warning(result: Result, stop: Stop) -> None:
    if stop.target is None or stop.settled or stop.reason not in ("max-time", "max-processes") or not stop.trials:
        return
    once = "trial" if stop.error_of == "ratio" else "process"
    precision = f"was measured in only one {once}" if stop.error is None else f"is {uncertainty(stop.error)}"
    if stop.error_of == "ratio":
        option, message = (
            "--threshold",
            f"--{stop.reason} ended the run before every verdict settled: the ratio {precision}",
        )
    else:
        option = "--target-error"
        message = f"--{stop.reason} ended the run before its target of ±{stop.target:.0%}: the step time {precision}"
    cap = _sufficient_cap(stop)
    fix = f"Use {cap}, or a larger {option}."
    if cap is None:
        goal = "Settling every verdict" if stop.error_of == "ratio" else "Reaching the target"
        fix = f"{goal} would take more than a day. Use a quieter machine, or a larger {option}."
    add_warning(result, "target", message, fix)


def _sufficient_cap(stop: Stop) -> str | None:
    """Return the option with which the target can be reached.

    If the time limit ended the run, the new limit allows a tenth more trials than the last estimate says are needed. If
    the limit of processes ended it, the new limit grows with the square of the error, because an interval shrinks with
    the square root of the number of trials. The new limit is at least twice what the run used.

    Returns:
        The option. None if the run would take more than a day.
    """
    timed = stop.reason == "max-time"
    excess = stop.error / stop.target if stop.error and stop.target else 1.0
    times = max(2.0, 1.1 * (stop.needed_trials or 0) / stop.trials if timed else excess**2)
    seconds = (stop.seconds or 0.0) * times
    if seconds > DAY_SECONDS:
        return None
    if timed:
        return f"--max-time {write_seconds(60 * max(10, math.ceil(seconds / 60)))}"
    return f"--max-processes {max(5, math.ceil(stop.trials * times))}"


def _add_flops_note(result: Result, samples: Sequence[ProcessSample]) -> None:
    facts = merged_facts(samples)
    tensorflow_count, formula = facts.flops_per_step, facts.flops_formula
    if tensorflow_count and formula and not 0.8 <= tensorflow_count / formula <= 1.25:
        result.notes.append(
            f"FLOP/s is computed from the workload's formula: {formula:.3g} operations per step. "
            f"TensorFlow counts {tensorflow_count:.3g} in the unoptimized graph."
        )
