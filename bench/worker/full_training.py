"""`--full`: run the whole program as its user runs it, timed from outside. Worker's side only."""

from __future__ import annotations

import contextlib
from typing import Any

from bench.errors import NotApplicable
from bench.worker import loops
from bench.worker.batches import fit_arguments
from bench.worker.failure import short_text
from bench.worker.protocol import Note
from bench.worker.rig import Rig, steps_of_training
from bench.worker.step_counter import StepCounter
from bench.worker.timed_loop import Finished


def train(rig: Rig, counter: StepCounter) -> Any:
    """Train to the end and synchronize. Return what the program's own training returned, such as a `History`, or None.

    Raises:
        NotApplicable: the length of the training is not known, or it has no step.
    """
    returned = _run(rig, counter)
    if not counter.steps_run:
        raise loops.no_step(rig)
    counter.sync(counter.last_value)
    return returned


def _run(rig: Rig, counter: StepCounter) -> Any:
    as_written = rig.spec.loop == "as-written"
    if as_written and rig.has("as_written") and not rig.yields:
        return rig.call("as_written")
    fits = rig.spec.loop == "fit" or (as_written and not rig.has("as_written"))
    if fits and rig.compiled and rig.data is not None:
        with rig.scope():
            return rig.model.fit(**fit_arguments(rig, shuffle=as_written), epochs=getattr(rig.p, "epochs", 1))
    counter.limit = steps_of_training(rig)
    if counter.limit is None:
        message = f"the length of the whole training of {rig.spec.workload} is not known"
        raise NotApplicable(message, "Define `total_steps(p)`, or run without --full.")
    with contextlib.suppress(Finished):
        loops.LOOPS[rig.spec.loop](rig, counter)
    return None


def final_metrics(rig: Rig, returned: Any, counter: StepCounter) -> dict[str, float]:
    """Return the final metrics, such as loss and accuracy: those of the last epoch or step, and those of `evaluate`.

    If `evaluate` fails, the result gets a note, because the training is already over.
    """
    metrics = {}
    if hasattr(returned, "history"):
        last = {key: values[-1] for key, values in returned.history.items() if values}
        metrics = {key: float(value) for key, value in last.items() if not len(getattr(value, "shape", ()))}
    elif rig.data is not None and counter.last_value is not None:  # a step on examples returns its loss
        metrics = {"loss": counter.loss(counter.last_value)}
    if rig.has("evaluate"):
        try:
            metrics.update({key: float(value) for key, value in rig.call("evaluate").items()})
        except Exception as error:
            rig.send(Note(text=f"evaluate failed: {short_text(error)}"))
    return metrics
