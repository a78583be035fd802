"""What was asked for and where it ran, with the differences marked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from bench.analyse.comparable import AXES, SECONDARY
from bench.model.environment import ROWS
from bench.model.result import Result
from bench.render import numbers
from bench.render.report.parts import Row, Section, Table
from bench.render.report.subject import Subject
from bench.render.text import plain


def section(subject: Subject, swept: Collection[str] = ()) -> Section | None:
    """Two tables; results that agree in all of one share its column, and what nothing is known of has none.

    Args:
        subject: what is shown.
        swept: parameters that each point of a sweep has another value of.
    """
    asked = [
        (name, {key: told for key, told in _spec(each).items() if key not in swept}) for name, each in subject.named
    ]
    spec = _table("What was asked for", asked)
    place = _table("Where it ran", [(name, _environment(each)) for name, each in subject.named])
    return Section("Environments", tuple(table for table in (place, spec) if table.rows))


def _table(caption: str, told: list[tuple[str, dict[str, str]]]) -> Table:
    """A column for each different set of values, headed by all names that have it."""
    columns: list[tuple[list[str], dict[str, str]]] = []
    for name, values in told:
        same = next((names for names, known in columns if known == values), None)
        if same is None:
            columns.append(([name], values))
        else:
            same.append(name)
    head = ["all"] if len(columns) == 1 else ["; ".join(names) for names, _ in columns]
    rows = []
    for key in dict.fromkeys(key for _, values in columns for key in values):
        cells = tuple(values.get(key, "–") for _, values in columns)
        rows.append(Row(key, cells, "differs" if len(set(cells)) > 1 else ""))
    known = tuple(row for row in rows if set(row.cells) != {"–"})
    return Table(caption, ("", *head), known, prose=True)


def _spec(result: Result) -> dict[str, str]:
    spec = result.spec
    found = {name: _shown(getattr(spec, name)) for name in (*AXES, *SECONDARY)}
    found["xla"] = "as the program decides" if spec.xla is None else found["xla"]
    found["data"] = ", ".join(filter(None, (spec.data.kind, spec.data.name)))
    return {"workload": plain(spec.title), **found, **{name: _shown(value) for name, value in spec.params.items()}}


def _environment(result: Result) -> dict[str, str]:
    rows = result.environment.rows()
    return {name: numbers.size(value) if ROWS[name].size and value else _shown(value) for name, value in rows.items()}


def _shown(value: Any) -> str:
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(part)}" for key, part in value.items() if part is not None) or "–"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "–"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "–" if value is None or value == "" else plain(str(value))
