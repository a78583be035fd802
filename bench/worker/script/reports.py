"""What the worker of a script reports: the loops that it counted, a trial, or a whole training."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from bench.errors import NotApplicable
from bench.model.placement import Placement
from bench.model.sample import FullTraining
from bench.worker.protocol import FactsRead, Finish, PlacementChecked, Recognized, Trained
from bench.worker.script import fit_data, fits, settings
from bench.worker.script.nothing_recognized import NothingRecognized, no_steps, without_step
from bench.worker.step_counter import StepCounter

if TYPE_CHECKING:
    from bench.worker.script.script_worker import ScriptWorker

ASIDES = "Work that most steps go without, such as a validation, is no part of a step. A projection contains it."


def report_loops(worker: ScriptWorker, ended: bool) -> None:
    """Report the loops that the scout counted.

    Args:
        worker: the worker.
        ended: whether the script ended by itself.

    Raises:
        NothingRecognized: the script has no step, or not the loop that the user chose.
    """
    assert worker.scout is not None
    recognition = worker.scout.recognition(ended)
    if worker.scout.inspector is not None:
        worker.scout.inspector.end()
    empty = worker.scout.fits_without_step if ended else []
    if recognition is None:
        seconds = time.perf_counter() - worker.began
        state = f"it ended after {seconds:.1f} s" if ended else f"it was stopped after {seconds:.1f} s"
        assert worker.spec.script is not None
        watch, is_module = worker.spec.script.watch, bool(worker.spec.script.module)
        reason = "" if hasattr(worker, "seen") else "it did not import TensorFlow"
        if not reason and not worker.seen.tf.compat.v1.executing_eagerly_outside_functions():
            reason = "it disabled eager execution, so only sessions are recognized"
        raise no_steps(worker.name, worker.scout.sources, watch, reason, state, is_module, empty)
    if not recognition.chosen.trains:
        for call, count in empty:
            worker.note(f"{without_step(call, count)}.")
    if facts := worker.scout.facts(recognition):
        facts.recompiled = worker.compiled_shapes.read(worker.seen.name_of)
        facts.eager_step = worker.updates.eager_steps.names.get(recognition.chosen.token) or None
        worker.channel.send(FactsRead(facts=facts))
    if note := fits.other_keras(worker.seen.tf, recognition.chosen):
        worker.note(note)
    recognition.variables = worker.imports.variables
    worker.channel.send(Recognized(recognition=recognition))


def report_training(worker: ScriptWorker) -> None:
    """Report the whole training (`--full`).

    Raises:
        NothingRecognized: the script did not run the steps.
    """
    counter = worker.timed_loop
    assert isinstance(counter, StepCounter)
    if not counter.steps_run:
        raise _not_run(worker)
    # The script may do other work afterwards.
    end = max(worker.hook.fit_end or 0.0, counter.latest_tick)
    if not worker.synchronous and worker.hook.fit_end is None and counter.steps_run != counter.expected:
        counter.sync(counter.last_value)  # steps may be unfinished, so this work counts too
        end = time.perf_counter()
    full = FullTraining(
        build_and_fit_seconds=end - worker.began - worker.imports.seconds,
        total_seconds=time.time() - worker.start.spawned - (time.perf_counter() - end),
        steps=counter.steps_run,
    )
    full.epoch_ends = counter.epoch_ends(end)
    full.planned_steps = worker.hook.epochs.planned
    worker.channel.send(Trained(full=full))


def report_trial(worker: ScriptWorker, finish: Finish | None, ended: bool) -> None:
    """Report the block that the script left unfinished, if it ended by itself. Then run the diagnosis.

    Args:
        worker: the worker.
        finish: the last order. None if there was none.
        ended: whether the script ended by itself.

    Raises:
        NothingRecognized: the script did not run the steps.
        NotApplicable: a change of the run had no effect.
    """
    if worker.timed_loop is None or worker.watch is None:
        raise NothingRecognized(f"{worker.name} did not import TensorFlow in this process", "Run it again.")
    if not worker.timed_loop.started:
        raise _not_run(worker)
    if ended:
        value = worker.watch.value if worker.hook.model is None else worker.timer.value
        at = worker.watch.done
        if worker.timed_loop.paused:
            at = time.perf_counter()
        worker.hook.epochs.end_run()
        finish = worker.timed_loop.end(value, at)
    if finish is None:  # a step returned NaN, which was reported
        return
    if worker.watch.asides is not None and worker.watch.asides.found is not None:
        worker.rig.facts.asides = worker.watch.asides.found
        worker.note(ASIDES)
    worker.rig.facts.steps_run = worker.timed_loop.steps_run
    worker.rig.facts.script_settings = [
        *settings.differences(worker.rig.tf, worker.spec, worker.memory),
        *worker.seeds.differences(),
        *worker.compiled.named,
        *worker.scopes.named,
    ]
    worker.phases.enter("diagnosis")
    if worker.hook.model is None:
        _diagnose_own_loop(worker, finish)
        return
    from bench.worker.diagnose.diagnosis import diagnose

    worker.rig.facts.batch = fit_data.batch_of(worker.rig.tf, worker.hook.arguments)
    if finish.inspect:
        worker.rig.facts.replay_obstacle = fit_data.obstacle(worker.rig.tf, worker.hook.model, worker.hook.arguments)
    diagnose(worker.rig, worker.hook, worker.timer, worker.timed_loop, worker.synchronizer, worker.tracing, finish)


def _diagnose_own_loop(worker: ScriptWorker, finish: Finish) -> None:
    """Run the diagnosis of a loop other than `fit`."""
    from bench.worker.diagnose import graph_facts, program
    from bench.worker.diagnose.diagnosis import optional

    assert worker.timed_loop is not None
    worker.rig.what_ifs.check()
    if worker.updates.eager_steps.ineffective:
        raise NotApplicable(
            f"--change function has no effect: {worker.name} keeps its step in a variable",
            "Call the function of the step by its name, or put @tf.function in front of it.",
        )
    worker.rig.facts.steps_issued = worker.timed_loop.issued
    program.read_facts(worker.rig, worker.hook, worker.timer, worker.tracing)
    if finish.inspect:
        program.read_retraced(worker.rig.facts, worker.tracing.by_function, worker.tracing.reasons)
        if worker.rig.facts.retraced and worker.watch is not None and worker.watch.traced_calls is not None:
            worker.rig.facts.retracing_share = worker.watch.traced_calls.share()
        graph_facts.read_graphs(worker.rig.facts, worker.tracing.graphs, worker.sources)
        optional("pipeline", worker.rig, lambda: program.read_pipeline(worker.rig, worker.hook, finish.time_stages))
    if worker.placement is not None:
        with contextlib.suppress(Exception):
            placement: Placement = worker.placement.read()
            worker.channel.send(PlacementChecked(placement=placement))
    worker.rig.report_facts()


def _not_run(worker: ScriptWorker) -> NothingRecognized:
    steps = worker.place.target.place if worker.place.target else "its steps"
    return NothingRecognized(
        f"{worker.name} did not run {steps} in this process",
        "Let it do the same in every process. devbench seeds Python, NumPy and TensorFlow.",
    )
