"""The table that a run ends with: one for each group of results, with verdicts, failures and warnings below it.

The table is short unless `verbose` is set: a few figures, no matrix and no notes. Results of a group stand side by
side, in several tables if there are too many for the width.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from bench.analyse.outcome import Outcome
from bench.analyse.pairing import by_group
from bench.model.comparison import FIRST_LOSSES, PYTHON_ENVIRONMENT, Comparison
from bench.model.result import Result
from bench.render import numbers
from bench.render.fields.rows import rows
from bench.render.labels import common_label, short_labels
from bench.render.messages import Message, messages
from bench.render.sentences import comparison as sentences
from bench.render.terminal.colour import has_colour
from bench.render.terminal.comparison import matrix_lines
from bench.render.text import WIDTH, encodable, plain, wrapped

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

COLUMNS = 3
"""Maximum number of results in one table. With more, a figure and its error would not fit on one line."""

LABELS = 26
BRIEF_LABELS = 20
"""Characters of the column of labels."""

NAMED = 5
"""How many packages that differ are named, unless all figures are asked for."""

STYLES = {"failure": "red", "warning": "yellow", "note": ""}
PREFIXES = {"failure": "failed: ", "warning": "warning: ", "note": "note: "}


def show(outcome: Outcome, stream: TextIO, verbose: bool = False) -> None:
    """Write the tables to a stream, in colour if it has colour.

    Args:
        outcome: the outcome, with at least one result.
        stream: where to write, usually stdout.
        verbose: whether to show every figure, the matrices and the notes.
    """
    if not has_colour(stream):
        stream.write(encodable(text(outcome, verbose), stream.encoding))
        return
    from rich.console import Console

    console = Console(
        file=stream, width=WIDTH, force_terminal=True, legacy_windows=False, highlight=False, markup=False, emoji=False
    )
    for renderable in render(outcome, verbose):
        console.print(renderable)


def text(outcome: Outcome, verbose: bool = False, width: int = WIDTH) -> str:
    """Return the tables as plain text, no line longer than `width` characters."""
    from rich.console import Console

    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None, force_terminal=False, highlight=False, emoji=False)
    for renderable in render(outcome, verbose, width):
        console.print(renderable)
    return "".join(line.rstrip() + "\n" for line in stream.getvalue().splitlines())


def render(outcome: Outcome, verbose: bool = False, width: int = WIDTH) -> Iterator[RenderableType]:
    """Yield tables, matrices and paragraphs, group by group."""
    from rich.text import Text

    for group in by_group(outcome.results):
        labels = short_labels(group)
        if len(group) > 1:
            yield Text(wrapped(common_label(group), width), style="bold")
        size = math.ceil(len(group) / math.ceil(len(group) / COLUMNS))
        for start in range(0, len(group), size):
            columns = slice(start, start + size)
            yield _table(group[columns], labels[columns] if len(group) > 1 else [common_label(group)], verbose, width)
        measured = {result.id for result in group if result.status != "failed"}
        label_of = {result.id: label for result, label in zip(group, labels, strict=True)}
        for matrix in outcome.matrices if verbose else ():
            if {side.id for side in matrix.results} <= measured:
                yield Text("\n".join(matrix_lines(matrix, label_of, width)) + "\n")
        comparisons = [
            comparison for comparison in outcome.comparisons if {comparison.base.id, comparison.other.id} <= measured
        ]
        yield from _verdicts(group, label_of, comparisons, verbose, width)
        yield from _messages(messages(group, labels), verbose, width)
        yield Text("")


def _table(results: Sequence[Result], labels: Sequence[str], verbose: bool, width: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    first = LABELS if verbose else BRIEF_LABELS
    column = (width - first - 2 * len(results)) // len(results)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
    table.add_column("", width=first, overflow="fold")
    for label in labels:
        table.add_column(Text(label), width=column, overflow="fold")
    heading = ""
    for row in rows(results, brief=not verbose):
        if row.heading != heading:
            heading = row.heading
            table.add_row(Text(heading, style="bold"))
        style = "bold red" if row.alarms else ""
        indent = "  " if heading else ""
        table.add_row(Text(indent + plain(row.label)), *(Text(plain(cell.text), style=style) for cell in row.cells))
    return table


def _verdicts(
    group: Sequence[Result], label_of: Mapping[str, str], comparisons: Sequence[Comparison], verbose: bool, width: int
) -> Iterator[RenderableType]:
    from rich.text import Text

    for comparison in comparisons:
        if comparison.ratio is None:
            continue
        if comparison.unfair:
            head = sentences.not_comparable([label_of[comparison.other.id]], label_of[comparison.base.id])
            yield Text(wrapped(head, width), "yellow")
            lines = [sentences.difference(reason) for reason in comparison.unfair]
        else:
            yield Text(wrapped(sentences.verdict(comparison, label_of), width), "bold")
            lines = sentences.details(comparison, label_of, brief=not verbose)
            packages = any(difference.name == PYTHON_ENVIRONMENT for difference in comparison.differences)
            shown = [
                difference
                for difference in comparison.differences
                if difference.name == FIRST_LOSSES or (packages and difference.kind == "context")
            ]
            shown.sort(key=lambda difference: difference.name.startswith("packages"))  # the long lists come last
            lines += [sentences.difference(difference, None if verbose else NAMED) for difference in shown]
        yield from (Text(wrapped(line, width, 2)) for line in lines)
    if comparisons and (hint := sentences.stopped_by_epochs(group, comparisons[0].threshold)):
        yield Text(wrapped(hint, width))
    if comparisons and not all(result.interleaved for result in group):
        yield Text(wrapped("Memory cannot hold all workers of a trial at once, so whole processes alternated.", width))


def _messages(all_messages: Sequence[Message], verbose: bool, width: int) -> Iterator[RenderableType]:
    """Yield the failures and warnings. If `verbose` is set, yield the notes too; otherwise, say how many there are."""
    from rich.text import Text

    for message in all_messages:
        if message.kind == "note" and not verbose:
            continue
        yield Text(wrapped(PREFIXES[message.kind] + message.text, width), STYLES[message.kind])
        yield from (Text(wrapped(line, width, 2)) for line in message.details)
        yield from (Text(wrapped(f"| {line}", width, 2, keep_spaces=True)) for line in message.output)
    notes = sum(message.kind == "note" for message in all_messages)
    if not verbose:
        more = f" and {numbers.count(notes, 'note')}" if notes else ""
        yield Text(wrapped(f"--verbose shows all figures{more}.", width), "dim")
