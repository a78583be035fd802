"""The figures of the terminal's table, side by side."""

from __future__ import annotations

from bench.model.result import Result
from bench.render.report.parts import Row, Section, Table
from bench.render.report.subject import Subject
from bench.render.terminal.table import alarming, all_rows
from bench.render.text import plain

SIDE_BY_SIDE = 8
"""Columns of one table."""


def section(subject: Subject) -> Section | None:
    """Tables of up to `SIDE_BY_SIDE` results each."""
    named = subject.named
    parts = [named[start : start + SIDE_BY_SIDE] for start in range(0, len(named), SIDE_BY_SIDE)]
    of = [f" ({number} of {len(parts)})" if len(parts) > 1 else "" for number in range(1, len(parts) + 1)]
    return Section("Side by side", tuple(_table(*each) for each in zip(parts, of, strict=True)), brief=True)


def _table(named: list[tuple[str, Result]], part: str) -> Table:
    results = [each for _, each in named]
    found: list[Row] = []
    for heading, field, label, cells in all_rows(results):
        if heading is not None:
            found.append(Row(heading, kind="heading"))
        wrong = tuple(place for place, cell in enumerate(cells) if alarming(field, cell))
        found.append(Row(plain(label), tuple(map(plain, cells)), "alarm" if wrong else "", wrong=wrong))
    return Table(f"All figures{part}", ("", *(name for name, _ in named)), tuple(found))
