"""The plan of a run: groups of specs whose workers are measured together."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.model.spec import Spec


@dataclass(frozen=True)
class Planned:
    """A spec to measure, and what is known of its workload before the run.

    Attributes:
        spec: the spec.
        notes: the workload's notes, which the result repeats.
        total_steps: steps of the whole training; None if only the worker can tell.
        examples: examples per step; None if a step has none.
    """

    spec: Spec
    notes: tuple[str, ...]
    total_steps: int | None
    examples: int | None


@dataclass(frozen=True)
class Group:
    """The specs of one workload. Their workers are interleaved.

    Attributes:
        workload: the name of the workload; of several, their names separated by commas.
        planned: the specs to measure.
        not_applicable: for each spec that was requested but cannot be measured, the spec and the reason.
    """

    workload: str
    planned: tuple[Planned, ...]
    not_applicable: tuple[str, ...] = field(default=())
