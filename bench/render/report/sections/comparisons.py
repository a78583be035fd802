"""Which result is faster: ratios with their intervals and verdicts, and which is ahead from a cold start."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bench.model.comparison import BreakEven, Comparison
from bench.model.result import Result
from bench.render import numbers
from bench.render.charts import ratios
from bench.render.labels import quoted
from bench.render.messages import Message
from bench.render.report.document import Figure, Row, Section, Table
from bench.render.report.result_set import ResultSet
from bench.render.sentences.comparison import break_even, not_comparable, over_epochs, units

COLUMNS = ("based on", "ahead from a cold start", "other differences")


def section(results: ResultSet) -> Section | None:
    """Return the verdicts of all comparisons; None if there are none.

    If all comparisons have the same baseline, the head of the table names it. Otherwise, the table has a column for it.
    """
    if not results.comparisons:
        return None
    by_id, label_of = {result.id: result for result in results.members}, results.label_of
    rows = [_row(comparison, label_of, by_id) for comparison in results.comparisons]
    bases = [label_of[comparison.base.id] for comparison in results.comparisons]
    if len(set(bases)) == 1:
        base = quoted(bases[0])
        heads: tuple[str, ...] = (f"compared with {base}", "verdict", f"time relative to {base}", *COLUMNS)
        table = Table(f"Verdicts, baseline {base}", heads, tuple(rows))
    else:
        rows = [replace(row, cells=(base, *row.cells)) for row, base in zip(rows, bases, strict=True)]
        table = Table("Verdicts", ("", "baseline", "verdict", "time relative to the baseline", *COLUMNS), tuple(rows))
    return Section("Verdicts", (*_figure(results), table, *_unfair(results)), brief=True)


def _row(comparison: Comparison, label_of: dict[str, str], by_id: dict[str, Result]) -> Row:
    label, ratio = label_of[comparison.other.id], comparison.ratio
    evidence, differences = _evidence(comparison), _differences(comparison)
    failed = "failed" in (by_id[comparison.base.id].status, by_id[comparison.other.id].status)
    if failed or comparison.unfair or ratio is None:
        word = "failed" if failed else "not comparable" if comparison.unfair else "no step times"
        return Row(label, (word, numbers.factor(ratio) if ratio else "–", evidence, "–", differences), "alarm")
    unit = "" if comparison.unit == "step" else f" per {comparison.unit}"
    winner = _winner(comparison.break_even, comparison, label_of)
    word = comparison.verdict + over_epochs(comparison)
    return Row(label, (word, numbers.factor(ratio) + unit, evidence, winner, differences))


def _evidence(comparison: Comparison) -> str:
    """Return what the ratio is based on."""
    if comparison.ratio is None:
        return "–"
    return units(comparison.paired, comparison.ratio.n) + (", interleaved" if comparison.paired else "")


def _differences(comparison: Comparison) -> str:
    """Return the names of what else is different. The environments section has the values."""
    return ", ".join(difference.name for difference in comparison.differences if difference.kind == "context") or "–"


def _winner(even: BreakEven | None, comparison: Comparison, label_of: dict[str, str]) -> str:
    if even is None or even.winner == "none":
        return "–"
    winner = label_of[(comparison.base if even.winner == "base" else comparison.other).id]
    if even.immediate:
        return f"{winner}, from the first step"
    steps = break_even(even)
    return f"{winner}, after {steps}" if steps else "–"


def _unfair(results: ResultSet) -> list[Message]:
    """Return a warning for each unfair comparison, with the reasons."""
    warnings = []
    for comparison in results.comparisons:
        reasons = tuple(dict.fromkeys(reason.reason.rstrip(".") for reason in comparison.unfair))
        if reasons:
            other, base = (results.label_of[side.id] for side in (comparison.other, comparison.base))
            warnings.append(Message("warning", not_comparable([other], base), reasons))
    return warnings


def _figure(results: ResultSet) -> list[Figure]:
    """Return a chart of the fair ratios."""
    fair = [comparison for comparison in results.comparisons if comparison.ratio is not None and not comparison.unfair]
    points = [
        ratios.Ratio(
            results.label_of[comparison.other.id],
            comparison.ratio.value,
            comparison.ratio.low,
            comparison.ratio.high,
            comparison.verdict,
        )
        for comparison in fair
        if comparison.ratio is not None
    ]
    if not points:
        return []
    threshold = fair[0].threshold
    unit = " and ".join(sorted({comparison.unit for comparison in fair}))
    bases = {results.label_of[comparison.base.id] for comparison in fair}
    baseline = quoted(bases.pop()) if len(bases) == 1 else "the baseline in the table"
    caption = (
        f"Time per {unit} relative to {baseline}, with 95% intervals. Below 1 is faster. The band is "
        f"±{numbers.percent(threshold)}, the threshold for a difference that matters."
    )
    values = "; ".join(f"{point.label} {numbers.rounded(point.value)}, {point.verdict}" for point in points)
    alt = f"Points with intervals: time relative to {baseline}. {values}."
    return [Figure(caption, alt, partial(ratios.draw, points, threshold))]
