"""Selects the results of a folder that get a chapter of a report.

A chapter has an explanation, a sweep, a scaling study, a group, or results of one workload that were measured apart.
Of repeated runs, only the newest is selected. A folder may hold more than fits in memory or in a report. Files are
therefore read one at a time, and only the results of one chapter are read completely.
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
from bench.model.interval import Interval
from bench.model.result import Purpose, Result
from bench.model.spec import Spec
from bench.store import files, headers

ChapterKind = Literal["explanation", "sweep", "scaling", "results"]
KINDS: tuple[ChapterKind, ...] = ("explanation", "sweep", "scaling", "results")

CHAPTERS = 20
"""Chapters in one report. Further results are only listed."""

MEMBERS = 24
"""Results in one chapter."""


@dataclass(frozen=True)
class Entry:
    """A result in the folder, without its samples."""

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
    has_workers: bool
    status: str
    step: Interval | None
    processes: int


@dataclass
class ChapterEntries:
    """The results of one chapter.

    Args:
        members: the results that are shown, in this order.
        grouped: whether they are one explanation, sweep, scaling study or group.
        runs: how many runs of the same specs there are, including this one.
        hidden: results that belong here but are not shown: more than fit, or the what-ifs of an explanation.
        explanation: the explanation whose levels they are.
        sweep: whether they are the points of a sweep.
        scaling: whether they are the levels of a scaling study.
    """

    members: list[Entry]
    grouped: bool
    runs: int = 1
    hidden: list[Entry] = field(default_factory=list)
    explanation: Explanation | None = None
    sweep: bool = False
    scaling: bool = False

    @property
    def newest(self) -> datetime:
        """When the last of the results was started."""
        return max(entry.created for entry in self.members)

    def read(self) -> list[Result]:
        """Read the results with their samples."""
        return [files.read(entry.path) for entry in self.members]


@dataclass(frozen=True)
class Selection:
    """All results of a folder, and those that get a chapter.

    Args:
        folder: where they are.
        entries: all results, oldest first.
        chapters: the chapters, in the order of the report.
        repeated: how many results have a newer repetition.
        omitted: how many further results have no chapter because there are too many.
        specs: the specs of all results, by key.
    """

    folder: Path
    entries: list[Entry]
    chapters: list[ChapterEntries]
    repeated: int
    omitted: int
    specs: Mapping[str, Spec] = field(default_factory=dict)


def select(folder: Path) -> Selection:
    """Select the results of a folder that get a chapter.

    Raises:
        DataError: the folder is missing or has no results, or a file in it is not a result.
    """
    paths = result_files(folder)
    specs: dict[str, Spec] = {}
    entries = sorted((_entry(path, headers.head(path), specs) for path in paths), key=lambda e: (e.created, e.id))
    explanations = files.explanations(folder)
    groups: dict[tuple[ChapterKind, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault(_chapter_key(entry, explanations), []).append(entry)
    candidates = [made for kind in KINDS for made in _chapters(_without_repeats(kind, groups), explanations)]
    chapters = sorted(candidates, key=lambda c: (c.grouped, c.newest), reverse=True)[:CHAPTERS]
    chapters.sort(key=lambda c: (not c.grouped, c.members[0].title, -c.newest.timestamp()))
    unrepeated = sum(len(chapter.members) + len(chapter.hidden) for chapter in candidates)
    shown = sum(len(chapter.members) + (len(chapter.hidden) if chapter.explanation else 0) for chapter in chapters)
    return Selection(folder, entries, chapters, len(entries) - unrepeated, unrepeated - shown, specs)


def result_files(folder: Path) -> list[Path]:
    """Return the result files of a folder, at least one.

    Raises:
        DataError: the folder is missing or has no results.
    """
    paths = files.files(folder)
    if not paths:
        raise DataError(f"no results in {folder}", "Name a folder that `devbench run` wrote results to.")
    return paths


def _entry(path: Path, result: Result, specs: dict[str, Spec]) -> Entry:
    """Return the entry of a result, and put its spec into `specs`."""
    specs.setdefault(result.key, result.spec)
    return Entry(
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
        has_workers=result.spec.workers is not None,
        status=result.status,
        step=result.summary.step_seconds,
        processes=max((interval.n for interval in _intervals(result)), default=0),
    )


def _intervals(result: Result) -> Iterator[Interval]:
    """Yield the intervals whose `n` is a number of processes that timed something."""
    if result.summary.step_seconds is not None:
        yield result.summary.step_seconds
    yield from result.summary.series.values()


def _chapter_key(entry: Entry, explanations: Mapping[str, Explanation]) -> tuple[ChapterKind, str]:
    """Return what a result is shown with: its sweep, scaling study or explanation if that exists, or else its group."""
    if entry.purpose == "sweep" and entry.parent:
        return "sweep", entry.parent
    if entry.has_workers and entry.parent:
        return "scaling", entry.parent
    if entry.parent in explanations:
        return "explanation", entry.parent or ""
    return "results", entry.group


def _without_repeats(kind: ChapterKind, groups: Mapping[tuple[ChapterKind, str], list[Entry]]) -> list[ChapterEntries]:
    """Return the groups of a kind, newest first, without those that a newer group repeats completely."""
    by_identity: dict[tuple[str, str], list[tuple[frozenset[tuple[str, str]], ChapterEntries]]] = {}
    chapters = []
    of_kind = [group for (group_kind, _), group in groups.items() if group_kind == kind]
    for group in sorted(of_kind, key=lambda g: max(entry.created for entry in g), reverse=True):
        identities = frozenset(entry.identity for entry in group)
        candidates = by_identity.get(group[0].identity, [])
        newer = next((chapter for contained, chapter in candidates if identities <= contained), None)
        if newer is not None:
            newer.runs += 1
            continue
        grouped = kind != "results" or len(group) > 1
        chapter = ChapterEntries(group, grouped=grouped, sweep=kind == "sweep", scaling=kind == "scaling")
        chapters.append(chapter)
        for identity in identities:
            by_identity.setdefault(identity, []).append((identities, chapter))
    return chapters


def _chapters(groups: Iterable[ChapterEntries], explanations: Mapping[str, Explanation]) -> list[ChapterEntries]:
    """Limit each group to what is shown. Collect single results by workload, those of the reference backend first."""
    chapters, single = [], dict[str, list[ChapterEntries]]()
    for chapter in groups:
        first = chapter.members[0]
        if chapter.sweep or chapter.scaling:
            chapters.append(chapter)
        elif first.parent in explanations:
            levels = [entry for entry in chapter.members if entry.purpose == "level"]
            if levels:
                chapter.hidden = [entry for entry in chapter.members if entry not in levels]
                chapter.members = levels
            chapter.explanation = explanations[first.parent or ""]
            chapters.append(chapter)
        elif chapter.grouped:
            chapter.members, chapter.hidden = chapter.members[:MEMBERS], chapter.members[MEMBERS:]
            chapters.append(chapter)
        else:
            single.setdefault(first.title, []).append(chapter)
    for of_workload in single.values():  # newest first
        members = [chapter.members[0] for chapter in of_workload]
        shown = sorted(members[:MEMBERS], key=lambda entry: (entry.backend != reference(), entry.created))
        runs = max(chapter.runs for chapter in of_workload)
        chapters.append(ChapterEntries(shown, grouped=False, runs=runs, hidden=members[MEMBERS:]))
    return chapters
