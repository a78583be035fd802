"""A report as Markdown for a pull request: the outcome first, details folded away, short enough for one comment."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bench.render.messages import Message
from bench.render.report.document import Chapter, ReportDocument, Section, Table

LONGEST = 60_000
"""Maximum length of a report, in characters. GitHub accepts 65,536 in a comment."""

_MARKS = {"failure": "❌ ", "warning": "⚠️ ", "note": "", "cause": ""}


def render(report: ReportDocument, version: str) -> str:
    """Return the Markdown of a report. Chapters that do not fit are shortened or left out.

    Args:
        report: the report.
        version: the version of devbench.
    """
    head = [f"## {_text(report.title)}", "", *(_text(line) for line in report.about), ""]
    tail = f"\nMade by devbench {version}. Intervals have 95% confidence.\n"
    chapters = [_chapter(chapter) for chapter in report.chapters]
    room = LONGEST - len("\n".join(head)) - len(tail) - 200
    shown: list[str] = []
    for complete, short in chapters:
        text = complete if len(complete) <= room else short if len(short) <= room else ""
        if not text:
            break
        shown.append(text)
        room -= len(text) + 1
    missing = len(chapters) - len(shown)
    if missing:
        chapters_left = "1 more chapter does" if missing == 1 else f"{missing} more chapters do"
        shown.append(f"{chapters_left} not fit here. `devbench report DIR` writes all of them as HTML.\n")
    return "\n".join([*head, *shown]) + tail


def _chapter(chapter: Chapter) -> tuple[str, str]:
    """Return the Markdown of a chapter twice: in full, and without its sections."""
    head = [f"### {_text(chapter.title)}", "", *(f"- **{_text(sentence)}**" for sentence in chapter.sentences), ""]
    about = [_text(chapter.about), ""]
    brief = [line for section in chapter.sections if section.brief for line in _section(section)]
    details = [section for section in chapter.sections if not section.brief]
    title = ", ".join(section.title.lower() for section in details).capitalize()
    folded: list[str] = []
    if details:
        lines = [line for section in details for line in _section(section)]
        folded = [f"<details><summary>{title}</summary>", "", *lines, "</details>", ""]
    return "\n".join([*head, *about, *brief, *folded]), "\n".join([*head, *about])


def _section(section: Section) -> Iterable[str]:
    yield from (f"#### {_text(section.title)}", "")
    for item in section.content:
        if isinstance(item, Table):
            yield from _table(item)
        elif isinstance(item, Message):
            # A backslash ends a line, or Markdown would join it with the next one.
            yield "\\\n  ".join([f"- {_MARKS[item.kind]}{_text(item.text)}", *map(_text, item.details)])
            if item.output:
                yield from ("", "  ```text", *(f"  {line.replace('```', '')}" for line in item.output), "  ```", "")
    yield ""


def _table(table: Table) -> Iterable[str]:
    yield f"{_text(table.caption)}:"
    yield ""
    yield _line([_text(head) for head in table.head])
    yield _line([":--", *("--:" if figures else ":--" for figures in table.figures)])
    for row in table.rows:
        label, cells = _text(row.label), [_text(cell) for cell in row.cells]
        if row.kind == "heading":
            label, cells = f"**{label}**", [""] * (len(table.head) - 1)
        elif row.kind == "alarm":
            label = f"❗ {label}"
            cells = [f"**{cell}**" if row.has_alarm(place) else cell for place, cell in enumerate(cells)]
        elif row.kind == "differs":
            label = f"≠ {label}"
        yield _line([label, *cells])
    yield ""


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _text(text: str) -> str:
    """Return a text on one line, with Markdown's special characters escaped."""
    return re.sub(r"([\\`*_<>|#\[\]~])", r"\\\1", " ".join(text.split()))
