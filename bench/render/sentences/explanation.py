"""Sentences about an explanation, shared by the terminal, the report and the hub."""

from __future__ import annotations

from bench.model.causes import OF_ALL_TIME, OUTSIDE
from bench.model.explanation import MINOR, Explanation, Finding, Gain, Part, ProgramChange
from bench.model.facts import CallKind
from bench.model.interval import Interval
from bench.model.loops import BARE
from bench.model.profile import Profile
from bench.model.roofline import Roofline
from bench.render import numbers
from bench.render.text import plain
from bench.render.trace import longest_operations, shares

NOTABLE = 0.1
"""Smallest share of a step that the headline names."""

LOOSE = 4.0
"""A bound of the speed is not shown if its interval reaches above this multiple of its value."""

MOST_CHANGES = 3
"""Number of changes that the answer names."""


OWN_STEP: dict[CallKind, str] = {
    "graph": "inside tf.functions and sessions",
    "eager": "operations that run one by one from Python",
    "keras": "methods of Keras that run steps of their own",
    "tracing": "tracing new graphs",
    "summary": "writing summaries",
    "building": "building layers, models, optimizers or functions",
    "read": "reading values from tensors",
    "input": "getting the next batch",
    "python": "Python without TensorFlow",
    "other": "outside the lines of the program",
}
"""What a step of the program's own loop spends time on, in words."""


def headline(explanation: Explanation) -> str:
    """Return the step time and the largest part, after the share of computing if the answer begins with that."""
    step = f"{explanation.label}: a step takes {numbers.time(explanation.step_seconds)}."
    part, unclear = explanation.largest_part, explanation.unassigned_share
    notable = part is not None and part.share.value > NOTABLE
    if explanation.steps_are_minor:
        sentences = []
    elif explanation.answer and explanation.answer[0].kind == "computing":
        also = f", and {part.share.value:.0%} is {part.name}: {part.what}." if part is not None and notable else "."
        sentences = [_rest_sentence(explanation).removesuffix(".") + also]
    elif part is not None and notable:
        sentences = [f"{part.share.value:.0%} of it is {part.name}: {part.what}."]
    elif unclear > NOTABLE and (cause := _first_cause(explanation)):
        amount = "about" if cause.estimated else "up to"
        sentences = [f"{_capital(cause.cause)} takes {amount} {cause.share:.0%} of it."]
    elif unclear > NOTABLE:
        amount = "Its time" if unclear >= 1 else f"{unclear:.0%} of it"  # parts of both signs may exceed 100%
        trials = numbers.count(explanation.trials, "trial")
        sentences = [f"{amount} cannot be assigned to a part after {trials}. Increase --max-time or --max-processes."]
    else:
        sentences = [_rest_sentence(explanation)]
    if between := explanation.between_epochs:
        sentences.append(f"{between:.0%} of an epoch passes between its steps and those of the next.")
    if between := explanation.between_steps:
        sentences.append(f"{between:.0%} of the time passes between steps.")
    sentences += _outside(explanation)
    elsewhere = any(not finding.detail for finding in explanation.findings)
    if not explanation.answer and not elsewhere and unclear <= NOTABLE:
        sentences.append(_nothing_found(explanation))
    return " ".join([step, *sentences])


def _outside(explanation: Explanation) -> list[str]:
    """Return what the program spends before its first step and after its last one, if that is notable."""
    works = {f.cause: f.share for f in explanation.findings if f.cause in OUTSIDE and f.share is not None}
    sentences = [f"{share:.0%} of the time of the whole program is {cause}." for cause, share in works.items()]
    longest = explanation.wall_time[0] if explanation.wall_time else None
    if longest is not None and longest.outside and longest.share > MINOR and not works:
        sentences.append(f"{_capital(longest.name)} takes {longest.share:.0%} of the time of the whole program.")
    return sentences


def _first_cause(explanation: Explanation) -> Finding | None:
    """Return the finding that comes first in the answer, if its share of the step is known and notable."""
    if not explanation.answer or explanation.answer[0].kind != "finding":
        return None
    name = explanation.answer[0].name
    shown = (finding for finding in explanation.findings if finding.cause == name and finding.parts)
    return next((finding for finding in shown if (finding.share or 0.0) > NOTABLE), None)


