"""The rows of a table of results, one column for each result, for the terminal and the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.model.result import Result
from bench.render.fields import FIELDS
from bench.render.fields.field import Cell

ABSENT = Cell("–")


@dataclass(frozen=True)
class FieldRow:
    """A row of a table: its heading, its label, and a cell for each result."""

    heading: str
    label: str
    cells: tuple[Cell, ...]

    @property
    def alarms(self) -> tuple[int, ...]:
        """Positions of the cells that report a problem."""
        return tuple(place for place, cell in enumerate(self.cells) if cell.alarm)


def rows(results: Sequence[Result], brief: bool = False) -> Iterator[FieldRow]:
    """Yield the rows of a table of results.

    Args:
        results: one for each column.
        brief: whether to yield only the rows of the short table. It has no status if all results are complete.
    """
    for field in FIELDS:
        if brief and not field.brief:
            continue
        columns = [field.cells(result, brief) for result in results]
        for label in _merged(columns):
            row = FieldRow(
                "" if brief else field.heading, label, tuple(column.get(label, ABSENT) for column in columns)
            )
            if not (brief and field.key == "status" and not row.alarms):
                yield row


def _merged(columns: Sequence[Iterable[str]]) -> list[str]:
    """Merge the labels of all columns into one list that keeps the order of each column."""
    order: list[str] = []
    for column in columns:
        place = 0
        for label in column:
            if label not in order:
                order.insert(place, label)
            place = order.index(label) + 1
    return order
