"""The errors of a script without the steps that devbench looked for."""

from __future__ import annotations

from collections.abc import Sequence

from bench.errors import WorkloadError
from bench.model.recognition import StepSource
from bench.worker.script.calls import ScriptCall


class NothingRecognized(WorkloadError):
    """No step was found in the script."""


def no_steps(
    name: str,
    sources: Sequence[StepSource],
    watch: int | None,
    reason: str,
    state: str,
    is_module: bool = False,
    fits: Sequence[tuple[ScriptCall, int]] = (),
) -> NothingRecognized:
    """Return the error of a script without the step that was looked for.

    Args:
        name: the script's name.
        sources: the loops that were seen.
        watch: number of the loop that the user chose, from 1. None if the user chose none.
        reason: why no step can be recognized, as a clause. Empty if that is not known.
        state: how the script ended, as a clause such as "it ended after 2.1 s".
        is_module: whether the name is that of a module.
        fits: the lines that called `fit`, which ran no step, with the number of calls.
    """
    if watch is not None and sources:
        listed = "\n".join(f"{n}  {_steps(source)}: {source.place}" for n, source in enumerate(sources, 1))
        return NothingRecognized(f"{name} has no loop number {watch}; {state}", f"Its loops:\n{listed}")
    clauses = [f"no training step found in {name}", state]
    if reason:
        clauses.append(reason)
    clauses += [without_step(call, count) for call, count in fits]
    program = f"-m {name}" if is_module else name
    if fits:
        hint = "Let fit run steps. Its data must not be empty, and epochs must be larger than initial_epoch."
    else:
        hint = (
            "devbench recognizes Keras' fit, train_on_batch, evaluate and predict, updates by an optimizer, gradients "
            "of an eager tape, calls of a model or a tf.function, and sessions of tf.compat.v1. It does not look into "
            "other processes.\n"
            f"If the script needs arguments to train: devbench run {program} -- ARGUMENTS"
        )
    return NothingRecognized("; ".join(clauses), hint)


def without_step(call: ScriptCall, count: int) -> str:
    """Return a clause about calls of `fit` that ran no step.

    Args:
        call: the line that called it.
        count: number of calls.
    """
    calls = "1 call of fit was" if count == 1 else f"{count} calls of fit were"
    place = f" ({call.file}, line {call.line})" if call.file else ""
    return f"{calls} seen{place}, without a step"


def _steps(source: StepSource) -> str:
    return f"{source.steps} step{'' if source.steps == 1 else 's'}"
