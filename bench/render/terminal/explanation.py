"""An explanation as a person reads it: sentences first, the figures under them."""

from __future__ import annotations

from bench.analyse import stats
from bench.model.comparison import Word
from bench.model.explanation import Explanation, Finding, Gain, Part
from bench.model.result import Profile
from bench.model.roofline import Roofline
from bench.render import numbers
from bench.render.fields import longest, traced_shares
from bench.render.terminal import verdicts
from bench.render.text import filled, plain

WIDTH = 80
BAR = 24
FACES: dict[Word, str] = {"faster": "faster", "slower": "slower", "same": "no change", "undecided": "undecided"}


def text(found: Explanation, width: int = WIDTH) -> str:
    """The whole explanation in plain text."""
    lines = filled(headline(found), width)
    for heading, told in (
        (f"Where a step's time goes (paired within {verdicts.units(True, found.trials)}):", _ladder(found)),
        ("", [] if found.roofline is None else [under_roof(found.roofline, found.lowest)]),
        ("", [] if found.profile is None else [_profile(found, found.profile)]),
        ("Read from the runs:", [f"{r.cause}: {caused(r)} ({r.evidence}). {r.fix}" for r in found.findings]),
        (f"Single changes, each against the loop {found.what_if_loop} without it:", _changes(found)),
    ):
        if told:
            lines += ["", *([heading] if heading else [])]
            lines += [line for each in told for line in filled(each, width, 2 if heading else 0)]
    for each in found.missing:
        lines += filled(f"not on the ladder: {each}", width, 2)
    for each in found.caveats:
        lines += filled(f"warning: {plain(each)}", width)
    if found.fastest is not None:
        lines += ["", "The fastest that was measured:", f"  {found.fastest.command}"]
    return "".join(f"{line}\n" for line in lines)


def _ladder(found: Explanation) -> list[str]:
    rest = f"{share(found.rest_share)}  {', '.join(found.rest)}: loop {found.lowest}"
    return [
        *map(_part, found.parts),
        f"{_bar(found.rest_share.value)} {rest}, {numbers.time(found.rest_seconds)}",
    ]


def _changes(found: Explanation) -> list[str]:
    """What helped, a line each, and at once; what did not, named only, with its ratio where it is slower."""
    told = [gained(gain) for gain in found.gains if gain.verdict == "faster"]
    told += [] if found.combined is None else [f"all that helped, at once: {gained(found.combined)}"]
    for word in ("same", "undecided", "slower"):
        named = [
            f"{gain.what_if} ({numbers.times(gain.ratio)} as long)" if word == "slower" else gain.what_if
            for gain in found.gains
            if gain.verdict == word and gain.ratio is not None
        ]
        told += [f"{FACES[word]}: {', '.join(named)}"] if named else []
    return told + [gained(gain) for gain in found.gains if gain.ratio is None or gain.verdict not in FACES]


def headline(found: Explanation) -> str:
    """The largest cause in a sentence, and what is faster; that there is nothing wrong, where there is neither."""
    causes = sorted((p for p in found.parts if p.measurable and p.share.value > 0), key=lambda p: -p.share.value)
    whole = f"{found.label}: a step takes {numbers.time(found.step_seconds)}"
    fix = _faster(found)
    if causes and causes[0].share.value > 0.1:
        return f"{whole}, of which {causes[0].share.value:.0%} is {causes[0].name}: {causes[0].what}.{fix}"
    unsure = sum(abs(p.share.value) for p in found.parts if not p.measurable)
    if unsure > 0.1:
        lost = "all of which" if unsure >= 1 else f"of which {unsure:.0%}"  # a part that can't be told may be negative
        return (
            f"{whole}, {lost} lies between levels whose difference {verdicts.units(True, found.trials)} can't "
            f"tell from nothing; more --max-time or --max-processes may.{fix}"
        )
    computing = f"{min(1.0, found.rest_share.value):.0%} of it is computing"
    if found.rest[0] != "computing":
        computing = f"{min(1.0, found.rest_share.value):.0%} of it can't be divided, {found.rest[1]}"
    if fix:
        return f"{whole}, and {computing}.{fix}"
    if found.findings:
        return f"{whole}, and {computing}; what else was seen stands below."
    looked = "nothing is wrong that was looked for" if found.gains else "no level of the ladder takes much away"
    if not found.parts and not found.gains:
        looked = "nothing else was seen"
    return f"{whole}, and {computing}: {looked}."


