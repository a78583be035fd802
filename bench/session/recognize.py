"""Before the trials of a script, one process finds out what its steps are."""

from __future__ import annotations

import math
from pathlib import Path

from bench.model.facts import Facts
from bench.model.failure import Failure
from bench.model.recognition import Recognition
from bench.model.result import Result
from bench.model.spec import Env, Spec
from bench.session.launch import Launcher

FEWEST_CALLS = 7
"""Fewest calls that a script needs. The first five are synchronized one by one, for the same-answer check."""

SCOUT_SECONDS = 10.0
"""Seconds after its first step for which a script runs so that its steps become known, unless it ends earlier."""


def recognize(launcher: Launcher, results: list[Result]) -> dict[str, Facts]:
    """Find out how the steps of each script are recognized, unless that is known.

    Results of the same script share what was found. A result whose script has no steps fails. Another failure may be
    due to the backend or the environment, so results that differ in these do not share it.

    Args:
        launcher: Starts the processes.
        results: The results of a session.

    Returns:
        What they saw in the steps, by the key of the result.
    """
    seen: dict[str, Facts] = {}
    known: dict[str, Result] = {}
    for result in results:
        spec = result.spec
        if spec.script is None or result.failure is not None or result.recognition is not None:
            continue
        program = f"{spec.file} {spec.script.model_dump_json()} {spec.params}"
        earlier = known.get(program)
        if earlier is not None and (_is_of_script(earlier) or _place(earlier) == _place(result)):
            result.recognition, result.failure = earlier.recognition, earlier.failure
            continue
        known[program] = result
        worker = launcher.start(result, scout_seconds=SCOUT_SECONDS)
        with launcher.guard(result, worker):
            result.recognition = worker.recognize()
            result.failure = _too_few(result.recognition)
        if result.failure is not None and result.failure.kind == "hung":
            result.failure = _without_a_step(result.failure, spec)
        result.samples.remove(worker.sample)
        seen[result.key] = worker.sample.facts
        for note in worker.sample.notes:
            result.add_note(note)
    return seen


def _is_of_script(result: Result) -> bool:
    """Return whether what was found is due to the script alone."""
    return result.failure is None or result.failure.kind == "workload"


def _place(result: Result) -> tuple[str, Env | None]:
    return result.spec.backend, result.spec.env


def _without_a_step(hung: Failure, spec: Spec) -> Failure:
    """Return the failure of a script that ran without a step until it was ended."""
    name = spec.script.module if spec.script and spec.script.module else Path(spec.file or "").name
    return hung.model_copy(update={"message": f"no training step found in {name}: {hung.message}"})


def _too_few(recognition: Recognition) -> Failure | None:
    """Return the failure of a script that ended before its steps could be timed. None if it had enough."""
    chosen = recognition.chosen
    if not recognition.ended or chosen.calls >= FEWEST_CALLS:
        return None
    per_call = math.ceil(chosen.steps / max(1, chosen.calls))
    count = {0: "no complete step", 1: "only one step"}.get(chosen.steps, f"{chosen.steps} steps")
    if per_call > 1:
        count += f" in {chosen.calls} calls" if chosen.calls > 1 else " in one call"
    unit = "calls" if per_call > 1 else "steps"
    return Failure(
        kind="workload",
        message=f"too few steps to time: the script has {count} ({chosen.place}) and ended after "
        f"{recognition.seconds:.1f} s",
        hint=f"devbench needs at least {FEWEST_CALLS} {unit}. Let the script train, or infer, for longer.",
        phase="recognition",
    )
