"""What failed, what is doubtful and what to do about it, and what else to know."""

from __future__ import annotations

from typing import Literal

from bench.render.report.parts import Remark, Section
from bench.render.report.subject import Subject
from bench.render.terminal.table import remarks
from bench.render.text import plain

KINDS: dict[str, Literal["failure", "warning", "note"]] = {"red": "failure", "yellow": "warning", "": "note"}


OUTPUT = "| "
"""Begins a line that the program itself wrote."""


def section(subject: Subject) -> Section | None:
    """Everything that the terminal's table says below its figures; none where it says nothing."""
    told = tuple(_remark(*each) for each in remarks(subject.results))
    return Section("Failures, warnings and notes", told, brief=True) if told else None


def _remark(head: str, more: list[str], style: str) -> Remark:
    kind = KINDS[style]
    lines = tuple(plain(each).rstrip().removeprefix(OUTPUT) for each in more if each.startswith(OUTPUT))
    return Remark(
        kind,
        plain(head).removeprefix(f"{kind}: "),  # the mark says it too
        tuple(plain(each) for each in more if not each.startswith(OUTPUT)),
        lines,
    )
