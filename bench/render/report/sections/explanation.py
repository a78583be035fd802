"""An explanation: the ladder as a waterfall, causes, changes with their gains, the roofline, a trace beside them."""

from __future__ import annotations

from functools import partial

from bench.model.explanation import Explanation, Gain
from bench.model.result import Profile
from bench.model.roofline import Roofline
from bench.render import numbers
from bench.render.charts import bars as charts
from bench.render.charts import curves
from bench.render.fields import longest, traced_shares
from bench.render.report.parts import Figure, Remark, Row, Section, Table
from bench.render.terminal import explanation
from bench.render.terminal.verdicts import units
from bench.render.text import plain


def title(found: Explanation) -> str:
    """Which program's time."""
    return f"Where the time of {found.label} goes"


def sentences(found: Explanation) -> list[str]:
    """The largest cause, and the fastest that was found."""
    told = [explanation.headline(found).rstrip(".")]
    return told + ([f"the fastest that was measured: {found.fastest.command}"] if found.fastest else [])


def sections(found: Explanation, threshold: float) -> list[Section]:
    """Ladder, causes, changes, roofline and trace, as far as there are such.

    Args:
        found: what was found.
        threshold: relative difference that matters.
    """
    made = [_ladder(found)]
    if found.findings:
        causes = [
            Remark("cause", f"{f.cause}: {explanation.caused(f)}", tuple(filter(None, (f.evidence, f.fix))))
            for f in found.findings
        ]
        made.append(Section("Causes, as the runs show them", tuple(_plain(each) for each in causes), brief=True))
    if found.gains:
        made.append(_changes(found, threshold))
    if found.roofline is not None:
        made.append(_roofline(found.roofline, found.lowest))
    if found.profile is not None:
        made.append(_traced(found, found.profile))
    return made


def _plain(remark: Remark) -> Remark:
    return Remark(remark.kind, plain(remark.text), tuple(map(plain, remark.more)))


def _ladder(found: Explanation) -> Section:
    bars = [charts.Bar("the program as it is", 0.0, 1.0, numbers.time(found.step_seconds), "whole")]
    rows, reached = [], 1.0
    for part in found.parts:
        low = reached - part.share.value
        told = explanation.share(part.share) if part.measurable else "not measurable"
        bars.append(charts.Bar(part.name, low, reached, told, "part" if part.measurable else "unsure"))
        between = f"{part.upper} less {part.lower}"
        rows.append(Row(part.name, (told, numbers.time(part.seconds), between, part.what, part.fix)))
        reached = low
    told = explanation.share(found.rest_share)
    rest, what = found.rest
    bars.append(charts.Bar(rest, 0.0, found.rest_share.value, told, "rest"))
    rows.append(Row(rest, (told, numbers.time(found.rest_seconds), found.lowest, what, "")))
    head = ("", "share of a step", "seconds a step", "by", "what it is", "what to change")
    caption = f"Shares of a step, paired within {units(True, found.trials)}; their intervals hold together"
    figure = Figure(
        "From the program as it is down to the barest loop: what each part takes of a step, with its 95% interval. "
        "A pale bar is a part that can't be told from nothing.",
        "Waterfall of a step's parts: " + "; ".join(f"{bar.name} {bar.told}" for bar in bars) + ".",
        partial(charts.waterfall, bars),
    )
    missing = [Remark("note", f"not on the ladder: {plain(each)}") for each in found.missing]
    missing += [Remark("warning", plain(each)) for each in found.caveats]
    return Section("Where a step's time goes", (figure, Table(caption, head, tuple(rows)), *missing), brief=True)


def _changes(found: Explanation, threshold: float) -> Section:
    every = [(plain(gain.what_if), gain) for gain in found.gains]
    if found.combined is not None:
        every.append(("all that helped", found.combined))
    points = [
        charts.Ratio(name, gain.ratio.value, gain.ratio.low, gain.ratio.high, gain.verdict)
        for name, gain in every
        if gain.ratio is not None
    ]
    rows = [_gain(name, gain) for name, gain in every]
    head = ("", "verdict", "time over that without it", "per", "what it takes away", "option")
    caption = f"Single changes of the loop {found.what_if_loop}, and all that helped at once"
    table = Table(caption, head, tuple(rows))
    if not points:
        return Section("What would make it faster", (table,), brief=True)
    told = "; ".join(f"{point.name} {point.value:.3g}, {point.verdict}" for point in points)
    caption = "Time with each change over that without it, with its 95% interval; below 1 is faster. The band is "
    caption += f"±{numbers.percent(threshold)}, the difference that matters."
    figure = Figure(caption, f"Points with intervals: {told}.", partial(charts.ratios, points, threshold))
    return Section("What would make it faster", (figure, table), brief=True)


def _gain(name: str, gain: Gain) -> Row:
    if gain.ratio is None:
        return Row(name, ("failed", "–", "–", plain(gain.failure or "nothing was measured"), gain.option), "alarm")
    return Row(name, (gain.verdict, numbers.factor(gain.ratio), gain.unit, gain.fixes or "–", gain.option))


def _roofline(found: Roofline, loop: str) -> Section:
    memory = found.memory_roof / found.intensity
    roofs = [("memory", memory, found.memory_roof)]
    rows = [
        Row("operations of a step", (numbers.quantity(found.flops, "FLOP"), found.flops_method)),
        Row("bytes of a step, at least", (numbers.size(int(found.bytes)), "arguments, results and variables")),
        Row("intensity, at most", (f"{found.intensity:.3g} FLOP a byte", "")),
        Row("attained", (numbers.quantity(found.attained, "FLOP/s"), f"{found.share:.0%} of the {found.roof} roof")),
        Row("compute roof", (numbers.quantity(found.compute_roof, "FLOP/s"), f"a matrix product in {found.dtype}")),
        Row("memory roof", (numbers.quantity(found.memory_roof, "FLOP/s"), numbers.quantity(memory, "B/s"))),
    ]
    if found.cache_roof:
        cache = found.cache_roof / found.intensity
        roofs.append(("a core's cache", cache, found.cache_roof))
        rows.append(Row("cache roof", (numbers.quantity(found.cache_roof, "FLOP/s"), numbers.quantity(cache, "B/s"))))
    figure = Figure(
        f"Operations a second over operations a byte, of the loop {loop}; the lines are what this machine was seen to "
        "attain.",
        explanation.under_roof(found, loop),
        partial(curves.roofline, found.intensity, found.attained, roofs, found.compute_roof),
    )
    return Section("Roofline", (figure, Table("Under which roof a step is", ("", "", "how"), tuple(rows))))


def _traced(found: Explanation, profile: Profile) -> Section:
    rows = [Row(name, (numbers.percent(share),)) for name, share in traced_shares(profile).items()]
    rows.append(Row("longest operations", (plain(longest(profile)),)))
    caption = f"Of a step by TensorFlow's profiler, {profile.steps} steps of {numbers.time(profile.step_seconds)}"
    table = Table(caption, ("", "share"), tuple(rows))
    told = [Remark("note", plain(each)) for each in found.disagreements]
    agrees = [] if told else [Remark("note", "what it says of computing and input agrees with the ladder")]
    return Section("Traced", (table, *told, *agrees, Remark("note", f"the trace lies in {plain(profile.folder)}")))
