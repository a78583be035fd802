"""Which results are compared with which: those of a run, of a chapter of a report, or of the command `compare`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from bench.analyse.comparable import SECONDARY, axis, differences
from bench.model.comparison import Difference
from bench.model.environment import ROWS
from bench.model.result import Purpose, Result

MATRIX = range(3, 13)
"""Numbers of results that make a matrix."""

Pair = tuple[Result, Result]
"""Baseline and other."""


@dataclass(frozen=True)
class Pairing:
    """Pairs of results to compare, and results that are left over.

    Args:
        results: all results, in the order in which they are shown.
        pairs: baseline and other, in the order of the others.
        alone: results that cannot be compared with any other.
        explicit: whether each pair was named by the user. An unfair one is then an error; otherwise it is skipped.
        groups: groups that can have a matrix, such as interleaved results. Empty if the pairs are explicit.
        unchecked: of two sets, results without a partner that may have become slower. These are the results that only
            the first set has, and results of the second set whose workload is in the first set, but which cannot be
            compared fairly. A workload that only the second set has is new, so its results do not count.
    """

    results: list[Result]
    pairs: list[Pair]
    alone: list[Result] = field(default_factory=list)
    explicit: bool = False
    groups: list[list[Result]] = field(default_factory=list)
    unchecked: list[Result] = field(default_factory=list)


def pair_groups(results: Sequence[Result]) -> Pairing:
    """Pair the results of each group of a run. A matrix leaves failed results out."""
    groups = by_group(results)
    pairs = [pair for members in groups for pair in pairs_within_group(members)]
    measured = [[result for result in members if result.status != "failed"] for members in matrix_groups(groups)]
    return Pairing(list(results), pairs, groups=measured)


def pair_as_group(members: Sequence[Result]) -> Pairing:
    """Pair results as if they were one group, even if they were measured apart. There is no matrix."""
    return Pairing(list(members), pairs_within_group(members))


def pair(sets: Sequence[Sequence[Result]]) -> Pairing:
    """Pair the results of the arguments of a comparison.

    - Two or more sets of one result each: every pair of them, explicitly.
    - Two sets: each result of the second with its counterpart in the first, which does the same work or differs in one
      thing only.
    - Otherwise: the results of each group (`pairs_within_group`). Then each result that was measured alone, with the
      first one that is comparable.
    """
    chosen = [latest_runs(results) for results in sets]
    if len(sets) > 1 and all(len(results) == 1 for results in chosen):
        single = [results[0] for results in chosen]
        return Pairing(single, all_pairs(single), explicit=True)
    if len(sets) == 2:
        return _pair_two_sets(chosen[0], chosen[1])
    return _pair_within_groups([result for results in chosen for result in results])


def all_pairs(members: Sequence[Result]) -> list[Pair]:
    """Return each result paired with all that come after it."""
    return [(base, other) for index, base in enumerate(members) for other in members[index + 1 :]]


def by_group(results: Iterable[Result]) -> list[list[Result]]:
    """Return the results of each group, in their order."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.group, []).append(result)
    return list(groups.values())


def matrix_groups(groups: Iterable[list[Result]]) -> list[list[Result]]:
    """Return the groups that are larger than a pair and small enough for a matrix."""
    return [members for members in groups if len(members) in MATRIX]


def pairs_within_group(members: Sequence[Result]) -> list[Pair]:
    """Pair each member of a group except the first with the nearest one before it, on another backend if possible.

    So with two cases on two backends, each case on the second backend is compared with the same case on the first. With
    two files in two loops, each loop is compared with the same loop of the first file. A member that cannot be compared
    fairly with any before it is paired with the first; that comparison says why it is unfair.
    """
    pairs = []
    for index, other in enumerate(members[1:], 1):
        candidates = [
            (_distance(diffs), base) for base in members[:index] if is_fair(diffs := differences(base, other))
        ]
        base = min(candidates, key=lambda candidate: candidate[0])[1] if candidates else members[0]
        pairs.append((base, other))
    return pairs


