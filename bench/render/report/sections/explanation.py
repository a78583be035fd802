"""The sections of an explanation: the ladder as a waterfall, findings, what-ifs, the roofline and a trace."""

from __future__ import annotations

from functools import partial

from bench.model.explanation import Explanation, Gain
from bench.model.profile import Profile
from bench.model.roofline import Roofline
from bench.render import numbers, trace
from bench.render.charts import ratios, roofline, waterfall
from bench.render.messages import Message
from bench.render.report.document import Figure, Row, Section, Table
from bench.render.sentences import explanation as wording
from bench.render.text import plain


def title(label: str) -> str:
    """Return the title of the explanation of a program, from the program's label."""
    return f"Where the time of {label} goes"


def sentences(explanation: Explanation) -> list[str]:
    """Return the headline."""
    return [wording.headline(explanation)]


def sections(explanation: Explanation, threshold: float) -> list[Section]:
    """Return the sections that the explanation has content for.

    Args:
        explanation: what to show.
        threshold: the smallest relative difference that matters.
    """
    shown = [_answer(explanation)] if explanation.answer or explanation.fastest else []
    if explanation.wall_time:
        shown.append(_training(explanation))
    shown.append(_ladder(explanation))
    if explanation.own_step:
        shown.append(_own_step(explanation))
    if explanation.findings:
        shown.append(_findings(explanation))
    if explanation.gains or explanation.untried:
        shown.append(_what_ifs(explanation, threshold))
    if explanation.roofline is not None:
        shown.append(_roofline(explanation.roofline, explanation.lowest_level))
    if explanation.profile is not None:
        shown.append(_trace(explanation, explanation.profile))
    return shown


def _answer(explanation: Explanation) -> Section:
    changes = [Message("cause", cause, tuple(map(plain, advice))) for cause, advice in wording.changes(explanation)]
    lines = wording.outlook(explanation)
    if explanation.fastest is not None:
        lines.append(f"Fastest configuration measured: {explanation.fastest.command}")
    notes = [Message("note", plain(line)) for line in lines]
    return Section("What to change first", (*changes, *notes), brief=True)


def _training(explanation: Explanation) -> Section:
    rows = [Row(plain(part.name), (f"{part.share:.0%}", numbers.time(part.seconds))) for part in explanation.wall_time]
    title = wording.training(explanation)
    return Section("Where the time of the training goes", (Table(title, ("part", "share", "time"), tuple(rows)),))


def _ladder(explanation: Explanation) -> Section:
    bars = [waterfall.Bar("the program as written", 0.0, 1.0, numbers.time(explanation.step_seconds), "step")]
    rows, reached = [], 1.0
    for part in explanation.parts:
        low = reached - part.share.value
        share = wording.part_share(part)
        bars.append(waterfall.Bar(part.name, low, reached, share, "part" if part.measurable else "unmeasurable"))
        levels = f"{part.upper} minus {part.lower}"
        rows.append(Row(part.name, (share, numbers.time(part.seconds), levels, wording.part_what(part), part.fix)))
        reached = low
    name, what = wording.rest(explanation)
    share = wording.share(explanation.rest_share)
    bars.append(waterfall.Bar(name, 0.0, explanation.rest_share.value, share, "rest"))
    rows.append(Row(name, (share, numbers.time(explanation.rest_seconds), explanation.lowest_level, what, "")))
    head = ("part", "share of a step", "time per step", "levels", "what it is", "fix")
    trials = numbers.count(explanation.trials, "trial")
    caption = f"Parts of a step, measured in {trials}; all intervals together have 95% confidence"
    figure = Figure(
        "The parts of a step, from the program as written down to the lowest level, with 95% intervals. "
        "A light grey bar is a part that may take no time.",
        "Waterfall of the parts of a step: " + "; ".join(f"{bar.label} {bar.text}" for bar in bars) + ".",
        partial(waterfall.draw, bars),
    )
    notes = [Message("note", text) for text in wording.missing_levels(explanation)]
    warnings = [Message("warning", plain(caveat)) for caveat in explanation.caveats]
    table = Table(caption, head, tuple(rows))
    return Section("Where the time of a step goes", (figure, table, *notes, *warnings), brief=True)


def _own_step(explanation: Explanation) -> Section:
    rows = [
        Row(wording.OWN_STEP[part.kind], (f"{part.share:.0%}", plain(part.lines) or "–"))
        for part in explanation.own_step
    ]
    table = Table(wording.own_step_title(explanation), ("part", "share of a step", "lines"), tuple(rows))
    return Section("Where the time of the program's own loop goes", (table,))


