"""How the program of a result scales: its own study, and one curve over the latest studies of all sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from bench.analyse.analysis import Scaled
from bench.hub.db import analyses, scaling_queries
from bench.hub.pages.layout import address, guarded
from bench.model.scaling import Size
from bench.render import numbers, scaling_table
from bench.render.messages import Message
from bench.render.report.document import Row, Section, Table
from bench.render.report.sections import scaling as report


def sections(connection: Connection, row: Any, threshold: float) -> list[Section]:
    """Return the sections of the study that a run belongs to, and of all sizes if these come from several studies.

    Args:
        connection: a connection to the database.
        row: the run of one size.
        threshold: smallest relative difference that matters.

    Raises:
        Problem: a result has another schema version.
    """
    return guarded(lambda: _sections(connection, row, threshold), [])


def _sections(connection: Connection, row: Any, threshold: float) -> list[Section]:
    latest = scaling_queries.latest_studies(connection, row)
    studies = {id_: _read(connection, id_, threshold) for id_ in dict.fromkeys([row.parent, *latest.values()])}
    shown = report.sections(studies[row.parent].study)
    return [*shown, _all_sizes(latest, studies)] if len(set(latest.values())) > 1 else shown


def _read(connection: Connection, study: str, threshold: float) -> Scaled:
    return analyses.scaled(connection, [level.id for level in scaling_queries.levels(connection, study)], threshold)


def _all_sizes(latest: Mapping[int, str], studies: Mapping[str, Scaled]) -> Section:
    """Return the curve over the latest run of each size, each compared with the worker of its own study."""
    found = [
        (studies[id_], size)
        for workers, id_ in latest.items()
        for size in studies[id_].study.sizes
        if size.workers == workers
    ]
    first = found[0][0].study
    one, count = scaling_table.noun(first), numbers.count(len(set(latest.values())), "study", "studies")
    head = (*scaling_table.head(first), "bare step", "started (UTC)")
    table = Table(f"Latest run of each number of {one}s, from {count}", head, tuple(_row(*each) for each in found))
    note = f"Each number of {one}s is compared with one {one} without a strategy that was measured with it."
    figures = report.figure([size for _, size in found], one)
    return Section("Scaling by the latest runs", (*figures, table, Message("note", note)))


def _row(scaled: Scaled, size: Size) -> Row:
    row, study = scaling_table.size_row(size), scaled.study
    bare = numbers.interval(study.bare) if study.bare else scaling_table.NONE
    started = next(numbers.timestamp(result.created) for result in scaled.results if result.id == size.id)
    links = (address("results", size.id), "", "", "", "", "", address("scaling", study.id))
    cells = (*row.cells, bare, started)
    return Row(row.label, cells, "alarm" if row.wrong else "", wrong=row.wrong, links=links)