def _faster(found: Explanation) -> str:
    """The fastest that was measured; else the change that helps most, for the best of many is harder to be sure of."""
    if found.fastest is not None:
        best = found.fastest
        return f" Fastest found: {best.words}, {numbers.times(best.times)} as fast per {best.unit}."
    tried = [found.combined, *found.gains]
    faster = [(g.ratio, g) for g in tried if g is not None and g.ratio is not None and g.verdict == "faster"]
    if not faster:
        return ""
    ratio, gain = min(faster, key=lambda each: each[0].value)
    times = numbers.times(stats.inverse(ratio))
    return f" What helps: {gain.what_if}, {times} as fast per {gain.unit} as the loop {found.what_if_loop} without it."


def caused(found: Finding) -> str:
    """A cause in a sentence, which has its share of the step in it or in its evidence, or says that it has none."""
    return found.sentence if found.share is not None else f"{found.sentence}; its share was not measured"


def _part(part: Part) -> str:
    shown = share(part.share) if part.measurable else "not measurable"
    return (
        f"{_bar(part.share.value if part.measurable else 0)} {shown}  {part.name}: {part.what} "
        f"({part.upper} less {part.lower}, {numbers.time(part.seconds)})" + (f". {part.fix}" if part.fix else "")
    )


def under_roof(found: Roofline, loop: str) -> str:
    """Where the barest loop stands under its roofs."""
    roof = found.compute_roof if found.roof == "compute" else found.memory_roof
    cached = " Its working set is in a cache: it is above what memory allows." if found.beyond_memory else ""
    return (
        f"Roofline, loop {loop}: {numbers.quantity(found.flops, 'FLOP')} ({found.flops_method}) on at least "
        f"{numbers.size(int(found.bytes))} a step are {found.intensity:.3g} FLOP a byte; it attains "
        f"{numbers.quantity(found.attained, 'FLOP/s')}, {found.share:.0%} of the {numbers.quantity(roof, 'FLOP/s')} "
        f"that the {found.roof} roof allows in {found.dtype}.{cached}"
    )


def _profile(found: Explanation, profile: Profile) -> str:
    told = found.disagreements or ["What it says of computing and input agrees with the ladder."]
    return " ".join([traced(profile), *told, f"It lies in {plain(profile.folder)}."])


def traced(found: Profile) -> str:
    """What a profiler's trace says of a step, in sentences."""
    shares = ", ".join(f"{name} {numbers.percent(share)}" for name, share in traced_shares(found).items())
    most = longest(found)
    return (
        f"Traced by TensorFlow's profiler, {found.steps} steps of {numbers.time(found.step_seconds)}: {shares} of the "
        f"time." + (f" Longest in a step: {plain(most)}." if most else "")
    )


def share(found: object) -> str:
    """A share with its interval, as percentages."""
    value, low, high = (getattr(found, name) for name in ("value", "low", "high"))
    if low is None or high is None:
        return f"{value:.0%}"
    return f"{value:.0%} [{low:.0%}, {high:.0%}]"


def _bar(part: float) -> str:
    return "#" * max(0, min(BAR, round(BAR * part))) or "-"


def gained(gain: Gain) -> str:
    """A change with its verdict and its ratio, in a line."""
    if gain.ratio is None:
        return f"failed: {gain.what_if}: {gain.failure or 'nothing was measured'} ({gain.option})"
    faster = gain.verdict == "faster"
    told = numbers.times(stats.inverse(gain.ratio) if faster else gain.ratio)
    figure = f"{told} as {'fast' if faster else 'long'}"
    share = f"; {1 - gain.ratio.value:.0%} of it was {gain.fixes}" if gain.fixes else ""
    return f"{FACES.get(gain.verdict, gain.verdict)}: {gain.what_if}: {figure} per {gain.unit}{share} ({gain.option})"
