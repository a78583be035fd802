"""What a run ends with on a terminal: one table of 80 columns for each group, and below it what to know of it.

The results of a group, whose workers took turns, stand side by side; where they are too many for the
width, in several tables. Below stand the verdicts, failures, warnings with what to do, and notes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from bench.analyse.pairing import grouped
from bench.model.comparison import Comparison, Matrix
from bench.model.result import Result
from bench.render.fields import FIELDS, Field
from bench.render.report.names import names
from bench.render.terminal import verdicts
from bench.render.text import filled, plain

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

WIDTH = 80
SIDE_BY_SIDE = 3
"""Columns of results that fit beside the labels with a figure and its error each on one line."""

LABELS = 26
LAST_LINES = 8


def show(
    results: Sequence[Result], comparisons: Sequence[Comparison], stream: TextIO, matrices: Sequence[Matrix] = ()
) -> None:
    """Writes `render`'s tables; colours only on a terminal.

    Args:
        results: of any groups, in the order they ran.
        comparisons: of the results with their group's first; failed ones are not told.
        stream: stdout, mostly.
        matrices: of groups of several.
    """
    if not stream.isatty():
        plain = text(results, comparisons, matrices=matrices)
        try:
            plain.encode(stream.encoding or "utf-8")
        except UnicodeEncodeError:
            plain = plain.replace("─", "-").replace("→", ">")
        stream.write(plain)
        return
    from rich.console import Console

    console = Console(file=stream, width=WIDTH, highlight=False, markup=False, emoji=False)
    for each in render(results, comparisons, WIDTH, matrices):
        console.print(each)


def text(
    results: Sequence[Result], comparisons: Sequence[Comparison], width: int = WIDTH, matrices: Sequence[Matrix] = ()
) -> str:
    """The same as plain text."""
    import io

    from rich.console import Console

    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None, force_terminal=False, highlight=False, emoji=False)
    for each in render(results, comparisons, width, matrices):
        console.print(each)
    return "".join(line.rstrip() + "\n" for line in stream.getvalue().splitlines())


def render(
    results: Sequence[Result], comparisons: Sequence[Comparison], width: int = WIDTH, matrices: Sequence[Matrix] = ()
) -> Iterator[RenderableType]:
    """Tables, matrices and paragraphs, group by group, none wider than `width`."""
    from rich.text import Text

    for group in grouped(results):
        tables = math.ceil(len(group) / SIDE_BY_SIDE)
        size = math.ceil(len(group) / tables)
        heads = _heads(group)
        for start in range(0, len(group), size):
            yield _table(group[start : start + size], heads[start : start + size], width)
        whole = {each.id for each in group if each.status != "failed"}
        for found in matrices:
            if {side.id for side in found.results} <= whole:
                yield Text("".join(f"{line}\n" for line in verdicts.matrix(found)))
        yield from _paragraphs(group, comparisons, width)


def name(result: Result) -> str:
    """What a result is called in a sentence."""
    return result.spec.label


def _heads(group: Sequence[Result]) -> list[str]:
    """A head for each result's column: workload, backend and loop; where these are the same, what tells them apart."""
    heads = [(each.spec.title, each.spec.backend, each.spec.loop) for each in group]
    if len(set(heads)) < len(heads):
        return ["\n".join(map(plain, (*head, told))) for head, told in zip(heads, names(group), strict=True)]
    return ["\n".join(map(plain, head)) for head in heads]


