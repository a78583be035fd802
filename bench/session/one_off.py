"""One-off workers, started after the trials: the full training, and a trace by TensorFlow's profiler."""

from __future__ import annotations

import re
from pathlib import Path

from bench.analyse.projection import add_full_training
from bench.analyse.warnings import add_warning
from bench.errors import DevbenchError, OutputError
from bench.model.failure import Failure
from bench.model.result import Result
from bench.session.launch import Launcher
from bench.session.worker_process import WorkerEnded

TRACED_SECONDS = 1.0
FEWEST_STEPS, MOST_STEPS = 5, 50
"""Bounds of the number of steps in a trace. A longer trace is too large for the pages that show it."""


def train(launcher: Launcher, result: Result) -> None:
    """Run the whole program of a result's spec once (`--full`) and add its time to the projection.

    If that fails, the result fails, and keeps what its trials measured.
    """
    try:
        worker = launcher.start(result, full=True)
    except OutputError:  # there is no place for results
        raise
    except DevbenchError as error:
        message = f"the whole training (--full) failed: {error.message}"
        result.failure = Failure(kind="error", message=message, hint=error.hint)
        return
    try:
        worker.train()
    except WorkerEnded as ended:
        worker.fail(ended.failure)
        message = f"the whole training (--full) failed: {ended.failure.message}"
        result.failure = ended.failure.model_copy(update={"message": message})
    finally:
        result.samples.remove(worker.sample)  # it has no blocks, and its start is not one of a trial
    if worker.sample.full_training is not None:
        add_full_training(result, worker.sample.full_training)


def profile(launcher: Launcher, result: Result, folder: Path) -> None:
    """Trace some steps into a folder (`--profile`). If that fails, the result has a warning."""
    step = result.summary.step_seconds
    if step is None:
        result.notes.append("No profile: a profile traces steps, and this workload times several operations instead.")
        return
    steps = max(FEWEST_STEPS, min(MOST_STEPS, round(TRACED_SECONDS / step.value)))
    spec = result.spec
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{spec.title}-{spec.backend}-{spec.loop}").strip(".-")
    try:
        worker = launcher.start(result)
    except OutputError:  # there is no place for results
        raise
    except DevbenchError as error:
        add_warning(result, "profile", f"no profile: {error.message}", error.hint)
        return
    try:
        worker.set_up()
        worker.warm_up()
        result.profile = worker.profile(folder / f"{name}-{result.id}", steps)
    except WorkerEnded as ended:
        worker.fail(ended.failure)
        add_warning(result, "profile", f"no profile: {ended.failure.brief}", ended.failure.hint)
    finally:
        result.samples.remove(worker.sample)
