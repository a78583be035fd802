"""All figures of the results, side by side."""

from __future__ import annotations

from bench.model.result import Result
from bench.render.fields.rows import rows
from bench.render.report.document import Row, Section, Table
from bench.render.report.result_set import ResultSet
from bench.render.text import plain

COLUMNS = 8
"""Results in one table."""


def section(results: ResultSet) -> Section | None:
    """Return tables of up to `COLUMNS` results each."""
    labelled = results.labelled
    parts = [labelled[start : start + COLUMNS] for start in range(0, len(labelled), COLUMNS)]
    captions = [
        f"All figures ({n} of {len(parts)})" if len(parts) > 1 else "All figures" for n in range(1, len(parts) + 1)
    ]
    return Section("Side by side", tuple(map(_table, captions, parts)), brief=True)


def _table(caption: str, labelled: list[tuple[str, Result]]) -> Table:
    shown: list[Row] = []
    heading = ""
    for row in rows([result for _, result in labelled]):
        if row.heading != heading:
            heading = row.heading
            shown.append(Row(heading, kind="heading"))
        cells = tuple(plain(cell.text) for cell in row.cells)
        shown.append(Row(plain(row.label), cells, "alarm" if row.alarms else "", wrong=row.alarms))
    return Table(caption, ("", *(label for label, _ in labelled)), tuple(shown))
