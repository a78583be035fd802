"""The overview: what was run, by pool and backend, each beside its own pool's CPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, select

from bench.analyse import stats
from bench.analyse.compare import Comparison
from bench.hub import comparing, reading, records
from bench.hub.database import Database
from bench.hub.pages.layout import Page, address
from bench.hub.tables import RESULTS
from bench.output import numbers
from bench.output.lines import plain
from bench.output.report.names import names
from bench.output.report.parts import Remark, Row, Section, Table
from bench.result import Result

MOST = 2_000
"""Comparison keys that are looked at, the newest."""

ROWS = 150
"""Programs in the table, those that ran last."""

NEEDED = [
    RESULTS.c[name]
    for name in (
        "work", "title", "loop", "label", "pool", "backend", "digest", "together", "status", "failure", "created",
        "step", "step_low", "step_high", "processes",
    )
]  # fmt: skip
BATCH = 500
Column = tuple[str, str]
"""Pool and backend."""


def page(database: Database, threshold: float) -> Page:
    """The page."""
    with database.read() as connection:
        found = reading.latest(connection, *NEEDED, most=MOST)
        if not found:
            hint = "devbench run WORKLOAD --hub … sends its results here; devbench push DIR those of a folder"
            return Page(
                "Overview", (Section("Side by side", (Remark("note", f"nothing is here yet. {hint}"),)),), within="/"
            )
        bases = _group_bases(connection, found)
    cells: dict[str, dict[Column, Any]] = {}
    for each in found:  # newest first
        cells.setdefault(each.work, {}).setdefault((each.pool, each.backend), each)
    shown = list(cells)[:ROWS]
    pairs = {
        other.id: base
        for work in shown
        for column, other in cells[work].items()
        if (base := _base(cells[work], column, other, bases)) is not None
    }
    rows_of = {row.id: row for work in shown for row in cells[work].values()}
    asked = [((base.id, name), (base.digest, rows_of[name].digest)) for name, base in pairs.items()]
    verdicts = comparing.known(database, asked, threshold)
    compared = {other: (base, verdicts[digests]) for ((base, other), digests) in asked if digests in verdicts}
    labels = _labels(database, {work: next(iter(cells[work].values())) for work in shown})
    return _page(shown, cells, labels, compared, len(cells))


def _page(
    shown: Sequence[str],
    cells: Mapping[str, Mapping[Column, Any]],
    labels: Mapping[str, str],
    compared: Mapping[str, tuple[str, Comparison]],
    count: int,
) -> Page:
    """The page of what was found out."""
    pools: dict[str, list[str]] = {}
    for work in shown:
        for pool, backend in cells[work]:
            if backend not in pools.setdefault(pool, []):
                pools[pool].append(backend)
    sections = []
    for pool in sorted(pools):
        backends = sorted(pools[pool], key=lambda name: (name != "cpu", name))
        rows = [
            _row(labels[work], [(backend, cells[work].get((pool, backend))) for backend in backends], compared)
            for work in shown
            if any((pool, backend) in cells[work] for backend in backends)
        ]
        head = ["program", *(part for name in backends for part in _head(name))]
        caption = f"Newest result of each program in {pool}: time of a step, and beside its CPU"
        sections.append(Section(plain(pool), (Table(plain(caption), tuple(head), tuple(rows)),)))
    about = [f"{numbers.several(count, 'program')}, whatever ran last first."]
    if count > len(shown):
        about.append(f"The table has the {len(shown)} that ran last; the list of results has all.")
    return Page("Overview", tuple(sections), about=tuple(about), within="/")


def _head(backend: str) -> list[str]:
    return [backend] if backend == "cpu" else [backend, f"{backend} as against cpu"]


def _row(label: str, columns: Sequence[tuple[str, Any]], compared: Mapping[str, tuple[str, Comparison]]) -> Row:
    texts: list[str] = []
    links = [""]
    wrong: list[int] = []
    for backend, found in columns:
        if found is not None and found.status != "complete":
            wrong.append(len(texts))
        texts.append(_time(found) if found is not None else "–")
        links.append(address("results", found.id) if found is not None else "")
        if backend != "cpu":
            base, comparison = compared.get(found.id, ("", None)) if found is not None else ("", None)
            texts.append(_verdict(comparison))
            links.append(address("compare", base=base, other=found.id) if comparison else "")
    return Row(label, tuple(texts), "alarm" if wrong else "", wrong=tuple(wrong), links=tuple(links))


def _time(found: Any) -> str:
    step = records.interval(found)
    told = [] if found.status == "complete" else [found.status + (f" ({found.failure})" if found.failure else "")]
    if step:
        told.append(numbers.interval(step))
    return ": ".join(told) or "no step"


def _verdict(found: Comparison | None) -> str:
    if found is None or found.ratio is None:
        return "–"
    if found.unfair:
        return f"not comparable: {found.unfair[0].name}"
    if found.ratio.value <= 0:
        return "–"
    return f"{found.verdict}, {numbers.times(stats.inverse(found.ratio))} as fast"


def _base(row: Mapping[Column, Any], column: Column, other: Any, bases: Mapping[tuple[str, str], Any]) -> Any:
    """The CPU's result that another backend's stands beside: that of its own group, else the pool's newest."""
    pool, backend = column
    if backend == "cpu":
        return None
    return bases.get((other.together, other.work)) or row.get((pool, "cpu"))


def _group_bases(connection: Connection, found: Iterable[Any]) -> dict[tuple[str, str], Any]:
    """Group and program: the CPU's result of the group in which another backend's newest took turns."""
    groups = sorted({each.together for each in found if each.backend != "cpu"})
    bases = {}
    for start in range(0, len(groups), BATCH):
        chosen = select(RESULTS.c.id, *NEEDED).where(
            RESULTS.c.together.in_(groups[start : start + BATCH]),
            RESULTS.c.backend == "cpu",
            RESULTS.c.purpose == "run",
        )
        for each in connection.execute(chosen):
            bases[each.together, each.work] = each
    return bases


def _labels(database: Database, rows: Mapping[str, Any]) -> dict[str, str]:
    """What each program is called: title and loop, and where several share these, what tells them apart."""
    usual = {work: f"{row.title}, {row.loop}" for work, row in rows.items()}
    often = Counter(usual.values())
    found = dict(usual)
    for text in [text for text, count in often.items() if count > 1]:
        same = [work for work in rows if usual[work] == text]
        apart = _apart(database, tuple(rows[work].id for work in same))
        found |= {work: f"{text}, {more}" for work, more in zip(same, apart, strict=True)}
    return found


@lru_cache(maxsize=64)
def _apart(database: Database, ids: tuple[str, ...]) -> list[str]:
    """What tells results apart, whatever their backend; results do not change in that."""
    heads: dict[str, str] = {}
    with database.read() as connection:
        for start in range(0, len(ids), BATCH):
            chosen = select(RESULTS.c.id, RESULTS.c.head).where(RESULTS.c.id.in_(ids[start : start + BATCH]))
            heads |= {row.id: row.head for row in connection.execute(chosen)}
    found = [Result.model_validate_json(heads[name]) for name in ids if name in heads]
    if len(found) < len(ids):  # removed meanwhile
        return list(ids)
    first = found[0].spec
    alike = [
        each.model_copy(
            update={"spec": each.spec.model_copy(update={"backend": first.backend, "threads": first.threads})}
        )
        for each in found
    ]
    return [plain(name) for name in names(alike)]
