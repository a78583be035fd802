"""The phases before the steady state: a stacked bar for each result, and a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bench.model.interval import Interval
from bench.model.phase import START_PHASES, Phase
from bench.model.result import Result, Summary
from bench.render import numbers
from bench.render.charts import phases
from bench.render.labels import phase_label
from bench.render.report.document import Figure, Row, Section, Table
from bench.render.report.result_set import ResultSet

STACKED: tuple[Phase, ...] = (*START_PHASES, "warm_up")
"""The phases that follow each other. The others happen after the steps or within a training."""

TOTALS: dict[str, Callable[[Summary], Interval | None]] = {
    "cold start": lambda summary: summary.cold_start_seconds,
    "cold start and warm-up": lambda summary: summary.warmed_up_seconds,
}
"""The totals below the phases."""


def section(results: ResultSet) -> Section | None:
    """Return the phases and their intervals; None if no process reached its first step."""
    labelled = [(label, result) for label, result in results.labelled if _phases(result)]
    if not labelled:
        return None
    present = [phase for phase in STACKED if any(phase in _phases(result) for _, result in labelled)]
    number = {phase: n for n, phase in enumerate(present, 1)}
    segments = [
        phases.Segment(label, number[phase], _phases(result)[phase].value, phases.colour(phase))
        for label, result in labelled
        for phase in present
        if phase in _phases(result)
    ]
    rows = [
        Row(
            f"{n} {phase_label(phase)}",
            tuple(_cell(_phases(result).get(phase)) for _, result in labelled),
            "",
            phases.colour(phase),
        )
        for phase, n in number.items()
    ]
    for total, read in TOTALS.items():
        rows.append(Row(total, tuple(_cell(read(result.summary)) for _, result in labelled)))
    head = ("phase", *(label for label, _ in labelled))
    table = Table("Phases of a cold start and warm-up, means over processes", head, tuple(rows))
    caption = "Time from the start of the process to the steady state. The numbers refer to the rows of the table."
    return Section("Phases", (Figure(caption, _alt(labelled), partial(phases.draw, segments)), table))


def _phases(result: Result) -> dict[Phase, Interval]:
    return {name: seconds for name, seconds in result.summary.phases.items() if name in STACKED}


def _cell(seconds: Interval | None) -> str:
    return numbers.interval(seconds) if seconds else "–"


def _alt(labelled: list[tuple[str, Result]]) -> str:
    bars = []
    for label, result in labelled:
        phase, seconds = max(_phases(result).items(), key=lambda item: item[1].value)
        longest = f"longest phase {phase_label(phase)} with {numbers.time(seconds.value)}"
        total = result.summary.warmed_up_seconds
        bars.append(f"{label} {numbers.time(total.value)}, {longest}" if total else f"{label}, {longest}")
    return f"Stacked bars of the phases before the steady state: {'; '.join(bars)}."
