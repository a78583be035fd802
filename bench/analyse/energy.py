"""The energy of a step."""

from __future__ import annotations

import statistics

from bench.analyse.samples import usable_samples
from bench.backends import capabilities
from bench.model.result import Result


def joules_per_step(result: Result) -> float | None:
    """Return the energy of a step in joules: the mean power in the steady state times the mean step.

    On a CPU, it is the energy of the CPU's packages. On a GPU, it is the energy of the GPU alone, because the packages
    use only a small part.

    Returns:
        The mean over processes. None if no process measured the energy.
    """
    gpu = capabilities(result.spec.backend).gpu
    per_step = []
    for sample in usable_samples(result):
        telemetry = sample.telemetry
        blocks = [block for series in sample.series if series.name == "step" for block in series.blocks]
        steps = sum(block.steps for block in blocks)
        joules = None if telemetry is None else telemetry.gpu_joules if gpu else telemetry.package_joules
        if telemetry is not None and joules is not None and telemetry.wall_seconds > 0 and steps:
            per_step.append(joules / telemetry.wall_seconds * sum(block.seconds for block in blocks) / steps)
    return statistics.fmean(per_step) if per_step else None
