"""How far a step uses the machine: its quota, its processors, its tensor cores, its roofs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.analyse import stats
from bench.backends import capabilities
from bench.model.explanation import Finding
from bench.model.result import ProcessSample, Result
from bench.model.roofline import Roofline

NEAR = 0.5
"""From this share of a roof on a step is called bound by it."""

IDLE = 0.6
"""Below this share of its threads' time a step leaves processors unused."""

FEWER_BYTES = "Fuse operations (XLA), use a narrower dtype or a larger batch."
ROOFS = {
    "compute": (
        "compute", "the device computes", "compute roof", "A faster device, fewer operations or a narrower dtype."
    ),
    "memory": ("memory bandwidth", "memory brings data", "memory roof", FEWER_BYTES),
    "cache": ("cache bandwidth", "the cache brings data", "cache's roof", FEWER_BYTES),
}  # fmt: skip
"""Roof: the cause that it is, what is done under it, what it is called, and the fix."""


def quota(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """A CPU quota that holds the program back."""
    told = [s.telemetry for s in samples if s.telemetry and s.telemetry.throttled_seconds is not None]
    wall = sum(t.wall_seconds for t in told) * base.spec.threads.intra
    held = min(wall, sum(t.throttled_seconds or 0.0 for t in told))  # added up over CPUs
    if wall and held > 0.01 * wall:
        yield Finding(
            cause="CPU quota",
            sentence=f"the CPU quota holds the program's threads back for {held / wall:.0%} of the time",
            evidence=f"the cgroup was throttled for {held:.2f} s of {wall:.2f} s that its threads had",
            fix="Give it whole CPUs: --cpus=4, or requests = limits in Kubernetes.",
            share=held / wall,
        )


def parallelism(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Processors that a step leaves idle."""
    threads = base.spec.threads.intra
    busy = [b.cpu_seconds / b.seconds for s in samples for x in s.series for b in x.blocks if b.seconds > 0]
    if threads < 2 or not busy or capabilities(base.spec.backend).gpu:
        return
    used = statistics.median(busy)
    if used < IDLE * threads:
        yield Finding(
            cause="too little parallelism",
            sentence=f"a step keeps {used:.1f} of {threads} processors busy",
            evidence=f"CPU time over wall time of {len(busy)} blocks, median {used:.2f}",
            fix="Larger batches give the threads more to share; a step that mostly waits gains nothing by them.",
        )


def odd_shapes(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Products whose sides leave tensor cores partly idle, where there are such cores to use."""
    found = stats.facts(samples).products
    spec = base.spec
    cores = capabilities(spec.backend).tensor_cores and (
        spec.dtype.startswith("mixed") or (spec.dtype == "float32" and spec.tf32)
    )
    if not cores or not found or not found.odd:
        return
    named = "; ".join(f"{name}: {', '.join(map(str, sides))}" for name, sides in found.examples.items())
    yield Finding(
        cause="shapes that tensor cores can't fill",
        sentence=f"{found.odd} of {found.count} matrix products have a side that is no multiple of 8",
        evidence=f"shapes in the step's graph: {named}",
        fix="Round layers, classes and the batch up to multiples of 8, better of 64.",
    )


def under_the_roof(roofline: Roofline, share: float) -> Iterator[Finding]:
    """Computing or memory as the cause, where the barest loop is near a roof.

    Args:
        roofline: of the lowest level.
        share: of the program's own step that the lowest level takes.
    """
    roof, attained = str(roofline.roof), roofline.share
    if roof == "memory" and roofline.beyond_memory:  # its working set is in a cache
        if not roofline.cache_roof:
            return
        roof, attained = "cache", roofline.attained / min(roofline.cache_roof, roofline.compute_roof)
    if attained < NEAR or share < 0.3:
        return
    cause, sentence, named, fix = ROOFS[roof]
    yield Finding(
        cause=cause,
        sentence=f"for {min(1.0, share):.0%} of the step {sentence} about as fast as it can: {attained:.0%} of the "
        f"{named}",
        evidence=f"{roofline.attained / 1e9:.3g} GFLOP/s at {roofline.intensity:.3g} operations a byte; a matrix "
        f"product attains {roofline.compute_roof / 1e9:.3g}, memory allows {roofline.memory_roof / 1e9:.3g}",
        fix=fix,
        share=min(1.0, share),
    )