def _findings(explanation: Explanation) -> Section:
    findings = tuple(
        Message(
            "note" if finding.detail else "cause",
            plain(wording.cause(finding)),
            tuple(map(plain, filter(None, (finding.evidence, finding.fix)))),
        )
        for finding in sorted(explanation.findings, key=lambda finding: finding.detail)
    )
    return Section("Findings", findings, brief=True)


def _what_ifs(explanation: Explanation, threshold: float) -> Section:
    gains = [(plain(gain.what_if), gain) for gain in explanation.gains]
    if explanation.combined is not None:
        gains.append(("combined", explanation.combined))
    points = [
        ratios.Ratio(name, gain.ratio.value, gain.ratio.low, gain.ratio.high, gain.verdict)
        for name, gain in gains
        if gain.ratio is not None
    ]
    head = ("what-if", "verdict", "time ratio", "per", "cause", "option")
    caption = f"What-ifs, each compared with the loop {explanation.what_if_loop} without it"
    notes = tuple(Message("note", plain(line)) for line in wording.untried(explanation))
    if not gains:
        return Section("What-ifs", notes, brief=True)
    table = Table(caption, head, tuple(_gain(name, gain, explanation.what_if_loop) for name, gain in gains))
    if not points:
        return Section("What-ifs", (table, *notes), brief=True)
    values = "; ".join(f"{point.label} {numbers.rounded(point.value)}, {point.verdict}" for point in points)
    figure = Figure(
        "Time with each what-if divided by time without it, with 95% intervals. Below 1 is faster. The band is the "
        f"threshold of ±{numbers.percent(threshold)}.",
        f"Points with intervals: {values}.",
        partial(ratios.draw, points, threshold),
    )
    return Section("What-ifs", (figure, table, *notes), brief=True)


def _gain(name: str, gain: Gain, usual_loop: str) -> Row:
    if gain.ratio is None:
        return Row(name, ("failed", "–", "–", plain(wording.failure(gain)), gain.option), "alarm")
    per = gain.unit + (f", in the loop {gain.loop}" if gain.loop not in ("", usual_loop) else "")
    return Row(name, (wording.effect(gain), numbers.factor(gain.ratio), per, gain.cause or "–", gain.option))


def _roofline(step: Roofline, loop: str) -> Section:
    memory = step.memory_peak / step.intensity
    peaks = [("memory", memory)]
    rows = [
        Row("operations per step", (numbers.quantity(step.flops, "FLOP"), step.flops_method)),
        Row("bytes per step, at least", (numbers.size(int(step.bytes)), "arguments, results and variables")),
        Row("intensity, at most", (f"{numbers.rounded(step.intensity)} FLOP per byte", "")),
        Row(
            "attained",
            (numbers.quantity(step.flops_per_second, "FLOP/s"), f"{step.share:.0%} of the {step.bound} peak"),
        ),
        Row("compute peak", (numbers.quantity(step.compute_peak, "FLOP/s"), f"matrix product in {step.dtype}")),
        Row("memory peak", (numbers.quantity(step.memory_peak, "FLOP/s"), numbers.quantity(memory, "B/s"))),
    ]
    if step.cache_peak:
        cache = step.cache_peak / step.intensity
        peaks.append(("cache of a core", cache))
        rows.append(Row("cache peak", (numbers.quantity(step.cache_peak, "FLOP/s"), numbers.quantity(cache, "B/s"))))
    figure = Figure(
        f"Operations per second over operations per byte, for the loop {loop}. The lines are the peaks of this "
        "machine.",
        wording.roofline(step, loop),
        partial(roofline.draw, step.intensity, step.flops_per_second, peaks, step.compute_peak),
    )
    return Section("Roofline", (figure, Table("The step and the peaks of the machine", ("", "", "how"), tuple(rows))))


def _trace(explanation: Explanation, profile: Profile) -> Section:
    rows = [Row(name, (numbers.percent(share),)) for name, share in trace.shares(profile).items()]
    rows.append(Row("longest operations", (plain(trace.longest_operations(profile)),)))
    caption = f"Profiler trace of {numbers.count(profile.steps, 'step')}, {numbers.time(profile.step_seconds)} each"
    table = Table(caption, ("", "share"), tuple(rows))
    notes = [*wording.trace_check(explanation), f"Trace: {profile.folder}"]
    return Section("Profiler trace", (table, *(Message("note", plain(note)) for note in notes)))