def _distance(diffs: list[Difference]) -> tuple[bool, int, bool]:
    """Return the sort key of a baseline: another backend first, then few differences, another case last."""
    name = axis(diffs)
    return name != "backend", sum(difference.name not in ROWS for difference in diffs), name == "case"


def is_fair(diffs: Iterable[Difference]) -> bool:
    """Return whether no difference makes the comparison unfair."""
    return all(difference.kind != "unfair" for difference in diffs)


class Repeatable(Protocol):
    """The fields that identify a result and its repetitions. An entry of a folder of results has them too."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def key(self) -> str:
        """The key of its spec."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of its machine and TensorFlow."""

    @property
    def created(self) -> datetime:
        """When it was created."""

    @property
    def purpose(self) -> Purpose:
        """What it was measured for."""


T = TypeVar("T", bound=Repeatable)


def latest_runs(results: Sequence[T]) -> list[T]:
    """Return the newest run of each key and fingerprint, in order. A single result counts whatever its purpose."""
    newest: dict[tuple[str, str], T] = {}
    for result in sorted(results, key=lambda r: r.created):
        if result.purpose == "run" or len(results) == 1:
            newest[result.key, result.fingerprint] = result
    ids = {result.id for result in newest.values()}
    return [result for result in results if result.id in ids]


def _pair_two_sets(bases: Sequence[Result], others: Sequence[Result]) -> Pairing:
    pairs, paired = [], set()
    by_key = {base.key: base for base in bases} | {(base.key, base.fingerprint): base for base in bases}
    for other in others:
        base = by_key.get((other.key, other.fingerprint)) or by_key.get(other.key) or _nearest(bases, other)
        if base is not None:
            pairs.append((base, other))
            paired |= {base.id, other.id}
    results = [*bases, *others]
    alone = [result for result in results if result.id not in paired]
    workloads = {base.spec.workload for base in bases}
    return Pairing(results, pairs, alone, unchecked=[result for result in alone if result.spec.workload in workloads])


def _nearest(bases: Sequence[Result], other: Result) -> Result | None:
    """Return the result that does the same work on any machine, or that differs in one thing only.

    Among several, prefer one that does the same work, then one whose file has the same name, then the same case, then
    one on the same machine, then one on another backend, then one in the same loop if file or case bring their own,
    then the one with the fewest other parameters. None if several are left.
    """
    ranked: dict[tuple[int, ...], list[Result]] = {}
    for base in bases:
        if is_fair(diffs := differences(base, other)):
            name = axis(diffs)
            rank = (
                name not in (None, *SECONDARY),
                base.spec.workload != other.spec.workload,
                base.spec.case != other.spec.case,
                base.fingerprint != other.fingerprint,
                name != "backend",
                name in ("file", "case") and base.spec.loop != other.spec.loop,
                sum(base.spec.params.get(key) != value for key, value in other.spec.params.items()),
            )
            ranked.setdefault(rank, []).append(base)
    nearest = ranked[min(ranked)] if ranked else []
    return nearest[0] if len(nearest) == 1 else None


def _pair_within_groups(results: Sequence[Result]) -> Pairing:
    groups = by_group(results)
    pairs = [pair for members in groups for pair in pairs_within_group(members)]
    by_workload: dict[str, list[Result]] = {}
    for members in groups:
        if len(members) == 1:
            by_workload.setdefault(members[0].spec.workload, []).append(members[0])
    alone: list[Result] = []
    bases: dict[str, list[Result]] = {}
    for result in (members[0] for members in groups if len(members) == 1):
        candidates = bases.setdefault(result.spec.workload, [])
        base = next((candidate for candidate in candidates if is_fair(differences(candidate, result))), None)
        if base is None:
            candidates.append(result)
            alone.append(result)
        else:
            pairs.append((base, result))
            alone = [other for other in alone if other is not base]
    return Pairing(list(results), pairs, alone, groups=matrix_groups([*groups, *by_workload.values()]))
