"""Which results of a folder get a chapter: explanations and sweeps; those that took turns; those measured apart.

Of repetitions the newest is shown. A folder may hold more than fits in memory or in a report, so files are read
one at a time, and only what a chapter shows is read again whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from bench.backends import reference
from bench.errors import DataError
from bench.model.explanation import Explanation
from bench.model.result import Interval, Purpose, Result
from bench.store import files, headers

Kind = Literal["explanation", "sweep", "results"]
KINDS: tuple[Kind, ...] = ("explanation", "sweep", "results")

CHAPTERS = 20
"""Chapters of one report; what has none is listed."""

MEMBERS = 24
"""Results of one chapter."""


@dataclass(frozen=True)
class Listed:
    """What is kept of each result in the folder."""

    path: Path
    id: str
    created: datetime
    group: str
    purpose: Purpose
    parent: str | None
    identity: tuple[str, str]
    title: str
    label: str
    backend: str
    status: str
    step: Interval | None
    processes: int


@dataclass
class Set:
    """Results of one chapter, in the order in which they are shown.

    Args:
        members: the results that are shown.
        together: whether they were measured as one group.
        runs: how many runs of the same there are, this one included.
        hidden: results that belong to it and are not shown: too many of a kind, or an explanation's changes.
        explanation: what was found out by these levels.
        sweep: whether they are the points of one.
    """

    members: list[Listed]
    together: bool
    runs: int = 1
    hidden: list[Listed] = field(default_factory=list)
    explanation: Explanation | None = None
    sweep: bool = False

    @property
    def newest(self) -> datetime:
        """When the last of them was begun."""
        return max(each.created for each in self.members)

    def read(self) -> list[Result]:
        """Its results, whole."""
        return [files.read(each.path) for each in self.members]


@dataclass(frozen=True)
class Gathered:
    """A folder's results, and those of them that get a chapter."""

    folder: Path
    results: list[Listed]
    sets: list[Set]
    repeated: int
    crowded: int


def gather(folder: Path) -> Gathered:
    """Looks through a folder.

    Raises:
        DataError: it is not there, holds no result, or a file in it is none.
    """
    found = sorted((_listed(path, headers.head(path)) for path in files.files(folder)), key=lambda r: (r.created, r.id))
    if not found:
        raise DataError(f"there are no results in {folder}", "`devbench run` writes results there with --output.")
    known = files.explanations(folder)
    groups: dict[tuple[Kind, str], list[Listed]] = {}
    for each in found:
        groups.setdefault(_belongs(each, known), []).append(each)
    sets = [made for kind in KINDS for made in _sets(_newest(kind, groups), known)]
    chosen = sorted(sets, key=lambda s: (s.together, s.newest), reverse=True)[:CHAPTERS]
    chosen.sort(key=lambda s: (not s.together, s.members[0].title, -s.newest.timestamp()))
    kept = sum(len(each.members) + len(each.hidden) for each in sets)
    shown = sum(len(each.members) + (len(each.hidden) if each.explanation else 0) for each in chosen)
    return Gathered(folder, found, chosen, len(found) - kept, kept - shown)


def _listed(path: Path, result: Result) -> Listed:
    return Listed(
        path=path,
        id=result.id,
        created=result.created,
        group=result.group,
        purpose=result.purpose,
        parent=result.parent,
        identity=(result.key, result.environment.fingerprint()),
        title=result.spec.title,
        label=result.spec.label,
        backend=result.spec.backend,
        status=result.status,
        step=result.summary.step_seconds,
        processes=max((each.n for each in _measured(result)), default=0),
    )


def _measured(result: Result) -> Iterator[Interval]:
    """Figures over the processes that timed something."""
    if result.summary.step_seconds is not None:
        yield result.summary.step_seconds
    yield from result.summary.series.values()


def _belongs(each: Listed, known: Mapping[str, Explanation]) -> tuple[Kind, str]:
    """What a result is shown with: its explanation, where that is there; its sweep; else those it took turns with."""
    if each.purpose == "sweep" and each.parent:
        return "sweep", each.parent
    if each.parent in known:
        return "explanation", each.parent or ""
    return "results", each.group


def _newest(kind: Kind, groups: Mapping[tuple[Kind, str], list[Listed]]) -> list[Set]:
    """The groups of a kind, without those whose every member has a newer run within one group."""
    known: dict[tuple[str, str], list[tuple[frozenset[tuple[str, str]], Set]]] = {}
    fresh = []
    whose = [group for (its, _), group in groups.items() if its == kind]
    for group in sorted(whose, key=lambda g: max(each.created for each in g), reverse=True):
        identities = frozenset(each.identity for each in group)
        newer = next((other for have, other in known.get(group[0].identity, []) if identities <= have), None)
        if newer is not None:
            newer.runs += 1
            continue
        made = Set(group, together=kind != "results" or len(group) > 1, sweep=kind == "sweep")
        fresh.append(made)
        for identity in identities:
            known.setdefault(identity, []).append((identities, made))
    return fresh


def _sets(fresh: Iterable[Set], known: Mapping[str, Explanation]) -> list[Set]:
    """Groups as they are, of an explanation the levels; what was measured alone workload by workload, the CPU first."""
    sets, alone = [], dict[str, list[Set]]()
    for each in fresh:
        first = each.members[0]
        if each.sweep:
            sets.append(each)
        elif first.parent in known:
            levels = [m for m in each.members if m.purpose == "level"]
            each.members, each.hidden = levels or each.members, [m for m in each.members if levels and m not in levels]
            each.explanation = known[first.parent or ""]
            sets.append(each)
        elif each.together:
            each.members, each.hidden = each.members[:MEMBERS], each.members[MEMBERS:]
            sets.append(each)
        else:
            alone.setdefault(first.title, []).append(each)
    for parts in alone.values():  # newest first
        members = [part.members[0] for part in parts]
        shown = sorted(members[:MEMBERS], key=lambda r: (r.backend != reference(), r.created))
        sets.append(Set(shown, together=False, runs=max(part.runs for part in parts), hidden=members[MEMBERS:]))
    return sets
