"""What a report is made of: plain data, which says nothing of how it is drawn or written."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

FIGURE = re.compile(r"[+-]?[\d.,]+($|%|\s.{1,20}$)|–$")
"""A cell that holds a figure, perhaps with its error and unit."""


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Args:
        label: what the row is about.
        cells: one text for each further column.
        kind: `heading` of the rows below it, `alarm` for what is not as it should be, `differs` for a difference.
        swatch: colour by which a figure shows the same thing, as #rrggbb.
        wrong: the places of the cells that are not as they should be; none of them means all, in a row of that kind.
        links: where the label and the cells lead on a server's pages; a report has none.
    """

    label: str
    cells: tuple[str, ...] = ()
    kind: Literal["", "heading", "alarm", "differs"] = ""
    swatch: str = ""
    wrong: tuple[int, ...] = ()
    links: tuple[str, ...] = ()

    def link(self, place: int) -> str:
        """Where the label (0) or a cell (from 1) leads; empty where nowhere."""
        return self.links[place] if place < len(self.links) else ""

    def alarming(self, place: int) -> bool:
        """Whether a cell is not as it should be."""
        return self.kind == "alarm" and (not self.wrong or place in self.wrong)


@dataclass(frozen=True)
class Table:
    """Rows under a head, which names all columns, the labels' first; `prose` where figures are only named."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    prose: bool = False

    @property
    def figures(self) -> tuple[bool, ...]:
        """For each column after the labels' whether it mostly holds figures, which should end at one line."""
        rows = [row.cells for row in self.rows if row.cells]
        columns = [[row[n] for row in rows] for n in range(len(self.head) - 1)]
        return tuple(
            not self.prose and 2 * sum(FIGURE.match(cell) is not None for cell in each) >= max(1, len(each))
            for each in columns
        )


@dataclass(frozen=True)
class Figure:
    """A chart. Whatever it shows stands in a table of its section too.

    Args:
        caption: what is drawn, with the unit.
        alt: what a reader who does not see it should know.
        draw: makes its SVG, when one is wanted.
    """

    caption: str
    alt: str
    draw: Callable[[], str]


@dataclass(frozen=True)
class Remark:
    """A sentence, what belongs below it, and the last lines of a program, which stay as they are."""

    kind: Literal["failure", "warning", "note", "cause"]
    text: str
    more: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """What a chapter says of one question.

    Args:
        title: the question, in a word or two.
        parts: in the order of reading.
        brief: whether it is for a reader in a hurry too, as in a pull request.
    """

    title: str
    parts: tuple[Table | Figure | Remark, ...]
    brief: bool = False


@dataclass(frozen=True)
class Chapter:
    """Results that belong together.

    Args:
        name: a word for links, unlike any other chapter's.
        title: what was measured.
        sentences: what came out, in so many words.
        about: how it was measured, and when.
        sections: the figures.
    """

    name: str
    title: str
    sentences: tuple[str, ...]
    about: str
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Report:
    """The whole of it.

    Args:
        title: the heading.
        about: where it comes from and what it leaves out, a sentence each.
        chapters: in the order of reading.
        everything: every result with its step, where not all have a chapter.
    """

    title: str
    about: tuple[str, ...]
    chapters: tuple[Chapter, ...]
    everything: Table | None = None