def changes(explanation: Explanation) -> list[tuple[str, list[str]]]:
    """Return the causes to remove first, each with what to change: measured changes, then what is not known to help."""
    return [(plain(change.cause), _advice(change, explanation)) for change in explanation.answer[:MOST_CHANGES]]


def so_far(explanation: Explanation) -> str:
    """Return the cause that comes first by the trials so far: "so far (3 trials): …"."""
    trials = numbers.count(explanation.trials, "trial")
    if not explanation.answer:
        return f"so far, no cause of lost time is known ({trials})"
    return f"so far ({trials}): {plain(explanation.answer[0].cause)}"


def _advice(change: ProgramChange, explanation: Explanation) -> list[str]:
    """Return what to change about a cause."""
    own_loop, of_all_time = explanation.own_loop, change.name in OF_ALL_TIME or explanation.steps_share >= 1
    lines = [
        f"{gain.advice or _capital(gain.what_if) + '.'} Measured: {speed(gain, own_loop)}." for gain in change.gains
    ]
    if change.fix:
        of = "" if of_all_time else " of a step"  # elsewhere in the answer, shares are of an epoch
        most = f", can save at most {numbers.percent(min(1.0, change.share))}{of}" if change.share is not None else ""
        tried = "tried, but failed" if change.fix_failed else "undecided" if change.fix_undecided else "not tried"
        lines.append(f"{change.fix} ({tried}{most})")
    return lines or ["No change that helps is known."]


def speed(gain: Gain, own_loop: str) -> str:
    """Return how many times as fast a what-if makes the program: "15 times [14, 16] as fast per step".

    Args:
        gain: the effect of the what-if.
        own_loop: the loop of the program as written. If the what-if was tried on another loop, the text names it.
    """
    factor = numbers.times(gain.speedup) if gain.speedup is not None else "unknown"
    return f"{factor} as fast per {gain.unit}" + (f" in the loop {gain.loop}" if gain.loop != own_loop else "")


def outlook(explanation: Explanation) -> list[str]:
    """Return the gain of the changes together, and the most that is possible."""
    lines = []
    best = explanation.combined
    if best is not None and best.verdict == "faster":
        lines.append(f"Together ({best.what_if}): {speed(best, explanation.own_loop)}.")
    most = explanation.most_speedup
    if most is None or most.low is None or most.high is None or explanation.steps_are_minor:
        return lines
    if most.low <= 1 or most.high > LOOSE * most.value:  # it is not known
        return lines
    if explanation.answer and most.value > 1 + NOTABLE:
        besides = any(finding.cause in OF_ALL_TIME and not finding.detail for finding in explanation.findings)
        what = " per typical step" if besides else ""  # the loop also lacks what most steps go without
        lines.append(
            f"Without faster computing, no more than {numbers.times(most)} as fast{what} is possible (loop "
            f"{explanation.lowest_level})."
        )
    return lines


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def rest(explanation: Explanation) -> tuple[str, str]:
    """Return a name for the time of the lowest level, and what it includes or why it is not divided."""
    if explanation.lowest_level in BARE:
        return "computing", "the work that is left in the lowest level"
    return "not divided", "no lower level was measured"


def _rest_sentence(explanation: Explanation) -> str:
    share = f"{min(1.0, explanation.rest_share.value):.0%}"
    name, reason = rest(explanation)
    if name == "computing":
        return f"{share} of it is computing."
    if explanation.own_step:
        largest = explanation.own_step[0]
        lines = f" ({plain(largest.lines)})" if largest.lines else ""
        return f"{largest.share:.0%} of it is {OWN_STEP[largest.kind]}{lines}."
    return f"{share} of it is not divided into parts, because {reason}."


def training(explanation: Explanation) -> str:
    """Return the title of the parts of the program, with its time."""
    total = sum(part.seconds for part in explanation.wall_time)
    return f"Where the time of the whole program goes ({numbers.time(total)}, projected)"


def own_step_title(explanation: Explanation) -> str:
    """Return the title of the parts of a step of the program's own loop."""
    steps = numbers.count(explanation.own_step[0].steps, "step")
    return f"Where the host's time of the program's own loop goes (samples of the stack in {steps})"


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


