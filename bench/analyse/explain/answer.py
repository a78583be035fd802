"""The answer of an explanation: what to change first, and which findings are only details."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bench import whatif
from bench.analyse.explain import shares, surroundings
from bench.model.causes import FIRST_STEPS, OF_ALL_TIME, OUTSIDE, TOO_LITTLE_PARALLELISM
from bench.model.comparison import Verdict
from bench.model.explanation import MINOR, USEFUL_GAIN, CauseKind, Explanation, Finding, Gain, Part, ProgramChange
from bench.model.step_parts import StepPart, loop_of, parts_of

UNTRIED = 0.5
"""Weight of a share that no what-if saved, relative to a measured saving. Few changes remove a cause completely."""

MOST_STEP_PARTS = 2
"""Largest number of parts in which two loops may differ. A larger difference is a cause only if there is no other."""

UNCLEAR: tuple[Verdict, ...] = ("undecided", "not enough data")
"""Verdicts that leave open whether a change helps."""

MOST_GAINS = 2
"""Number of measured changes that are named for one cause."""


class _Saving(NamedTuple):
    """A what-if that makes the program faster, with the share of the program's own step that it saves."""

    gain: Gain
    share: float


@dataclass
class _Cause:
    """A cause of lost time, with the what-ifs that make it smaller."""

    kind: CauseKind
    name: str
    sentence: str
    share: float | None
    parts: frozenset[StepPart]
    source: Part | Finding | None = None
    savings: list[_Saving] = field(default_factory=list)

    @property
    def saving(self) -> float:
        """The largest measured saving, as a share of the program's own step."""
        return max((saving.share for saving in self.savings), default=0.0)

    def weight(self, steps: float) -> float:
        """Return the weight that causes are sorted by: the measured saving, or half of the share that no what-if saved.

        A share that several parts of the step have together is divided among them.

        Args:
            steps: the share of the time of an epoch that its steps take.
        """
        left = UNTRIED * ((self.share or 0.0) / self._sharers - self.saving)
        return max(self.saving, left) * self._scale(steps)

    @property
    def _sharers(self) -> int:
        """The number of parts of the step among which its share is divided, 1 if it belongs to the cause alone."""
        source = self.source
        if not isinstance(source, Finding) or not source.shared or len(source.parts) <= MOST_STEP_PARTS:
            return 1
        return len(source.parts)

    def part_of_time(self, steps: float) -> float:
        """Return the share of all time that the cause takes, 1 if it is not known.

        Args:
            steps: the share of the time of an epoch that its steps take.
        """
        return self._scale(steps) * (1.0 if self.share is None else max(self.share, self.saving))

    def _scale(self, steps: float) -> float:
        """Return the factor that turns the cause's own share into a share of an epoch."""
        return 1.0 if isinstance(self.source, Finding) and self.source.cause in OF_ALL_TIME else steps


def conclude(explanation: Explanation) -> None:
    """Complete an explanation whose measurements have ended: mark details, add the answer, and complete the fixes.

    Call it once. No fix proposes a change that was measured without gain.
    """
    explanation.findings += surroundings.surroundings(explanation)
    _mark_details(explanation)
    steps, inside = explanation.steps_share, explanation.inside_share
    causes = [cause for cause in _causes(explanation) if cause.part_of_time(steps) >= USEFUL_GAIN]
    causes.sort(key=lambda cause: -cause.weight(steps) * (1.0 if cause.name in OUTSIDE else inside))
    explanation.answer = [_change(cause, explanation.gains) for cause in causes]
    sources: list[Part | Finding] = [*explanation.parts, *explanation.findings]
    for source in sources:
        source.fix = _fix(source, explanation.gains)


def concluded(explanation: Explanation) -> Explanation:
    """Return a completed copy of an explanation, by what was measured so far."""
    copy = explanation.model_copy(deep=True)
    shares.from_what_ifs(copy)
    conclude(copy)
    return copy


def _mark_details(explanation: Explanation) -> None:
    """Mark the findings that are small, or that follow from a larger cause."""
    largest, large_parts = explanation.largest_part, _large_parts(explanation)
    computes_most = largest is None or explanation.rest_share.value > largest.share.value
    for finding in explanation.findings:
        finding.detail = finding.share is not None and finding.share < USEFUL_GAIN
        if finding.cause == TOO_LITTLE_PARALLELISM:  # steps that wait also leave CPUs idle
            finding.detail = finding.detail or finding.share is None or not computes_most
    for finding in explanation.findings:
        if finding.cause == FIRST_STEPS:  # every short training has them
            others = [other for other in explanation.findings if other is not finding and not other.detail]
            is_small = finding.share is not None and finding.share < MINOR
            finding.detail = is_small or bool(others or large_parts)


def _large_parts(explanation: Explanation) -> list[Part]:
    return [part for part in explanation.parts if part.measurable and part.share.value >= USEFUL_GAIN]


def _causes(explanation: Explanation) -> list[_Cause]:
    """Return the causes of lost time: findings, parts that no finding explains, and what only a what-if shows."""
    causes = [_cause(finding) for finding in explanation.findings if not finding.detail]
    found = list(causes)
    for part in _large_parts(explanation):
        if found and len(part.step_parts) > MOST_STEP_PARTS:  # it says less than the other causes
            continue
        explained = [cause.share or 0.0 for cause in found if cause.parts & part.step_parts]
        if max(explained, default=0.0) < part.share.value / 2:
            sentence = f"{part.share.value:.0%} of the step is {part.name}: {part.what}."
            causes.append(_Cause("part", part.name, sentence, part.share.value, part.step_parts, part))
    for gain in explanation.gains:
        if gain.verdict == "faster":
            _assign(gain, causes, explanation)
    return causes


