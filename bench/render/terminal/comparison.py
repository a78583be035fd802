"""Comparisons as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.model.comparison import Comparison, Matrix, MatrixCell, Verdict
from bench.model.words import join_words
from bench.render import numbers
from bench.render.labels import phase_label
from bench.render.sentences import comparison as sentences
from bench.render.sentences.comparison import Labels
from bench.render.text import WIDTH, filled

CELL = 16
"""Characters of a column in a matrix."""

OVER_EPOCHS: Mapping[Verdict, str] = {
    "faster": "is faster than",
    "slower": "is slower than",
    "same": "is as fast as",
    "undecided": "is undecided against",
}
"""The verdicts over whole epochs below a matrix."""

SHORT = {"not enough data": "too few"}
"""Short forms of the verdicts that are too long for a matrix."""


def text(comparisons: Sequence[Comparison], matrices: Sequence[Matrix] = (), width: int = WIDTH) -> str:
    """Return the matrices, then the comparisons. If there is only one comparison, a table of its phases follows.

    Args:
        comparisons: the comparisons to describe.
        matrices: the matrices of the groups that have three or more results.
        width: maximum length of a line, in characters.
    """
    lines = [line for matrix in matrices for line in (*matrix_lines(matrix, width=width), "")]
    for comparison in comparisons:
        lines += [line for paragraph in paragraphs(comparison, width) for line in paragraph]
    if len(comparisons) == 1:
        lines += ["", *phases(comparisons[0])]
    return "".join(f"{line}\n" for line in lines)


def paragraphs(comparison: Comparison, width: int = WIDTH) -> Iterator[list[str]]:
    """Yield the lines of the verdict, of its details, and of each other difference."""
    yield filled(sentences.verdict(comparison), width)
    for sentence in sentences.details(comparison):
        yield filled(sentence, width, 2)
    for difference in comparison.differences:
        if difference.kind != "axis":
            yield filled(sentences.difference(difference), width, 2)


def phases(comparison: Comparison) -> list[str]:
    """Return a table of the phases of both sides. A difference is shown if its interval excludes 0."""
    rows = [("phase", "baseline", "other", "difference")]
    for phase in comparison.phases:
        interval = phase.difference
        if interval.low is None or interval.high is None:
            shown = "one start only"
        elif not phase.measurable:
            shown = "not measurable"
        else:
            low, high = numbers.signed_time(interval.low), numbers.signed_time(interval.high)
            shown = f"{numbers.signed_time(interval.value)} [{low}, {high}]"
        rows.append((phase_label(phase.phase), numbers.time(phase.base), numbers.time(phase.other), shown))
    return [f"{a:20}{b:>14}{c:>14}   {d}".rstrip() for a, b, c, d in rows] if comparison.phases else []


def matrix_lines(matrix: Matrix, labels: Labels | None = None, width: int = WIDTH) -> list[str]:
    """Return a matrix as lines. Each cell has the ratio and the verdict of its row against its column.

    A dash means that the two were not compared. Columns that do not fit beside each other follow below. A cell has an
    asterisk if its verdict over whole epochs is another. These verdicts follow.

    Args:
        matrix: the matrix.
        labels: labels by the result's id. Default: the labels of the matrix.
        width: maximum length of a line, in characters.
    """
    letters = [chr(65 + n) for n in range(len(matrix.results))]
    lines = ["Ratios of times, row / column:"]
    shown = [(labels or {}).get(side.id, side.label) for side in matrix.results]
    lines += [f"  {letter}  {label}" for letter, label in zip(letters, shown, strict=True)]
    abreast = max(1, (width - 5) // CELL)
    for start in range(0, len(letters), abreast):
        columns = slice(start, start + abreast)
        lines.append("     " + "".join(f"{letter:>{CELL}}" for letter in letters[columns]))
        for letter, row in zip(letters, matrix.rows, strict=True):
            lines.append(f"  {letter}  " + "".join(f"{_cell(cell):>{CELL}}" for cell in row[columns]))
    differ = [
        f"{letters[number]} {OVER_EPOCHS.get(cell.epoch_verdict, cell.epoch_verdict)} {letter}"
        for number, row in enumerate(matrix.rows)
        for letter, cell in zip(letters[:number], row, strict=False)
        if cell is not None and cell.epoch_verdict is not None
    ]
    return lines + (filled(f"* Over whole epochs, {join_words(differ)}.", width, 2) if differ else [])


def _cell(cell: MatrixCell | None) -> str:
    if cell is None:
        return "–"
    mark = "*" if cell.epoch_verdict is not None else ""
    return f"{numbers.rounded(cell.ratio.value)} {SHORT.get(cell.verdict, cell.verdict)}{mark}"
