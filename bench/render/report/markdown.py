"""A report for a pull request: sentences first, figures in tables, the rest folded away; short enough for a comment."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bench.render.report.parts import Chapter, Remark, Report, Section, Table

LONGEST = 60_000
"""Characters; GitHub takes 65,536 in a comment."""

_MARKS = {"failure": "❌ ", "warning": "⚠️ ", "note": "", "cause": ""}


def render(report: Report, version: str) -> str:
    """The text.

    Args:
        report: what it says.
        version: of devbench.
    """
    head = [f"## {_text(report.title)}", "", *(_text(line) for line in report.about), ""]
    tail = f"\nMade by devbench {version}; intervals are at 95%.\n"
    chapters = [_chapter(each) for each in report.chapters]
    room = LONGEST - len("\n".join(head)) - len(tail) - 200
    shown: list[str] = []
    for whole, short in chapters:
        text = whole if len(whole) <= room else short if len(short) <= room else ""
        if not text:
            break
        shown.append(text)
        room -= len(text) + 1
    missing = len(chapters) - len(shown)
    if missing:
        shown.append(f"{missing} more chapters do not fit here; `devbench report DIR` writes them all as HTML.\n")
    return "\n".join([*head, *shown]) + tail


def _chapter(chapter: Chapter) -> tuple[str, str]:
    """A chapter with everything, and with its sentences only."""
    head = [f"### {_text(chapter.title)}", "", *(f"- **{_text(each)}.**" for each in chapter.sentences), ""]
    about = [_text(chapter.about), ""]
    brief = [line for section in chapter.sections if section.brief for line in _section(section)]
    rest = [line for section in chapter.sections if not section.brief for line in _section(section)]
    titles = ", ".join(section.title.lower() for section in chapter.sections if not section.brief)
    opened = f"<details><summary>{titles.capitalize()}</summary>"
    folded = [opened, "", *rest, "</details>", ""] if rest else []
    return "\n".join([*head, *about, *brief, *folded]), "\n".join([*head, *about])


def _section(section: Section) -> Iterable[str]:
    yield from (f"#### {_text(section.title)}", "")
    for part in section.parts:
        if isinstance(part, Table):
            yield from _table(part)
        elif isinstance(part, Remark):
            yield f"- {_MARKS[part.kind]}{_text(part.text)}"
            yield from (f"  {_text(line)}" for line in part.more)
            if part.lines:
                yield from ("", "  ```text", *(f"  {line.replace('```', '')}" for line in part.lines), "  ```", "")
    yield ""


def _table(table: Table) -> Iterable[str]:
    yield f"{_text(table.caption)}:"
    yield ""
    yield _line([_text(each) for each in table.head])
    yield _line([":--", *("--:" if figures else ":--" for figures in table.figures)])
    for row in table.rows:
        label, cells = _text(row.label), [_text(each) for each in row.cells]
        if row.kind == "heading":
            label, cells = f"**{label}**", [""] * (len(table.head) - 1)
        elif row.kind == "alarm":
            label = f"❗ {label}"
            cells = [f"**{each}**" if row.alarming(place) else each for place, each in enumerate(cells)]
        elif row.kind == "differs":
            label = f"≠ {label}"
        yield _line([label, *cells])
    yield ""


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _text(text: str) -> str:
    """A text in which nothing is taken for a mark."""
    return re.sub(r"([\\`*_<>|#\[\]~])", r"\\\1", " ".join(text.split()))
