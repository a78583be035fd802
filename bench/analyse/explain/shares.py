"""The share of the step that a cause takes: from the ladder, or from a what-if that fixes the cause."""

from __future__ import annotations

from collections.abc import Sequence

from bench.analyse.explain import antipatterns, utilization
from bench.model.explanation import Explanation, Finding, Part
from bench.model.result import Result
from bench.model.spec import LOOPS
from bench.model.step_parts import STEP_PARTS, parts_between
from bench.whatif import batch

WHAT_IF_CAUSES = {utilization.TOO_LITTLE_PARALLELISM: batch.CAUSE}
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
        finding.shared = True
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
    """Set the share of causes from what-ifs that remove them.

    Of a cause that every level has, the largest gain counts. If only one what-if removes a cause, the cause takes what
    it saves, or at most what it may save.
    """
    for finding in explanation.findings:
        cause = WHAT_IF_CAUSES.get(finding.cause)
        gains = {gain.ratio.value: gain for gain in explanation.gains if cause and gain.ratio and gain.cause == cause}
        if finding.share is None and gains:
            ratio, loop = min(gains), explanation.what_if_loop
            finding.share = min(1.0, (1 - ratio) * _level_share(explanation.parts, loop))
            gain = gains[ratio]
            finding.evidence += f"; the loop {loop} takes {1 - ratio:.0%} less per {gain.unit} with {gain.what_if}"
    for finding in explanation.findings:
        only = next((gain for gain in explanation.gains if [gain.name] == finding.what_ifs), None)
        if finding.share is None and not finding.fix and only is not None and only.saving_bounds is not None:
            low, high = only.saving_bounds
            saving = (only.saving or 0.0) if only.verdict == "faster" else high
            finding.share = min(1.0, max(0.0, saving) * _level_share(explanation.parts, only.loop))
            bounds = f"{low:+.0%} to {high:+.0%}".replace("-", "−")
            finding.evidence += f"; saved in the loop {only.loop} with {only.what_if}: {bounds}"


def _level_share(parts: Sequence[Part], loop: str) -> float:
    """Return the time of a level as a share of the program's own step."""
    order: list[str] = [*LOOPS]
    return 1.0 - sum(part.share.value for part in parts if part.lower in order[: order.index(loop) + 1])
