"""The same-answer check: whether specs compute the same, by the losses of their first steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.analyse.samples import usable_samples
from bench.analyse.warnings import add_warning
from bench.model.failure import Failure
from bench.model.result import Result
from bench.model.sample import ProcessSample
from bench.model.spec import IGNORED, ROLES, Workers

TOLERANCES = {"exact": 2e-3, "reduced": 5e-2}
"""Largest relative difference of first losses that is allowed. exact: sums in another order; reduced: fewer bits."""

COMPUTATION = {name for name, role in ROLES.items() if role.computation}
"""Fields of a spec that determine the computation, besides the loop."""


def check_same_answer(results: Sequence[Result]) -> None:
    """Compare first losses within each result, and among the specs of a group that compute the same.

    A result whose processes differ gets a warning. A result that differs from another spec fails.
    """
    bases: list[tuple[Result, ProcessSample]] = []
    for result in results:
        samples = samples_with_losses(result)
        if not samples:
            continue
        sample = samples[0]
        if not all(losses_agree(sample, other) for other in samples[1:]):
            message = "processes with the same seed computed different first losses"
            add_warning(result, "same-answer", message, "Check whether they agree with --deterministic.")
        base = next(((r, s) for r, s in bases if same_computation(r, result)), None)
        if base is None:
            bases.append((result, sample))
        elif result.failure is None and not losses_agree(base[1], sample):
            own, others = (", ".join(f"{loss:.6g}" for loss in s.first_losses) for s in (sample, base[1]))
            result.failure = Failure(
                kind="same-answer",
                message=f"its first losses ({own}) differ from those of {_place(base[0])} ({others})",
                hint="The two specs do not compute the same, so their times cannot be compared.",
            )
            result.status = "failed"


def _place(result: Result) -> str:
    """Return where a result ran, and how."""
    spec = result.spec
    return ", ".join([spec.backend, spec.loop, *([spec.workers.label] if spec.workers else [])])


def samples_with_losses(result: Result) -> list[ProcessSample]:
    """Return the usable samples that have first losses."""
    return [sample for sample in usable_samples(result) if sample.first_losses]


def same_computation(a: Result, b: Result) -> bool:
    """Return whether two specs must give the same first losses.

    A program as written may shuffle or reuse its inputs, so `as-written` is only compared with itself. Workers that
    share each batch and reduce their gradients compute what one worker computes.
    """
    if _divided(a.spec.workers) != _divided(b.spec.workers):
        return False
    left, right = (result.spec.model_dump(include=COMPUTATION, exclude=IGNORED) for result in (a, b))
    if left != right:
        return False
    return a.spec.loop == b.spec.loop or "as-written" not in (a.spec.loop, b.spec.loop)


def _divided(workers: Workers | None) -> Workers | None:
    """Return the workers of a spec if together they compute something else than one worker. None if they do not."""
    if workers is None or workers.count == 1 or (workers.reduce and workers.scaling == "strong"):
        return None
    return workers.model_copy(update={"cpus": None})


def losses_agree(a: ProcessSample, b: ProcessSample) -> bool:
    """Return whether first losses agree within the tolerance. On a GPU, products may use fewer bits (TF32)."""
    classes = {a.loss_precision, b.loss_precision}
    if "changed" in classes:
        return True
    gpu = any(s.placement is not None and s.placement.requested_device.startswith("GPU") for s in (a, b))
    tolerance = TOLERANCES["reduced" if gpu or "reduced" in classes else "exact"]
    return all(
        abs(x - y) <= tolerance * max(abs(x), abs(y), 1e-6)
        for x, y in zip(a.first_losses, b.first_losses, strict=False)
    )


def equal_losses(a: Sequence[float], b: Sequence[float]) -> bool:
    """Return whether the first losses of two different programs are equal within the exact tolerance."""
    return all(math.isclose(x, y, rel_tol=TOLERANCES["exact"], abs_tol=1e-8) for x, y in zip(a, b, strict=False))