def _table(results: Sequence[Result], heads: Sequence[str], width: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    column = (width - LABELS - 2 * len(results)) // len(results)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
    table.add_column("", width=LABELS, overflow="fold")
    for head in heads:
        table.add_column(Text(head), width=column, overflow="fold")
    for heading, field, label, cells in all_rows(results):
        if heading is not None:
            table.add_row(Text(heading, style="bold"))
        style = "bold red" if any(alarming(field, each) for each in cells) else ""
        indent = "  " if field.section else ""
        table.add_row(Text(indent + plain(label)), *(Text(plain(each), style=style) for each in cells))
    return table


def all_rows(results: Sequence[Result]) -> Iterator[tuple[str | None, Field, str, list[str]]]:
    """Every row: the heading that comes before it, if one does; its field, label and cells."""
    section = ""
    for field in FIELDS:
        for label, cells in rows(field, results):
            yield (field.section if field.section != section else None), field, label, cells
            section = field.section


def rows(field: Field, results: Sequence[Result]) -> Iterator[tuple[str, list[str]]]:
    """A field's label and cells, with "–" where a result lacks what another has."""
    columns = [field.rows(each) for each in results]
    for label in _merged(columns):
        yield label, [column.get(label, "–") for column in columns]


def _merged(columns: Sequence[Iterable[str]]) -> list[str]:
    """All labels, each where its own column has it, after the one that precedes it there."""
    order: list[str] = []
    for column in columns:
        place = 0
        for label in column:
            if label not in order:
                order.insert(place, label)
            place = order.index(label) + 1
    return order


def alarming(field: Field, cell: str) -> bool:
    """Whether a cell says that a result is not what it should be."""
    return (field.key == "status" and cell != "complete") or (field.key == "placement" and cell.startswith("NOT"))


def _paragraphs(group: Sequence[Result], comparisons: Sequence[Comparison], width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    blocks = [*_verdicts(group, comparisons), *remarks(group)]
    for head, lines, style in blocks:
        yield Text(_wrapped(head, width), style=style)
        for line in lines:
            yield Text(_wrapped(line, width, 2))
    yield Text("")


Paragraph = tuple[str, list[str], str]
"""A sentence, the lines below it, and its colour: red for a failure, yellow for a warning."""


def remarks(group: Sequence[Result]) -> list[Paragraph]:
    """What to know of a group beside its figures: failures, warnings and notes."""
    return [*_failures(group), *_warnings(group), *_notes(group)]


def _verdicts(group: Sequence[Result], comparisons: Sequence[Comparison]) -> Iterator[Paragraph]:
    whole = {each.id for each in group if each.status != "failed"}
    turns = "" if all(each.interleaved for each in group) else " (whole processes took turns: memory holds no trial)"
    for found in comparisons:
        if not {found.base.id, found.other.id} <= whole or found.ratio is None:
            continue
        if found.unfair:
            head = f"not compared: {found.other.label} and {found.base.label}"
            yield head, [verdicts.differing(each) for each in found.unfair], "yellow"
            continue
        even = found.break_even
        told = verdicts.cold_start(found, even) if even else ""
        apart = [verdicts.differing(each) for each in found.differences if each.name == "first losses"]
        more = [verdicts.by_the_mean(found), told]
        yield verdicts.sentence(found) + turns, [*filter(None, more), *apart], ""


def _failures(group: Sequence[Result]) -> Iterator[Paragraph]:
    for each in group:
        failure = each.failure
        if failure is None:
            continue
        how = [failure.message.rstrip("."), f"while in {failure.phase}" if failure.phase else ""]
        ended = failure.signal or (f"exit code {failure.exit_code}" if failure.exit_code is not None else "")
        how.append(f"({ended})" if ended and ended not in failure.message else "")
        lines = [*failure.hint.splitlines(), *(f"| {line}" for line in failure.last_lines[-LAST_LINES:])]
        yield f"{each.status}: {name(each)}: {' '.join(filter(None, how))}", lines, "red"


def _warnings(group: Sequence[Result]) -> Iterator[Paragraph]:
    found = _shared(group, lambda each: [(warned.message, warned.fix) for warned in each.warnings])
    for (message, fix), whose in found:
        yield f"warning: {whose}{message}", [fix] if fix else [], "yellow"


def _notes(group: Sequence[Result]) -> Iterator[Paragraph]:
    for note, whose in _shared(group, lambda each: [*each.notes, *(n for s in each.samples for n in s.notes)]):
        yield f"note: {whose}{note}", [], ""


def _shared(group: Sequence[Result], read: Callable[[Result], Iterable[Any]]) -> list[tuple[Any, str]]:
    """Each thing once, with whose it is where it is not everybody's."""
    owners: dict[Any, list[Result]] = {}
    for each in group:
        for thing in dict.fromkeys(read(each)):
            owners.setdefault(thing, []).append(each)
    return [
        (thing, "" if len(whose) == len(group) else "; ".join(map(name, whose)) + ": ")
        for thing, whose in owners.items()
    ]


def _wrapped(line: str, width: int, indent: int = 0) -> str:
    line = plain(line)
    return "\n".join(filled(line if line.startswith("| ") else " ".join(line.split()), width, indent))
