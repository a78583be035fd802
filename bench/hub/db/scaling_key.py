"""The scaling key: what the runs of a program with different numbers of workers have in common."""

from __future__ import annotations

from bench.model.spec import Spec


def scaling_key(spec: Spec) -> str:
    """Return 16 hex digits that name a program, whatever the number and the scaling of its workers."""
    if spec.workers is None:
        return spec.program_key
    one = spec.workers.model_copy(update={"count": 1, "scaling": "strong"})
    return spec.model_copy(update={"workers": one}).program_key
