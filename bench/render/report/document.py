"""A report as plain data, independent of how it is written."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bench.render.messages import Message

FIGURE = re.compile(r"[+-]?[\d.,]+($|%|\s.{1,20}$)|–$")
"""A cell that holds a figure, perhaps with its error and unit."""


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Args:
        label: the first cell.
        cells: the text of each further column.
        kind: `heading` of the rows below it, `alarm` if it reports a problem, `differs` if it marks a difference.
        swatch: colour that a chart uses for the same thing, as #rrggbb.
        wrong: positions of the cells that report the problem of an `alarm`; all cells if empty.
        links: where the label and the cells lead on a server's pages. A report has none.
    """

    label: str
    cells: tuple[str, ...] = ()
    kind: Literal["", "heading", "alarm", "differs"] = ""
    swatch: str = ""
    wrong: tuple[int, ...] = ()
    links: tuple[str, ...] = ()

    def link(self, place: int) -> str:
        """Return where the label (0) or a cell (from 1) leads; empty if it is no link."""
        return self.links[place] if place < len(self.links) else ""

    def has_alarm(self, place: int) -> bool:
        """Return whether a cell reports a problem."""
        return self.kind == "alarm" and (not self.wrong or place in self.wrong)


@dataclass(frozen=True)
class Table:
    """A table.

    Args:
        caption: what it shows.
        head: names of all columns, that of the labels first.
        rows: in the order of reading.
        prose: whether the columns hold words, even if they look like figures.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    prose: bool = False

    @property
    def figures(self) -> tuple[bool, ...]:
        """For each column after the labels: whether it mostly holds figures, which are aligned to the right."""
        rows = [row.cells for row in self.rows if row.cells]
        columns = [[row[n] for row in rows] for n in range(len(self.head) - 1)]
        return tuple(
            not self.prose and 2 * sum(FIGURE.match(cell) is not None for cell in column) >= max(1, len(column))
            for column in columns
        )


@dataclass(frozen=True)
class Figure:
    """A chart. Its section has a table with the same figures.

    Args:
        caption: what it shows, with the unit.
        alt: its content as text, for readers who cannot see it.
        draw: returns its SVG.
    """

    caption: str
    alt: str
    draw: Callable[[], str]


@dataclass(frozen=True)
class Section:
    """A part of a chapter, about one question.

    Args:
        title: a word or two.
        content: in the order of reading.
        brief: whether the Markdown report shows it unfolded.
    """

    title: str
    content: tuple[Table | Figure | Message, ...]
    brief: bool = False


@dataclass(frozen=True)
class Chapter:
    """Results that belong together.

    Args:
        name: a word for links, unique in the report.
        title: what was measured.
        sentences: the outcome, in complete sentences.
        about: how and when it was measured.
        sections: the figures.
    """

    name: str
    title: str
    sentences: tuple[str, ...]
    about: str
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class ReportDocument:
    """A report.

    Args:
        title: the heading.
        about: the source and what is left out, in complete sentences.
        chapters: in the order of reading.
        all_results: every result with its step time; None if each has a chapter.
    """

    title: str
    about: tuple[str, ...]
    chapters: tuple[Chapter, ...]
    all_results: Table | None = None
