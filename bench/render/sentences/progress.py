"""Phrases about a run in progress, for the terminal and the hub."""

from __future__ import annotations

from collections.abc import Sequence

from bench.model.interval import WIDE, uncertainty
from bench.model.run_state import Estimate, LargestPart
from bench.render import numbers
from bench.render.labels import phase_label


def activity(phase: str, note: str) -> str:
    """Return the phase, and the reason if it takes long, such as "device init (may compile for minutes)"."""
    return phase_label(phase) + (f" ({note})" if note else "")


def process(trial: int, planned: int | None) -> str:
    """Return which process runs, such as "4 of about 7"."""
    return f"{trial} of about {planned}" if planned and planned >= trial else str(trial)


def estimate(step_seconds: float, relative_error: float | None) -> str:
    """Return the step time so far, such as "18.4 ms ± 2.1%"."""
    step = numbers.time(step_seconds)
    if relative_error is None:
        return step
    wide = relative_error > WIDE
    return f"{step} ({uncertainty(relative_error)})" if wide else f"{step} ± {numbers.percent(relative_error)}"


def largest_part(part: LargestPart) -> str:
    """Return the largest part so far: "the largest part so far is input: 93% of the step (85–97%, 1 trial)"."""
    share, trials = part.share, numbers.count(part.share.n, "trial")
    bounds = "" if share.low is None or share.high is None else f"{100 * share.low:.0f}–{min(1.0, share.high):.0%}, "
    return f"the largest part so far is {part.name}: {share.value:.0%} of the step ({bounds}{trials})"


def estimates(measured: Sequence[Estimate]) -> str:
    """Return the step time so far of each spec."""
    titles = distinct([spec.title for spec in measured])
    return "; ".join(
        f"{title}: {estimate(spec.step_seconds, spec.relative_error)}"
        for title, spec in zip(titles, measured, strict=True)
    )


def distinct(titles: Sequence[str]) -> list[str]:
    """Return titles of specs without what all of them begin with, such as "cifar on cpu" of "cifar on cpu, fit"."""
    parts = [title.split(", ") for title in titles]
    common = 0
    while len(parts) > 1 and all(len(own) > common + 1 and own[common] == parts[0][common] for own in parts):
        common += 1
    return [", ".join(own[common:]) for own in parts]
