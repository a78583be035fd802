"""How far a run is, as whoever conducts it tells whoever shows it.

It stands apart from both, a floor below, so that measuring knows nothing of terminals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.result import Result


@dataclass(frozen=True)
class Estimate:
    """What is known so far of one spec's step.

    Args:
        title: the spec, such as "cifar on cpu, fit".
        step_seconds: typical step, in seconds.
        relative_error: half its confidence interval over its value; none while one process is all there is.
    """

    title: str
    step_seconds: float
    relative_error: float | None = None


@dataclass(frozen=True)
class Measured:
    """One of the specs under way.

    Args:
        result: what is known of it so far; it goes on to grow.
        examples: examples of a step, where a step has any.
    """

    result: Result
    examples: int | None = None


@dataclass(frozen=True)
class Progress:
    """One moment of a run.

    Args:
        title: what is measured, such as "cifar on cpu, as-written".
        phase: what the worker does, such as "import", "warm-up" or "steady state".
        note: why that takes long, where it does.
        cohort: which cohort of processes it is, from 1.
        planned: how many cohorts it will take, once the pilot has told.
        elapsed: seconds since this workload's first worker was started.
        budget: seconds that it may take (`--max-time`).
        estimates: what is known so far, one a spec.
        measured: the specs whose workers take turns.
    """

    title: str
    phase: str
    note: str = ""
    cohort: int = 1
    planned: int | None = None
    elapsed: float = 0.0
    budget: float = 0.0
    estimates: tuple[Estimate, ...] = ()
    measured: tuple[Measured, ...] = ()


Listener = Callable[[Progress], None]
