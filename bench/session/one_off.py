"""What one more process is started for, after the measured ones: the whole training, and a profiler's trace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from bench.analyse import summary
from bench.model.result import Result
from bench.session.worker_process import WorkerEnded

if TYPE_CHECKING:
    from bench.session.session import Session

TRACED_SECONDS = 1.0
FEWEST, MOST = 5, 50
"""Steps of a trace; more would make it too large for the pages that show it."""


def train(session: Session, result: Result) -> None:
    """`--full`: the whole program of a result's spec, once; what it took stands beside its projection."""
    worker = session.start(result, full=True)
    if worker is None:
        return
    with session.guarded(result, worker):
        worker.train()
    result.samples.remove(worker.sample)
    if worker.sample.full is not None:
        summary.truth(result, worker.sample.full)


def profile(session: Session, result: Result, folder: Path) -> None:
    """`--profile`: a trace of some steps in the folder; if there is none the result says why and stays as it is."""
    step = result.summary.step_seconds
    if step is None:
        result.notes.append("no profile: it traces steps, and this workload times several things one by one")
        return
    steps = max(FEWEST, min(MOST, round(TRACED_SECONDS / step.value)))
    spec = result.spec
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{spec.title}-{spec.backend}-{spec.loop}").strip(".-")
    own = folder / f"{name}-{result.id}"
    worker = session.begin(result)
    try:
        worker.set_up()
        worker.warm_up()
        result.profile = worker.profile(own, steps)
    except WorkerEnded as ended:
        worker.fail(ended.failure)
        summary.add_warning(result, "profile", f"no profile: {ended.failure.message}", ended.failure.hint)
    result.samples.remove(worker.sample)
