"""Where the time goes before the steady state: the phases of a cold start, one after another."""

from __future__ import annotations

from functools import partial

from bench.analyse.breakeven import START
from bench.model.result import Interval, Result
from bench.render import numbers
from bench.render.charts import bars
from bench.render.report.parts import Figure, Row, Section, Table
from bench.render.report.subject import Subject

STACKED = (*START, "warm_up")
"""The phases that follow each other; the others are measured after the steps and happen within a training."""


def section(subject: Subject) -> Section | None:
    """The phases stacked, and each with its interval; none where no process came to its first step."""
    named = [(name, each) for name, each in subject.named if _phases(each)]
    if not named:
        return None
    present = [phase for phase in STACKED if any(phase in _phases(each) for _, each in named)]
    numbered = {phase: n for n, phase in enumerate(present, 1)}
    segments = [
        bars.Segment(name, numbered[phase], phase.replace("_", " "), _phases(each)[phase].value, bars.colour(phase))
        for name, each in named
        for phase in present
        if phase in _phases(each)
    ]
    rows = [
        Row(f"{n} {phase.replace('_', ' ')}", tuple(_cell(each, phase) for _, each in named), "", bars.colour(phase))
        for phase, n in numbered.items()
    ]
    rows.append(Row("together", tuple(numbers.time(_total(each)) for _, each in named)))
    table = Table("Phases of a cold start, means over processes", ("phase", *(name for name, _ in named)), tuple(rows))
    caption = "Seconds from the start of the process to the steady state; the numbers are those of the table."
    return Section("Phases", (Figure(caption, _alt(named), partial(bars.phases, segments)), table))


def _phases(result: Result) -> dict[str, Interval]:
    return {name: found for name, found in result.summary.phases.items() if name in STACKED}


def _cell(result: Result, phase: str) -> str:
    found = _phases(result).get(phase)
    return numbers.interval(found) if found else "–"


def _total(result: Result) -> float:
    return sum(found.value for found in _phases(result).values())


def _alt(named: list[tuple[str, Result]]) -> str:
    told = []
    for name, each in named:
        longest = max(_phases(each).items(), key=lambda item: item[1].value)
        most = f"{longest[0].replace('_', ' ')} with {numbers.time(longest[1].value)}"
        told.append(f"{name} {numbers.time(_total(each))}, longest {most}")
    return f"Stacked bars of the phases before the steady state: {'; '.join(told)}."