def share(interval: Interval) -> str:
    """Return a share with its interval, in percent. Without an interval, an impossible share is "unknown".

    Bounds end at 100%, unless the value itself is larger: a lower level may take longer than the program.
    """
    value, low, high = interval.value, interval.low, interval.high
    if low is None or high is None:
        return f"{value:.0%}" if 0 <= value <= 1 else "unknown"
    return f"{_whole(value)} [{_whole(low)}, {_whole(high if value > 1 else min(1.0, high))}]"


def _whole(share: float) -> str:
    """Return a share in whole percents, which may be negative."""
    return "0%" if round(100 * share) == 0 else f"{share:.0%}".replace("-", "−")


def part_what(part: Part) -> str:
    """Return what a part is. If its time is negative, say which loop takes longer."""
    if part.measurable and part.share.value < 0:
        return f"negative, because the loop {part.lower} takes longer than the loop {part.upper}"
    return part.what


def part_share(part: Part) -> str:
    """Return the share of a part. If the part may take no time, return the largest share that it may take."""
    if part.measurable or part.at_most is None:
        return share(part.share)
    most = min(1.0, part.at_most)
    return f"at most {most:.1%}" if most < 0.01 else f"at most {most:.0%}"


def effect(gain: Gain) -> str:
    """Return the verdict on a what-if with its evidence: "faster (3 trials)" or "no gain (−4% to +3%, 3 trials)".

    If the interval rules out a useful gain, the verdict is "no gain" instead of "undecided".
    """
    return f"{word(gain)}{evidence(gain)}"


def tried(gain: Gain) -> str:
    """Return the line for a what-if that was measured: "tried XLA: faster (3 trials), 1.3 times [1.2, 1.4] as fast"."""
    if gain.ratio is None or gain.speedup is None:
        return f"tried {gain.what_if}: failed: {failure(gain)}"
    fast = f", {numbers.times(gain.speedup)} as fast" if gain.verdict == "faster" else ""
    return f"tried {gain.what_if}: {effect(gain)}{fast}"


def word(gain: Gain) -> str:
    """Return the verdict on a what-if, or "no gain"."""
    return "no gain" if gain.is_without_gain else gain.verdict


def evidence(gain: Gain) -> str:
    """Return what the verdict on a what-if rests on: " (3 trials)" or " (−4% to +3%, 3 trials)". Empty if nothing."""
    bounds = gain.saving_bounds
    if bounds is None or gain.ratio is None:
        return ""
    trials = numbers.count(gain.ratio.n, "trial")
    if word(gain) in ("faster", "slower"):
        return f" ({trials})"
    if gain.is_too_wide:
        return f" (too wide to tell, {trials})"
    low, high = map(_signed, bounds)
    return f" ({low} to {high}, {trials})"


def _signed(share: float) -> str:
    return f"{'+' if round(100 * share) > 0 else ''}{_whole(share)}"


def cause(finding: Finding) -> str:
    """Return a finding with its cause. It says so if its share was not measured."""
    unknown = "" if finding.share is not None else " Its share of the step was not measured."
    return f"{finding.cause}: {finding.sentence}{unknown}"


def untried(explanation: Explanation) -> list[str]:
    """Return the what-ifs that were not tried, grouped by the most that they can save."""
    names: dict[str, list[str]] = {}
    for what_if in explanation.untried:
        names.setdefault(numbers.percent(what_if.at_most), []).append(what_if.what_if)
    return [f"not tried, can save at most {share} of the time: {', '.join(group)}" for share, group in names.items()]


def failure(gain: Gain) -> str:
    """Return why a what-if has no ratio."""
    return gain.failure or "nothing was measured"


def roofline(step: Roofline, loop: str) -> str:
    """Return where the lowest level stands in the roofline model."""
    peak = step.compute_peak if step.bound == "compute" else step.memory_peak
    cached = " The memory alone cannot supply that, so the data are in a cache." if step.exceeds_memory_peak else ""
    rate, allowed = numbers.quantity(step.flops_per_second, "FLOP/s"), numbers.quantity(peak, "FLOP/s")
    return (
        f"Roofline of the loop {loop}: a step does {numbers.quantity(step.flops, 'FLOP')} ({step.flops_method}) and "
        f"moves at least {numbers.size(int(step.bytes))}. That is at most {numbers.rounded(step.intensity)} FLOP per "
        f"byte. The step attains {rate}: {numbers.percent(step.share)} of the {allowed} that the {step.bound} peak "
        f"allows in {step.dtype}.{cached}"
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
