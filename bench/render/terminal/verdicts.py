"""Comparisons as a person reads them: a sentence each, from which step on it holds, phases, and what else differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.analyse import stats
from bench.analyse.verdict import verdict
from bench.model.comparison import BreakEven, Cell, Comparison, Difference, Matrix
from bench.model.result import Interval
from bench.render import numbers
from bench.render.text import filled

WIDTH = 80
CELL = 14
SHORT = {"not enough data": "too few"}
"""Verdicts that are too long for a matrix."""


def text(comparisons: Sequence[Comparison], matrices: Sequence[Matrix] = (), width: int = WIDTH) -> str:
    """Matrices of those that were compared with everyone; a sentence of every comparison; with its phases if alone.

    Args:
        comparisons: the sentences'.
        matrices: of groups of three or more.
        width: of a line.
    """
    lines = [line for each in matrices for line in (*matrix(each, width), "")]
    for each in comparisons:
        lines += [line for paragraph in paragraphs(each, width) for line in paragraph]
    if len(comparisons) == 1:
        lines += ["", *phases(comparisons[0])]
    return "".join(f"{line}\n" for line in lines)


def paragraphs(found: Comparison, width: int = WIDTH) -> Iterator[list[str]]:
    """The verdict; what it means for a training from a cold start; what else differs."""
    yield filled(sentence(found), width)
    if seldom := by_the_mean(found):
        yield filled(seldom, width, 2)
    if found.break_even is not None:
        told = cold_start(found, found.break_even)
        if told:
            yield filled(told, width, 2)
    for each in found.differences:
        if each.kind != "axis":
            yield filled(differing(each), width, 2)


def sentence(found: Comparison) -> str:
    """Verdict and ratio, such as "faster: cifar on cuda, fit is 12.3 times [11.8, 12.9] as fast as … (6 trials)"."""
    base, other, ratio = found.base.label, found.other.label, found.ratio
    word = found.verdict
    if ratio is None:
        return f"{word}: {other} and {base} have no step time in common"
    behind = units(found.paired, ratio.n)
    times = f"{other} takes {numbers.times(ratio)} as long as {base} per {found.unit}"
    if word == "faster":
        return f"faster: {other} is {numbers.times(stats.inverse(ratio))} as fast as {base} per {found.unit} ({behind})"
    if word == "same":
        return f"same: {times}, within {found.threshold:.3g} of 1 ({behind})"
    if word == "undecided":
        near = f"its ratio is too near {found.threshold:.0%} to be settled"
        more = f"about {found.needed_units} would settle it" if found.needed_units else near
        return f"undecided: {times} ({behind}); {more}"
    if word == "not enough data":
        return f"{word}: {times} ({behind}); a verdict needs at least two of each"
    return f"{word}: {times} ({behind})"


def by_the_mean(found: Comparison) -> str:
    """What the mean step says where it says another thing than the typical one; empty else."""
    word = verdict(found.mean_ratio, found.threshold)
    if found.mean_ratio is None or word not in ("faster", "slower") or word == found.verdict:
        return ""
    times = numbers.times(found.mean_ratio)
    return f"{word} by the mean step, in which slow steps count that come seldom: {times} as long"


def cold_start(found: Comparison, even: BreakEven) -> str:
    """What starts and steps make of a whole program: when the one that runs faster is ahead."""
    names = {"base": found.base.label, "other": found.other.label}
    told = []
    after = when(even)
    if after:
        winner, loser = names[even.winner], names["base" if even.winner == "other" else "other"]
        told.append(f"from a cold start {winner} is ahead of {loser} after {after}")
        if even.epochs is not None:
            told[-1] += f" ({_epochs(even.epochs)})"
    elif even.immediate:
        unsure = ", though its start is not known to be no slower" if even.start_uncertain else ""
        told.append(f"from a cold start {names[even.winner]} is ahead from the first step on{unsure}")
    if even.training_seconds:
        base, other = map(numbers.time, even.training_seconds)
        of = f" of {even.training_steps} steps" if even.training_steps else ""
        told.append(f"the whole training{of}, cold: {other} as against {base}")
    return "; ".join(told)


def when(even: BreakEven) -> str:
    """After how many steps or examples the one that runs faster is ahead; empty where that is never or at once."""
    if even.steps is not None:
        return _counted(even.steps, "steps")
    return _counted(even.examples, "examples") if even.examples is not None else ""


def _epochs(found: Interval) -> str:
    bounds = "" if found.low is None or found.high is None else f" [{found.low:.2g}, {found.high:.2g}]"
    return f"{found.value:.2g}{bounds} epochs"


def differing(each: Difference) -> str:
    """One difference: what, both values, and why it is unfair where it is."""
    values = f"{_shown(each.base)} as against {_shown(each.other)}"
    return (
        f"UNFAIR, {each.name}: {values}: {each.reason}" if each.kind == "unfair" else f"differs: {each.name}: {values}"
    )


def phases(found: Comparison) -> list[str]:
    """A table of the phases of both sides; the difference where it is known not to be 0, else why it is not."""
    rows = [("phase", "base", "other", "other less base")]
    for each in found.phases:
        apart = each.difference
        if apart.low is None or apart.high is None:
            shown = "one start only"
        elif apart.low <= 0 <= apart.high:
            shown = "not measurable"
        else:
            shown = f"{apart.value:+.3f} s [{apart.low:+.3f}, {apart.high:+.3f}]"
        rows.append((each.phase.replace("_", " "), numbers.time(each.base), numbers.time(each.other), shown))
    return [f"{a:20}{b:>14}{c:>14}   {d}".rstrip() for a, b, c, d in rows] if found.phases else []


def matrix(found: Matrix, width: int = WIDTH) -> list[str]:
    """The row's time over the column's, and the verdict; a dash where two were not compared.

    Columns that a line does not hold stand below, under the rows once more.
    """
    letters = [chr(65 + n) for n in range(len(found.results))]
    lines = ["time of the row over that of the column:"]
    lines += [f"  {letter}  {each.label}" for letter, each in zip(letters, found.results, strict=True)]
    abreast = max(1, (width - 5) // CELL)
    for start in range(0, len(letters), abreast):
        columns = slice(start, start + abreast)
        lines.append("     " + "".join(f"{letter:>{CELL}}" for letter in letters[columns]))
        for letter, row in zip(letters, found.rows, strict=True):
            lines.append(f"  {letter}  " + "".join(f"{_cell(cell):>{CELL}}" for cell in row[columns]))
    return lines


def _cell(found: Cell | None) -> str:
    return f"{found.ratio.value:.3g} {SHORT.get(found.verdict, found.verdict)}" if found else "–"


def _counted(found: Interval, what: str) -> str:
    if found.low is None:
        return f"about {found.value:,.0f} {what}, by one start of each"
    if found.high is None:
        return f"about {found.value:,.0f} {what}, no fewer than {found.low:,.0f}, and perhaps never"
    return f"{found.value:,.0f} {what} [{found.low:,.0f}, {found.high:,.0f}]"


def units(paired: bool, n: int) -> str:
    """What a ratio stands on: so many trials, or processes measured apart."""
    if paired:
        return numbers.several(n, "trial")
    return f"{n} process{'es' if n > 1 else ''} a side, not in turns"


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{k}={v}" for k, v in value.items()) or "none"
    return str(value)
