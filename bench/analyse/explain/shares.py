"""The share of the step that a cause takes: from the ladder, or from a what-if that fixes the cause."""

from __future__ import annotations

from collections.abc import Sequence

from bench import whatif
from bench.analyse.explain import antipatterns
from bench.model.causes import SMALL_STEPS, TOO_LITTLE_PARALLELISM
from bench.model.explanation import Explanation, Finding, Gain, Part
from bench.model.result import Result
from bench.model.spec import LOOPS
from bench.model.step_parts import STEP_PARTS, loop_of, parts_between
from bench.whatif import batch

WHAT_IF_CAUSES = {TOO_LITTLE_PARALLELISM: batch.CAUSE}
"""Causes that every level has: the cause of a finding, and the cause that a what-if against it names."""


def from_levels(findings: Sequence[Finding], levels: Sequence[Result], parts: Sequence[Part]) -> None:
    """Set the share of each finding to what a level without its cause saves. The cause takes at most that.

    A share that is already set stays. It belongs to one cause, but levels may differ in several.
    """
    level_causes = [antipatterns.causes(level) for level in levels]
    spans = {id(finding): _span(finding.cause, levels, level_causes) for finding in findings}
    for finding in findings:
        span = spans[id(finding)]
        if span is None or finding.share is not None:
            continue
        upper, lower = span
        intervals = [part.share for part in parts[upper:lower]]
        if not intervals or sum(-1.0 if share.low is None else share.low for share in intervals) <= 0:
            continue
        finding.share = min(1.0, sum(share.value for share in intervals))
        finding.parts = sorted(parts_between(levels[upper].spec.loop, levels[lower].spec.loop), key=STEP_PARTS.index)
        finding.shared, finding.estimated = True, False
        has_others = list(spans.values()).count(span) > 1
        finding.evidence += (
            f"; {levels[upper].spec.loop} minus {levels[lower].spec.loop} is {finding.share:.0%} of the step"
            + (", shared with other findings" if has_others else "")
        )


def _span(cause: str, levels: Sequence[Result], level_causes: Sequence[set[str] | None]) -> tuple[int, int] | None:
    """Return the positions of the last level that has a cause and of the first level after it that does not.

    None if no level is known to be without it. `fit` is skipped: it leaves things out of the program's own loop, but
    adds work of its own.
    """
    upper = None
    for lower, (level, causes) in enumerate(zip(levels, level_causes, strict=True)):
        if causes is not None and cause in causes:
            upper = lower
        elif causes is None or upper is None:
            return None
        elif level.spec.loop != "fit":
            return upper, lower
    return None


def from_what_ifs(explanation: Explanation) -> None:
    """Set the share of causes from what-ifs that remove them. Call it once for each explanation.

    Of a cause that every level has, the largest gain counts. If only one what-if removes a cause, the cause takes what
    it saves, or at most what it may save. A cause whose test gained nothing takes no more, whatever else was estimated,
    and one whose test gained more than that takes at least what it gained.
    """
    for finding in explanation.findings:
        cause = WHAT_IF_CAUSES.get(finding.cause)
        gains = [gain for gain in explanation.gains if cause and gain.ratio and gain.cause == cause]
        if finding.share is None and gains:
            gain = max(gains, key=lambda gain: saved_share(explanation.parts, gain))
            finding.share = saved_share(explanation.parts, gain)
            finding.evidence += (
                f"; the loop {gain.loop} takes {gain.saving:.0%} less per {gain.unit} with {gain.what_if}"
            )
    for finding in explanation.findings:
        if finding.cause == SMALL_STEPS and finding.share is not None:  # it was measured in another loop
            finding.share *= _level_share(explanation.parts, explanation.what_if_loop)
    for finding in explanation.findings:
        only = next((gain for gain in explanation.gains if [gain.name] == finding.what_ifs), None)
        if only is None or only.saving_bounds is None or only.is_too_wide:
            continue
        low, high = only.saving_bounds
        most = min(1.0, max(0.0, high) * _level_share(explanation.parts, only.loop))
        if finding.share is None and not finding.fix:
            saves = only.verdict == "faster"
            finding.share = saved_share(explanation.parts, only) if saves else most
            finding.sentence += f" That takes {'about' if saves else 'at most'} {finding.share:.0%} of the step."
            finding.estimated = False
        elif finding.share is not None and finding.share > most and only.is_refuted and whatif.tests_suspect(only.name):
            finding.share = most
            saved = f"saved at most {most:.0%} of the step" if round(100 * most) else "saved nothing"
            finding.sentence += f" But the test of this ({only.what_if}) {saved}."
            finding.estimated = False
        elif _is_too_small(finding, only, explanation.parts):
            finding.share = saved_share(explanation.parts, only)
        else:
            continue
        bounds = f"{low:+.0%} to {high:+.0%}".replace("-", "−")
        finding.evidence += f"; saved in the loop {only.loop} with {only.what_if}: {bounds}"


def _is_too_small(finding: Finding, gain: Gain, parts: Sequence[Part]) -> bool:
    """Return whether a what-if saves more than the estimated share of the cause, which the sentence does not name."""
    is_named = finding.share is not None and f"{finding.share:.0%}" in finding.sentence
    is_open = finding.estimated and not is_named and gain.verdict == "faster"
    return is_open and saved_share(parts, gain) > (finding.share or 0.0)


def saved_share(parts: Sequence[Part], gain: Gain) -> float:
    """Return the share of the program's own step that a what-if saves, 0 if it saves nothing.

    A what-if saves time of the loop that it was tried on, which may lack much of the program's own step.

    Args:
        parts: of the ladder.
        gain: the effect of the what-if.
    """
    return max(0.0, gain.saving or 0.0) * _level_share(parts, gain.loop)


def _level_share(parts: Sequence[Part], loop: str) -> float:
    """Return the time of a level as a share of the program's own step. An empty loop is that of the program."""
    above = LOOPS[: LOOPS.index(loop_of(loop)) + 1] if loop else ()
    return min(1.0, max(0.0, 1.0 - sum(part.share.value for part in parts if part.lower in above)))
