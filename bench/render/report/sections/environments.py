"""The specs of the results and where they ran, with differences marked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from bench.analyse.comparable import AXES, SECONDARY
from bench.model.environment import ROWS
from bench.model.result import Result
from bench.render import numbers
from bench.render.report.document import Row, Section, Table
from bench.render.report.result_set import ResultSet
from bench.render.text import plain


def section(results: ResultSet, swept: Collection[str] = ()) -> Section | None:
    """Return a table of the environments and one of the specs.

    Results with the same values share a column. Rows without any value are left out.

    Args:
        results: the results that are shown.
        swept: parameters that vary along a sweep. They are left out.
    """
    specs = [
        (label, {key: value for key, value in _spec(result).items() if key not in swept})
        for label, result in results.labelled
    ]
    environments = [(label, _environment(result)) for label, result in results.labelled]
    tables = (_table("Where it ran", environments), _table("Specs", specs))
    return Section("Environments", tuple(table for table in tables if table.rows))


def _table(caption: str, labelled: list[tuple[str, dict[str, str]]]) -> Table:
    """Return a table with a column for each different set of values, headed by the labels of its results."""
    columns: list[tuple[list[str], dict[str, str]]] = []
    for label, values in labelled:
        labels = next((labels for labels, others in columns if others == values), None)
        if labels is None:
            columns.append(([label], values))
        else:
            labels.append(label)
    head = ["all"] if len(columns) == 1 else ["; ".join(labels) for labels, _ in columns]
    rows = []
    for key in dict.fromkeys(key for _, values in columns for key in values):
        cells = tuple(values.get(key, "–") for _, values in columns)
        if set(cells) != {"–"}:
            rows.append(Row(key, cells, "differs" if len(set(cells)) > 1 else ""))
    return Table(caption, ("", *head), tuple(rows), prose=True)


def _spec(result: Result) -> dict[str, str]:
    spec = result.spec
    values = {name: _text(getattr(spec, name)) for name in (*AXES, *SECONDARY)}
    values["xla"] = "chosen by the program" if spec.xla is None else values["xla"]
    values["data"] = ", ".join(filter(None, (spec.data.kind, spec.data.name)))
    return {"workload": plain(spec.title), **values, **{name: _text(value) for name, value in spec.params.items()}}


def _environment(result: Result) -> dict[str, str]:
    rows = result.environment.rows()
    return {name: numbers.size(value) if ROWS[name].size and value else _text(value) for name, value in rows.items()}


def _text(value: Any) -> str:
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(part)}" for key, part in value.items() if part is not None) or "–"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "–"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "–" if value is None or value == "" else plain(str(value))
