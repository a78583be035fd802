"""The plan of a run: groups of specs whose workers are measured together."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.model.spec import Spec


@dataclass(frozen=True)
class Planned:
    """A spec with what its result should say about it."""

    spec: Spec
    notes: tuple[str, ...]
    total_steps: int | None
    examples: int | None


@dataclass(frozen=True)
class Group:
    """The specs of one workload, whose workers take turns; and what was asked for but makes no sense."""

    workload: str
    planned: tuple[Planned, ...]
    not_applicable: tuple[str, ...] = field(default=())
