"""Sentences about an explanation, shared by the terminal, the report and the hub."""

from __future__ import annotations

from bench.model.explanation import Explanation, Finding, Gain, Part
from bench.model.interval import Interval
from bench.model.profile import Profile
from bench.model.roofline import Roofline
from bench.model.spec import Loop
from bench.render import numbers
from bench.render.text import plain
from bench.render.trace import longest_operations, shares

NOTABLE = 0.1
"""Smallest share of a step that the headline names."""

BARE: tuple[Loop, ...] = ("host-batches", "resident", "fused")
"""Loops without input. What they take is mostly computing."""


def headline(explanation: Explanation) -> str:
    """Return the largest part of the step, and the fastest configuration if one is faster."""
    step = f"{explanation.label}: a step takes {numbers.time(explanation.step_seconds)}."
    part, unclear = explanation.largest_part, explanation.unassigned_share
    fastest = _fastest(explanation)
    if part is not None and part.share.value > NOTABLE:
        sentences = [f"{part.share.value:.0%} of it is {part.name}: {part.what}.", fastest]
    elif unclear > NOTABLE:
        amount = "Its time" if unclear >= 1 else f"{unclear:.0%} of it"  # parts of both signs may exceed 100%
        trials = numbers.count(explanation.trials, "trial")
        sentences = [
            f"{amount} cannot be assigned to a part after {trials}. Increase --max-time or --max-processes.",
            fastest,
        ]
    elif fastest:
        sentences = [_rest_sentence(explanation), fastest]
    elif explanation.findings:
        sentences = [_rest_sentence(explanation), "See the findings."]
    else:
        sentences = [_rest_sentence(explanation), _nothing_found(explanation)]
    between = explanation.between_epochs
    epochs = f"{between:.0%} of an epoch passes between its steps and those of the next." if between else ""
    return " ".join(filter(None, [step, epochs, *sentences]))


def rest(explanation: Explanation) -> tuple[str, str]:
    """Return what the time of the lowest level is: a name, and what it includes."""
    if explanation.lowest_level in BARE:
        return "computing", "everything that the lowest level does"
    return "not divided", "no lower level was measured"


def _rest_sentence(explanation: Explanation) -> str:
    share = f"{min(1.0, explanation.rest_share.value):.0%}"
    name, reason = rest(explanation)
    if name == "computing":
        return f"{share} of it is computing."
    return f"{share} of it is not divided into parts, because {reason}."


def missing_levels(explanation: Explanation) -> list[str]:
    """Return the loops that are not on the ladder, grouped by the reason."""
    loops: dict[str, list[str]] = {}
    for loop, reason in explanation.missing_levels.items():
        loops.setdefault(reason, []).append(loop)
    return [f"not on the ladder: {', '.join(names)}: {plain(reason)}" for reason, names in loops.items()]


def _nothing_found(explanation: Explanation) -> str:
    if explanation.gains:
        return "No known bottleneck found."
    return "The ladder shows no bottleneck." if explanation.parts else "No cause was found."


def _fastest(explanation: Explanation) -> str:
    """Return the fastest configuration, or the largest gain. It is harder to be sure of the best of many."""
    best = explanation.fastest
    if best is not None:
        return f"Fastest found: {best.words}, {numbers.times(best.speedup)} as fast per {best.unit}."
    gain = explanation.largest_gain
    if gain is None or gain.speedup is None:
        return ""
    return (
        f"Largest gain: {gain.what_if}, {numbers.times(gain.speedup)} as fast per {gain.unit} as without the "
        f"change (loop {explanation.what_if_loop})."
    )


def share(interval: Interval) -> str:
    """Return a share with its interval, in percent."""
    if interval.low is None or interval.high is None:
        return f"{interval.value:.0%}"
    return f"{interval.value:.0%} [{interval.low:.0%}, {interval.high:.0%}]"


def part_share(part: Part) -> str:
    """Return the share of a part, or the largest that it may be if it cannot be told from nothing."""
    if part.measurable or part.at_most is None:
        return share(part.share)
    return f"at most {part.at_most:.1%}" if part.at_most < 0.01 else f"at most {part.at_most:.0%}"


def effect(gain: Gain) -> str:
    """Return the verdict on a what-if: "faster", or "no gain (−4% to +3%)" with the interval of what it saves.

    A change that was seen to save nothing is never called undecided.
    """
    word = "no gain" if gain.is_without_gain else gain.verdict
    bounds = gain.saving_bounds
    if bounds is None or word in ("faster", "slower"):
        return word
    low, high = map(_signed, bounds)
    return f"{word} ({low} to {high})"


def _signed(share: float) -> str:
    return "0%" if round(100 * share) == 0 else f"{share:+.0%}".replace("-", "−")


def cause(finding: Finding) -> str:
    """Return a finding with its cause. It says so if its share was not measured."""
    unknown = "" if finding.share is not None else " Its share of the step was not measured."
    return f"{finding.cause}: {finding.sentence}{unknown}"


def untried(explanation: Explanation) -> list[str]:
    """Return the what-ifs that were not tried, grouped by the most that they can save."""
    names: dict[str, list[str]] = {}
    for what_if in explanation.untried:
        names.setdefault(numbers.percent(what_if.at_most), []).append(what_if.what_if)
    return [f"not tried, can save at most {share} of the step: {', '.join(group)}" for share, group in names.items()]


def failure(gain: Gain) -> str:
    """Return why a what-if has no ratio."""
    return gain.failure or "nothing was measured"


def roofline(step: Roofline, loop: str) -> str:
    """Return where the barest loop stands in the roofline model."""
    peak = step.compute_peak if step.bound == "compute" else step.memory_peak
    cached = " This is more than memory allows, so its working set is in a cache." if step.exceeds_memory_peak else ""
    return (
        f"Roofline of the loop {loop}: {numbers.quantity(step.flops, 'FLOP')} ({step.flops_method}) and at least "
        f"{numbers.size(int(step.bytes))} per step, so {numbers.rounded(step.intensity)} FLOP per byte. It attains "
        f"{numbers.quantity(step.flops_per_second, 'FLOP/s')}, {step.share:.0%} of the "
        f"{numbers.quantity(peak, 'FLOP/s')} that the {step.bound} peak allows in {step.dtype}.{cached}"
    )


def trace(profile: Profile) -> str:
    """Return how a profiler's trace divides a step."""
    parts = ", ".join(f"{name} {numbers.percent(share)}" for name, share in shares(profile).items())
    operations = longest_operations(profile)
    steps = numbers.count(profile.steps, "step")
    return f"Profiler trace of {steps}, {numbers.time(profile.step_seconds)} each: {parts}." + (
        f" Longest operations in a step: {plain(operations)}." if operations else ""
    )


def trace_check(explanation: Explanation) -> list[str]:
    """Return where the trace and the ladder disagree, or that they agree."""
    return explanation.disagreements or ["The trace agrees with the ladder on computing and input."]
