"""The errors of a script without the steps that devbench looked for."""

from __future__ import annotations

from collections.abc import Sequence

from bench.errors import WorkloadError
from bench.model.recognition import StepSource
from bench.worker.script.scout import unrecognized


class NothingRecognized(WorkloadError):
    """No step was found in the script."""


def no_steps(
    name: str, sources: Sequence[StepSource], watch: int | None, reason: str, state: str, is_module: bool = False
) -> NothingRecognized:
    """Return the error of a script without the step that was looked for.

    Args:
        name: the script's name.
        sources: the loops that were seen.
        watch: number of the loop that the user chose, from 1. None if the user chose none.
        reason: why no step can be recognized, as a clause. Empty if that is not known.
        state: how the script ended, as a clause such as "it ended after 2.1 s".
        is_module: whether the name is that of a module.
    """
    if watch is not None and sources:
        listed = "\n".join(f"{n}  {source.steps} steps: {source.place}" for n, source in enumerate(sources, 1))
        return NothingRecognized(f"{name} has no loop number {watch}; {state}", f"Its loops:\n{listed}")
    clauses = [f"no training step found in {name}", state]
    if reason:
        clauses.append(reason)
    if seen := unrecognized(sources):
        clauses.append(f"{seen} were seen")
    program = f"-m {name}" if is_module else name
    hint = (
        "devbench recognizes Keras' fit, train_on_batch, evaluate and predict, updates by an optimizer, calls of "
        "a model or a tf.function, and sessions of tf.compat.v1. It does not look into other processes.\n"
        f"If the script needs arguments to train: devbench run {program} -- ARGUMENTS"
    )
    return NothingRecognized("; ".join(clauses), hint)
