"""The roofline: how close a step comes to what the machine can compute, or to what its memory can move.

S. Williams, A. Waterman, D. Patterson: "Roofline: an insightful visual performance model", 2009. The operations of a
step come from the workload's formula or from TensorFlow's count. The bytes are the least that must move, so the
intensity and the memory's limit are upper bounds.
"""

from __future__ import annotations

import math

from bench.analyse.samples import faster_half, merged_facts, usable_samples
from bench.model.facts import Facts
from bench.model.result import Result
from bench.model.roofline import Peaks, Roofline
from bench.model.series import CACHE_TRIAD, MEMORY_TRIAD, PRODUCT
from bench.model.spec import ROLES

COMPUTE_DTYPE = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}
"""Dtype of the matrix products, for specs whose dtype is a Keras policy."""


def peaks_of(result: Result) -> Peaks | None:
    """Return the peaks that a run of the workload `peaks` measured; None if it measured none.

    The fastest process counts: a peak is what the machine can attain, and noise only lowers it.
    """
    seconds: dict[str, float] = {}
    moved: dict[str, int] = {}
    for sample in usable_samples(result):
        for series in sample.series:
            if series.blocks:
                seconds[series.name] = min(seconds.get(series.name, math.inf), faster_half(series.blocks))
                moved[series.name] = series.bytes or 0
    operations = 2.0 * float(result.spec.params.get("n", 0)) ** 3
    products = {name.removeprefix(PRODUCT): operations / s for name, s in seconds.items() if name.startswith(PRODUCT)}
    if result.failure is not None or not products or MEMORY_TRIAD not in seconds:
        return None
    cache = seconds.get(CACHE_TRIAD)
    return Peaks(
        fingerprint=fingerprint(result),
        flops_per_second=products,
        memory_bytes_per_second=moved[MEMORY_TRIAD] / seconds[MEMORY_TRIAD],
        cache_bytes_per_second=moved[CACHE_TRIAD] / cache if cache else None,
        cache_bytes=2 * int(result.spec.params["cache_bytes"]) if cache else None,
    )


def fingerprint(result: Result) -> str:
    """Return 16 hex digits for everything that peaks depend on: machine, device, TensorFlow, backend and settings."""
    import hashlib
    import json

    fields = {name for name, role in ROLES.items() if role.peaks}
    parts = [*result.environment.identity("peaks"), result.spec.model_dump(mode="json", include=fields)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def has_known_work(result: Result) -> bool:
    """Return whether the operations and the bytes of a result's step are known."""
    _, flops, moved = _work(result)
    return bool(flops and moved)


def _work(result: Result) -> tuple[Facts, float | None, float | None]:
    """Return the facts with the bytes of a step, the operations of the step, and these bytes."""
    facts = next((s.facts for s in result.samples if s.facts.bytes_per_step), Facts())
    return facts, facts.flops_formula or facts.flops_per_step, facts.bytes_per_step


def roofline(result: Result, peaks: Peaks) -> Roofline | None:
    """Return how a step compares with the peaks. None if its operations, its bytes or the peak is not known."""
    step = result.summary.step_seconds
    facts, flops, moved = _work(result)
    policy = merged_facts(result.samples).dtype_policy or result.spec.dtype
    dtype = COMPUTE_DTYPE.get(policy, policy)
    compute = peaks.flops_per_second.get(dtype)
    if step is None or not flops or not moved or not compute:
        return None
    intensity = flops / moved
    memory = intensity * peaks.memory_bytes_per_second
    attained = flops / step.value
    return Roofline(
        flops=flops,
        flops_method="formula" if facts.flops_formula else "counted",
        bytes=moved,
        intensity=intensity,
        flops_per_second=attained,
        dtype=dtype,
        compute_peak=compute,
        memory_peak=memory,
        cache_peak=intensity * peaks.cache_bytes_per_second if peaks.cache_bytes_per_second else None,
        bound="compute" if compute <= memory else "memory",
        share=attained / min(compute, memory),
        exceeds_memory_peak=attained > memory,
    )