def _cause(finding: Finding) -> _Cause:
    """Return a finding as a cause, with its share. A share by samples of the stack is in the program's own loop."""
    sentence, share = f"{_capital(finding.cause)}: {finding.sentence}", finding.share
    if share is not None and not re.search(rf"(?<!\d){share:.0%}", sentence):
        amount = f"about {share:.0%}" if finding.estimated else f"at most {share:.0%}"
        sentence += f" That takes {amount} of the step."
    sampled: list[StepPart] = ["own loop"] if finding.estimated else []
    return _Cause("finding", finding.cause, sentence, share, frozenset(finding.parts or sampled), finding)


def _assign(gain: Gain, causes: list[_Cause], explanation: Explanation) -> None:
    """Add a gain to the largest cause that its what-if acts on. Of several values of a what-if, the best counts.

    A what-if does not act on parts of the step that the loop in which it was tried lacks.
    """
    saving = shares.saved_share(explanation.parts, gain)
    acts_on = whatif.acts_on(gain.name) & parts_of(loop_of(gain.loop or explanation.own_loop))
    fitting = [cause for cause in causes if cause.parts & acts_on and (cause.share is None or cause.share > saving / 2)]
    is_test = whatif.tests_suspect(gain.name) if gain.name in whatif.names() else False
    tested = [
        cause
        for cause in causes
        if (is_test or not cause.parts) and cause.source and gain.name in cause.source.what_ifs
    ]
    if tested:
        cause = tested[0]
    elif fitting:
        cause = max(fitting, key=lambda cause: cause.share or 0.0)
    else:
        cause = _new_cause(gain, saving, acts_on, explanation)
        causes.append(cause)
    if gain.name not in {other.gain.name for other in cause.savings}:
        cause.savings.append(_Saving(gain, saving))


def _new_cause(gain: Gain, saving: float, acts_on: frozenset[StepPart], explanation: Explanation) -> _Cause:
    """Return the cause of a gain that fits no other cause: computing, or the cause that its what-if names."""
    rest, share = parts_of(explanation.lowest_loop), min(1.0, explanation.rest_share.value)
    if rest == parts_of("fused") and acts_on & rest and share > saving / 2:
        return _Cause("computing", "computing", f"Computing takes {share:.0%} of the step.", share, rest)
    return _Cause("what-if", gain.name, f"{_capital(gain.cause or gain.what_if)}.", None, frozenset())


def _change(cause: _Cause, gains: Sequence[Gain]) -> ProgramChange:
    """Return what to change about a cause. If one measured change removes half of it, only that one is named."""
    helpful = [
        _with_fix(saving.gain, cause.source) for saving in sorted(cause.savings, key=lambda saving: -saving.share)
    ]
    if helpful and cause.saving >= (cause.share or 0.0) / 2:
        helpful, fix = helpful[:1], ""
    else:
        names = {gain.name for gain in helpful}
        fix = _fix(cause.source, gains, without=names) if cause.source is not None else ""
    return ProgramChange(
        kind=cause.kind,
        name=cause.name,
        cause=cause.sentence,
        share=None if isinstance(cause.source, Finding) and cause.source.is_lower_bound else cause.share,
        gains=helpful[:MOST_GAINS],
        fix=fix,
        fix_undecided=bool(fix) and cause.source is not None and _is_undecided(cause.source, gains),
        fix_failed=bool(fix) and cause.source is not None and _has_failed(cause.source, gains),
    )


def _with_fix(gain: Gain, source: Part | Finding | None) -> Gain:
    """Return a gain with the fix of its cause as its advice, if that is what was measured."""
    does_fix = source is not None and gain.name in source.what_ifs and whatif.measures_fix(gain.name)
    return gain.model_copy(update={"advice": source.fix}) if source is not None and does_fix else gain


def _has_other_fix(source: Part | Finding) -> bool:
    """Return whether the fix of a cause is not what one of its what-ifs does."""
    return bool(source.fix) and not any(map(whatif.measures_fix, source.what_ifs))


def _is_undecided(source: Part | Finding, gains: Sequence[Gain]) -> bool:
    """Return whether each change against a cause was tried, and the trials do not decide whether one helps."""
    unclear = {gain.name for gain in gains if gain.verdict in UNCLEAR and not gain.is_refuted and not gain.failure}
    return not _has_other_fix(source) and bool(source.what_ifs) and set(source.what_ifs) <= unclear


def _has_failed(source: Part | Finding, gains: Sequence[Gain]) -> bool:
    """Return whether each change against a cause was tried, and each of them failed."""
    failed = {gain.name for gain in gains if gain.failure} - {gain.name for gain in gains if not gain.failure}
    return not _has_other_fix(source) and bool(source.what_ifs) and set(source.what_ifs) <= failed


def _fix(source: Part | Finding, gains: Sequence[Gain], without: Collection[str] = ()) -> str:
    """Return the fix with the advice of its what-ifs. What was measured without gain is replaced or left out.

    Args:
        source: what has the fix.
        gains: all what-ifs that were tried.
        without: names of what-ifs whose advice is left out.
    """
    fix, sentences = source.fix, []
    for name in source.what_ifs:
        tried = [gain for gain in gains if gain.name == name and gain.ratio is not None]
        is_refuted = bool(tried) and all(gain.is_refuted for gain in tried)
        if whatif.measures_fix(name):
            fix = "" if is_refuted or name in without else fix
        if is_refuted:
            sentences.append(whatif.instead(name))
        elif name not in without and not whatif.measures_fix(name):
            sentences.append(whatif.advice(name))
    return " ".join(filter(None, [fix, *sentences]))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
