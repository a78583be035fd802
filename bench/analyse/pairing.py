"""Which results of what was named are compared with which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from bench.analyse.comparable import SECONDARY, axis, differences
from bench.model.comparison import Difference
from bench.model.environment import ROWS
from bench.model.result import Purpose, Result


@dataclass(frozen=True)
class Pairing:
    """Pairs of base and other, and what has no partner.

    Args:
        pairs: (base, other), in the order of the others.
        alone: results that nothing comparable was found for.
        asked: whether each pair was named in so many words, so that it is refused where it is unfair, not left out.
        groups: those that took turns, and those of a workload that were measured alone, where they are few enough for a
            matrix; none where each pair was named.
        unchecked: of two sets, those without a partner of which nobody can tell whether they became slower: what the
            second lacks, and what it has of a workload of the first that is not fair to compare. A workload that
            the first lacks is new.
    """

    pairs: list[tuple[Result, Result]]
    alone: list[Result]
    asked: bool = False
    groups: list[list[Result]] = field(default_factory=list)
    unchecked: list[Result] = field(default_factory=list)


def pair(sets: Sequence[Sequence[Result]]) -> Pairing:
    """Pairs the results of one argument or several.

    One result each of two or more arguments: every pair of them, as asked. Two sets: each of the second with the one
    of the first that does the same work, or differs in one thing only. Else: those of each group as they
    took turns (`within_group`), then what was measured alone with the first that is comparable.
    """
    chosen = [counting(each) for each in sets]
    if len(sets) > 1 and all(len(each) == 1 for each in chosen):
        single = [each[0] for each in chosen]
        return Pairing(all_pairs(single), [], asked=True)
    if len(sets) == 2:
        return _across(chosen[0], chosen[1])
    return _within([each for one in chosen for each in one])


MATRIX = range(3, 13)
"""Results that all_pairs is compared with all_pairs of."""


def all_pairs(members: Sequence[Result]) -> list[tuple[Result, Result]]:
    """Each with all that come after it."""
    return [(base, other) for place, base in enumerate(members) for other in members[place + 1 :]]


def grouped(results: Iterable[Result]) -> list[list[Result]]:
    """The results of each group, in their order."""
    found: dict[str, list[Result]] = {}
    for each in results:
        found.setdefault(each.group, []).append(each)
    return list(found.values())


def matrix_groups(groups: Iterable[list[Result]]) -> list[list[Result]]:
    """The groups that are more than a pair and small enough for a matrix."""
    return [members for members in groups if len(members) in MATRIX]


def within_group(members: Sequence[Result]) -> list[tuple[Result, Result]]:
    """Base and other of those that took turns: each with the one before it that is nearest, on another backend if any.

    So of two cases on two backends, each case on the second backend is compared with the same case on the first; of two
    cases in two loops likewise, and of two files in two loops each loop with the same loop of the first file. What
    differs from all before it in more than one thing stands against the first of them, which is not fair and says so.
    """
    found = []
    for place, other in enumerate(members[1:], 1):
        told = [(_distance(apart), base) for base in members[:place] if fair(apart := differences(base, other))]
        found.append((min(told, key=lambda each: each[0])[1] if told else members[0], other))
    return found


def _distance(found: list[Difference]) -> tuple[bool, int, bool]:
    """How far apart two of a group are that can be compared; a case is what is compared last, of what is as near."""
    what = axis(found)
    return what != "backend", sum(d.name not in ROWS for d in found), what == "case"


def fair(found: Iterable[Difference]) -> bool:
    """Whether nothing among the differences makes the comparison unfair."""
    return all(d.kind != "unfair" for d in found)


class Named(Protocol):
    """What tells a result from its repetitions: a result itself, or its entry in a folder."""

    @property
    def id(self) -> str:
        """Its own name."""

    @property
    def key(self) -> str:
        """Its spec's."""

    @property
    def fingerprint(self) -> str:
        """Its machine's."""

    @property
    def created(self) -> datetime:
        """When it was made."""

    @property
    def purpose(self) -> Purpose:
        """What for."""


T = TypeVar("T", bound=Named)


def counting(results: Sequence[T]) -> list[T]:
    """Those of one argument that count: of each key and machine the newest run, or what there is where that is one."""
    latest: dict[tuple[str, str], T] = {}
    for each in sorted(results, key=lambda r: r.created):
        if each.purpose == "run" or len(results) == 1:
            latest[each.key, each.fingerprint] = each
    chosen = {each.id for each in latest.values()}
    return [each for each in results if each.id in chosen]


def _across(bases: Sequence[Result], others: Sequence[Result]) -> Pairing:
    pairs, taken = [], set()
    same = {each.key: each for each in bases} | {(each.key, each.fingerprint): each for each in bases}
    for other in others:
        base = same.get((other.key, other.fingerprint)) or same.get(other.key) or _nearest(bases, other)
        if base is not None:
            pairs.append((base, other))
            taken |= {base.id, other.id}
    alone = [each for each in [*bases, *others] if each.id not in taken]
    known = {each.spec.workload for each in bases}
    return Pairing(pairs, alone, unchecked=[each for each in alone if each.spec.workload in known])


def _nearest(bases: Sequence[Result], other: Result) -> Result | None:
    """The one base that does the same work, but for what comes with the machine, or that differs in one thing only.

    Of several it is the one whose file has the same name, the one on the same machine, the one on another backend, the
    one in the same loop where file or case bring their own; none where these are still several.
    """
    ranked: dict[tuple[bool, ...], list[Result]] = {}
    for base in bases:
        if fair(found := differences(base, other)):
            what = axis(found)
            rank = (
                what not in (None, *SECONDARY),
                base.spec.workload != other.spec.workload,
                base.fingerprint != other.fingerprint,
                what != "backend",
                what in ("file", "case") and base.spec.loop != other.spec.loop,
            )
            ranked.setdefault(rank, []).append(base)
    nearest = ranked[min(ranked)] if ranked else []
    return nearest[0] if len(nearest) == 1 else None


def _within(results: Sequence[Result]) -> Pairing:
    groups = grouped(results)
    pairs = [pair for members in groups for pair in within_group(members)]
    single = [members[0] for members in groups if len(members) == 1]
    of_workload: dict[str, list[Result]] = {}
    for each in single:
        of_workload.setdefault(each.spec.workload, []).append(each)
    alone: list[Result] = []
    leaders: dict[str, list[Result]] = {}
    for each in single:
        before = leaders.setdefault(each.spec.workload, [])
        base = next((b for b in before if fair(differences(b, each))), None)
        if base is None:
            before.append(each)
            alone.append(each)
        else:
            pairs.append((base, each))
            alone = [a for a in alone if a is not base]
    return Pairing(pairs, alone, groups=matrix_groups([*groups, *of_workload.values()]))
