"""Findings about how well a step uses the machine: its CPU quota, its CPUs, its tensor cores, its peaks."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import NamedTuple

from bench.analyse.samples import merged_facts
from bench.analyse.throttled_time import throttled_time
from bench.backends import capabilities, has_tensor_cores
from bench.machine.limits import WHOLE_CPUS
from bench.model.causes import CPU_QUOTA, IDLE_GPU, ODD_SHAPES, TOO_LITTLE_PARALLELISM
from bench.model.explanation import Explanation, Finding
from bench.model.result import Result
from bench.model.roofline import Roofline
from bench.model.sample import ProcessSample
from bench.model.words import count

BOUND_MIN_SHARE = 0.5
"""Share of a peak from which a step counts as bound by it."""

LOWEST_LEVEL_MIN_SHARE = 0.3
"""Smallest share of the program's step that the lowest level must take for its bound to be a finding."""

BUSY_MIN_SHARE = 0.6
"""Below this share of its threads' time, a step leaves CPUs idle."""

IDLE_MIN_SHARE = 0.5
"""If a GPU runs no kernel during this share of a step, that is a finding."""

MOSTLY_INPUT = 0.3
"""If a step waits for input during this share of its time, the input explains why a GPU or CPUs are idle."""


class Bound(NamedTuple):
    """A resource of the machine that can limit a step."""

    cause: str
    does: str
    peak: str
    fix: str


FEWER_BYTES = "Fuse operations with XLA, or use a narrower dtype or a larger batch."
BOUNDS = {
    "compute": Bound(
        "compute-bound", "computes", "compute peak", "Use a faster device, fewer operations or a narrower dtype."
    ),
    "memory": Bound("memory-bound", "moves data", "memory peak", FEWER_BYTES),
    "cache": Bound("cache-bound", "moves data in the cache", "cache peak", FEWER_BYTES),
}


def quota(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if a CPU quota throttles the program's threads."""
    time = throttled_time(base, samples)
    if time is not None:
        yield Finding(
            cause=CPU_QUOTA,
            sentence=f"{time.message[0].upper()}{time.message[1:]}.",
            evidence=f"the cgroup was throttled for {time.seconds:.2f} s of {time.available:.2f} s of thread time",
            fix=WHOLE_CPUS,
            share=time.share,
        )


def parallelism(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if a step leaves CPUs idle."""
    threads = base.spec.threads.intra
    blocks = [block for s in samples for series in s.series for block in series.blocks if block.seconds > 0]
    if threads < 2 or not blocks or capabilities(base.spec.backend).gpu:
        return
    busy = statistics.median(block.cpu_seconds / block.seconds for block in blocks)
    if busy < BUSY_MIN_SHARE * threads:
        yield Finding(
            cause=TOO_LITTLE_PARALLELISM,
            sentence=f"A step keeps {busy:.1f} of {threads} CPUs busy.",
            evidence=f"CPU time divided by wall time, median of {count(len(blocks), 'block')}: {busy:.2f}",
            what_ifs=["batch"],
            parts=["computing"],
        )


def idle_gpu(explanation: Explanation) -> Iterator[Finding]:
    """Yield a finding if a trace shows that the GPU runs no kernel during most of a step, and does not wait for input.

    Tracing makes a step longer, but not its kernels.
    """
    profile = explanation.profile
    if profile is None or profile.device_share is None or profile.input_share > MOSTLY_INPUT:
        return
    running = profile.device_share * profile.step_seconds
    idle = 1 - running / explanation.step_seconds
    if idle < IDLE_MIN_SHARE:
        return
    yield Finding(
        cause=IDLE_GPU,
        sentence=f"The GPU runs no kernel during {idle:.0%} of the step. It waits for the host to start kernels.",
        evidence=f"trace of {count(profile.steps, 'step')}: kernels run for {running * 1e6:.0f} µs of a step; "
        f"TensorFlow works on the host during {profile.host_share:.0%} of a traced step",
        what_ifs=["batch", "xla", *([] if explanation.own_step else ["steps-per-execution"])],
        parts=["dispatch", "computing"],
        share=idle,
    )


def _uses_tensor_cores(base: Result) -> bool:
    """Return whether the matrix products of a program run on tensor cores, as far as the device is known."""
    spec, device = base.spec, base.environment.device
    policy = merged_facts(base.samples).dtype_policy or spec.dtype
    dtype = "tf32" if policy == "float32" and spec.tf32 else policy.removeprefix("mixed_")
    return has_tensor_cores(spec.backend, dtype, device.compute_capability if device else None)


def shapes(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if matrix products have shapes that leave tensor cores partly idle."""
    products = merged_facts(samples).products
    if not products or not products.odd or not _uses_tensor_cores(base):
        return
    verb = "has" if products.odd == 1 else "have"
    examples = "; ".join(f"{name}: {', '.join(map(str, sides))}" for name, sides in products.examples.items())
    yield Finding(
        cause=ODD_SHAPES,
        sentence=f"{products.odd} of {count(products.count, 'matrix product')} {verb} a side that is not a "
        "multiple of 8.",
        evidence=f"shapes in the step's graph: {examples}",
        fix="Round layers, classes and the batch up to multiples of 8, or better 64.",
    )


def bound(roofline: Roofline, share: float) -> Iterator[Finding]:
    """Yield what the step is bound by, if the lowest level is near a peak of the machine.

    Args:
        roofline: of the lowest level.
        share: the time of the lowest level as a share of the program's own step.
    """
    resource, attained = str(roofline.bound), roofline.share
    if resource == "memory" and roofline.exceeds_memory_peak:  # its working set is in a cache
        if not roofline.cache_peak:
            return
        resource, attained = "cache", roofline.flops_per_second / min(roofline.cache_peak, roofline.compute_peak)
    if attained < BOUND_MIN_SHARE or share < LOWEST_LEVEL_MIN_SHARE:
        return
    share = min(1.0, share)
    cause, does, peak, fix = BOUNDS[resource]
    yield Finding(
        cause=cause,
        sentence=f"During {share:.0%} of the step, the device {does} at {attained:.0%} of the {peak}.",
        evidence=f"{roofline.flops_per_second / 1e9:.3g} GFLOP/s at {roofline.intensity:.3g} FLOP per byte; a matrix "
        f"product attains {roofline.compute_peak / 1e9:.3g} GFLOP/s, "
        f"memory allows {roofline.memory_peak / 1e9:.3g} GFLOP/s",
        fix=fix,
        parts=["computing"],
        share=share,
    )
