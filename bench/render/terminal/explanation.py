"""An explanation in plain text: what to change first, then the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.model.explanation import Explanation, Finding, Gain
from bench.render import numbers
from bench.render.sentences import explanation as sentences
from bench.render.text import WIDTH, filled, plain

BAR = 24
"""Characters of the bar of a whole step."""

MOSTLY = 0.95
"""If the steps take more than this share of the training, the parts of the training are not shown."""

NOTABLE = 0.01
"""Smallest share of the training, or of the program's own step, that is shown."""


def text(explanation: Explanation, width: int = WIDTH, verbose: bool = False) -> str:
    """Return the explanation: what to change first, then the evidence.

    Args:
        explanation: what to show.
        width: maximum length of a line, in characters.
        verbose: whether to show details too: findings that are small or follow from a larger cause, and all fixes.
    """
    lines = filled(sentences.headline(explanation), width)
    ladder, findings = partial(_ladder, verbose=verbose), partial(_findings, verbose=verbose)
    for section in (_answer, _training, ladder, _own_step, findings, _what_ifs, _roofline, _trace, _caveats):
        section_lines = [line for indent, line in section(explanation) for line in filled(line, width, indent)]
        lines += ["", *section_lines] if section_lines else []
    if explanation.fastest is not None:
        lines += ["", "Fastest configuration measured:", f"  {explanation.fastest.command}"]  # not broken, to be copied
    return "".join(f"{line}\n" for line in lines)


Lines = Iterator[tuple[int, str]]
"""Lines that are not yet wrapped, each with its indentation in characters."""


def _answer(explanation: Explanation) -> Lines:
    changes = sentences.changes(explanation)
    if changes:
        yield 0, "What to change first:"
    for number, (cause, advice) in enumerate(changes, 1):
        yield 2, f"{number}. {cause}"
        for line in advice:
            yield 5, line
    for line in sentences.outlook(explanation):
        yield 2, line


def _training(explanation: Explanation) -> Lines:
    """Yield the parts of the training, unless nearly all of it is steps."""
    if not explanation.wall_time or explanation.training_steps_share > MOSTLY:
        return
    yield 0, f"{sentences.training(explanation)}:"
    for part in explanation.wall_time:
        if part.share >= NOTABLE:
            yield 2, f"{_bar(part.share)} {part.share:.0%}  {plain(part.name)}, {numbers.time(part.seconds)}"


def _ladder(explanation: Explanation, verbose: bool) -> Lines:
    yield 0, f"Where the time of a step goes ({numbers.count(explanation.trials, 'trial')}, 95% intervals):"
    for part in explanation.parts:
        bar = _bar(part.share.value if part.measurable else 0)
        levels = f"{part.upper} minus {part.lower}, {numbers.time(part.seconds)}"
        yield 2, f"{bar} {sentences.part_share(part)}  {part.name}: {sentences.part_what(part)} ({levels})"
        if part.fix and verbose:
            yield 4, f"Fix: {part.fix}"
    name, what = sentences.rest(explanation)
    level = f"{explanation.lowest_level}, {numbers.time(explanation.rest_seconds)}"
    yield 2, f"{_bar(explanation.rest_share.value)} {sentences.share(explanation.rest_share)}  {name}: {what} ({level})"
    for missing in sentences.missing_levels(explanation):
        yield 2, missing


def _own_step(explanation: Explanation) -> Lines:
    if explanation.own_step:
        yield 0, f"{sentences.own_step_title(explanation)}:"
    for part in explanation.own_step:
        if part.share >= NOTABLE:
            lines = f" ({plain(part.lines)})" if part.lines else ""
            yield 2, f"{_bar(part.share)} {part.share:.0%}  {sentences.OWN_STEP[part.kind]}{lines}"


def _bar(share: float) -> str:
    return "#" * max(0, min(BAR, round(BAR * share))) or "-"


def _roofline(explanation: Explanation) -> Lines:
    if explanation.roofline is not None:
        yield 0, sentences.roofline(explanation.roofline, explanation.lowest_level)


def _trace(explanation: Explanation) -> Lines:
    if explanation.profile is not None:
        check = " ".join(sentences.trace_check(explanation))
        yield 0, f"{sentences.trace(explanation.profile)} {check} Trace: {plain(explanation.profile.folder)}"


def _findings(explanation: Explanation, verbose: bool) -> Lines:
    shown = [finding for finding in explanation.findings if verbose or not finding.detail]
    if shown:
        yield 0, "Findings:"
    for finding in shown:
        yield from _finding(finding)
    hidden = len(explanation.findings) - len(shown)
    if hidden:
        yield 0, f"{numbers.count(hidden, 'finding')} that {'matters' if hidden == 1 else 'matter'} less: --verbose."


def _finding(finding: Finding) -> Lines:
    yield 2, plain(sentences.cause(finding))
    yield 4, f"Evidence: {plain(finding.evidence)}"
    if finding.fix:
        yield 4, f"Fix: {finding.fix}"


def _what_ifs(explanation: Explanation) -> Lines:
    """Yield a line for each what-if that is faster, then the names of the others, then those that failed."""
    if not explanation.gains and not explanation.untried:
        return
    compared = f", each compared with the loop {explanation.what_if_loop} without it" if explanation.gains else ""
    yield 0, f"What-ifs{compared}:"
    for gain in explanation.gains:
        if gain.verdict == "faster":
            yield 2, gain_line(gain, explanation.what_if_loop)
    if explanation.combined is not None:
        yield 2, f"combined: {gain_line(explanation.combined)}"
    for word in ("no gain", "same", "undecided", "slower"):
        names = [_name(gain) for gain in explanation.gains if sentences.word(gain) == word and gain.ratio is not None]
        if names:
            yield 2, f"{word}: {', '.join(names)}"
    for gain in explanation.gains:
        if gain.ratio is None or gain.verdict == "not enough data":
            yield 2, gain_line(gain)
    for line in sentences.untried(explanation):
        yield 2, line


def _name(gain: Gain) -> str:
    """Return the name of a what-if with its ratio if it is slower, otherwise with the bounds of what it saves."""
    if gain.verdict == "slower" and gain.ratio is not None:
        return f"{gain.what_if} ({numbers.times(gain.ratio)} as long, {numbers.count(gain.ratio.n, 'trial')})"
    return f"{gain.what_if}{sentences.evidence(gain)}"


def gain_line(gain: Gain, usual_loop: str = "") -> str:
    """Return a what-if with its verdict, its ratio and its option.

    Args:
        gain: the what-if.
        usual_loop: the loop that most what-ifs were tried on. Another one is named. Empty to name none.
    """
    if gain.ratio is None or gain.speedup is None:
        return f"failed: {gain.what_if} ({gain.option}): {plain(sentences.failure(gain))}"
    faster = gain.verdict == "faster"
    factor = numbers.times(gain.speedup if faster else gain.ratio)
    cause = f". Cause: {gain.cause}, {gain.saving:.0%} of the time" if gain.cause else ""
    evidence = numbers.count(gain.ratio.n, "trial")
    loop = f" in the loop {gain.loop}" if usual_loop and gain.loop not in ("", usual_loop) else ""
    speed = f"{factor} as {'fast' if faster else 'long'} per {gain.unit}{loop} ({evidence})"
    return f"{gain.verdict}: {gain.what_if} ({gain.option}): {speed}{cause}"


def _caveats(explanation: Explanation) -> Lines:
    for caveat in explanation.caveats:
        yield 0, f"warning: {plain(caveat)}"
