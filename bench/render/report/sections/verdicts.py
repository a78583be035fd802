"""Which is faster: ratios with their intervals and verdicts, and from which step on it holds from a cold start."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bench.model.comparison import BreakEven, Comparison
from bench.model.result import Result
from bench.render import numbers
from bench.render.charts import bars
from bench.render.report.parts import Figure, Remark, Row, Section, Table
from bench.render.report.subject import Subject
from bench.render.terminal import verdicts

HEAD = ("from", "ahead from a cold start", "differs too")


def section(subject: Subject) -> Section | None:
    """Verdicts on all but the first; none where there is but one.

    What each was compared with stands in the table's heads where that is the same for all, else in a column.
    """
    if not subject.comparisons:
        return None
    results, names = {each.id: each for each in subject.results}, subject.name_of
    rows = [_row(each, names, results) for each in subject.comparisons]
    bases = [names[each.base.id] for each in subject.comparisons]
    if len(set(bases)) == 1:
        base = bases[0]
        heads: tuple[str, ...] = (f"compared with {base}", "verdict", f"time over that of {base}", *HEAD)
        table = Table(f"Verdicts as against {base}", heads, tuple(rows))
    else:
        rows = [replace(row, cells=(base, *row.cells)) for row, base in zip(rows, bases, strict=True)]
        table = Table("Verdicts", ("", "compared with", "verdict", "time over that", *HEAD), tuple(rows))
    return Section("Verdicts", (*_figure(subject), table, *_unfair(subject)), brief=True)


def _row(found: Comparison, names: dict[str, str], results: dict[str, Result]) -> Row:
    name, ratio = names[found.other.id], found.ratio
    failed = "failed" in (results[found.base.id].status, results[found.other.id].status)
    if failed or found.unfair or ratio is None:
        word = "failed" if failed else "not comparable" if found.unfair else "no step times"
        told = (word, numbers.factor(ratio) if ratio else "–", _behind(found), "–", _besides(found))
        return Row(name, told, "alarm")
    unit = "" if found.unit == "step" else f" per {found.unit}"
    ahead = _ahead(found.break_even, found, names)
    return Row(name, (found.verdict, numbers.factor(ratio) + unit, _behind(found), ahead, _besides(found)))


def _behind(found: Comparison) -> str:
    """What the ratio stands on."""
    if found.ratio is None:
        return "–"
    return verdicts.units(found.paired, found.ratio.n) + (" in turns" if found.paired else "")


def _besides(found: Comparison) -> str:
    """What is different beside what is compared; both values stand under the environments."""
    return ", ".join(each.name for each in found.differences if each.kind == "context") or "–"


def _ahead(even: BreakEven | None, found: Comparison, names: dict[str, str]) -> str:
    if even is None or even.winner == "none":
        return "–"
    winner = names[(found.base if even.winner == "base" else found.other).id]
    if even.immediate:
        return f"{winner}, from the first step"
    after = verdicts.when(even)
    return f"{winner}, after {after}" if after else "–"


def _unfair(subject: Subject) -> list[Remark]:
    """Why a comparison is not fair, once each; what else differs stands under the environments."""
    told = []
    for found in subject.comparisons:
        why = list(dict.fromkeys(each.reason.rstrip(".") for each in found.unfair))
        if why:
            told.append(Remark("warning", f"{subject.name_of[found.other.id]} is not fairly compared", tuple(why)))
    return told


def _figure(subject: Subject) -> list[Figure]:
    """The fair ratios as points with their intervals."""
    fair = [each for each in subject.comparisons if each.ratio is not None and not each.unfair]
    points = [
        bars.Ratio(subject.name_of[each.other.id], each.ratio.value, each.ratio.low, each.ratio.high, each.verdict)
        for each in fair
        if each.ratio is not None
    ]
    if not points:
        return []
    threshold = fair[0].threshold
    told = "; ".join(f"{each.name} {each.value:.3g}, {each.verdict}" for each in points)
    unit = " and ".join(sorted({each.unit for each in fair}))
    bases = {subject.name_of[each.base.id] for each in fair}
    over = f"over that of {bases.pop()}" if len(bases) == 1 else "over that of what each is compared with in the table"
    caption = f"Time per {unit} {over}, with its 95% interval; below 1 is faster. "
    caption += f"The band is ±{numbers.percent(threshold)}, the difference that matters."
    alt = f"Points with intervals: time {over}. {told}."
    return [Figure(caption, alt, partial(bars.ratios, points, threshold))]
