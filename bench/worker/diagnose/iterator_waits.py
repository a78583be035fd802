"""How often the ends of epochs wait, counted in short epochs. Worker's side only."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from bench.analyse.epoch_waits import FEWEST_ENDS
from bench.model.facts import IteratorEnd
from bench.worker.diagnose.shortened_fit import shortened
from bench.worker.fit_hook import FitHook
from bench.worker.rig import Rig

WAITS_SECONDS = 3.0
"""Time limit for counting waits, in each process."""

FEWEST_BATCHES = 4
"""Minimum number of full batches of an epoch."""

MOST_EPOCHS = 5
"""Maximum number of epochs of each length."""

EPOCH_SECONDS = 0.16
"""Length of an epoch in seconds. A wait at its end is about as long, so it stands out."""

LENGTHS = (1.0, 1.4)
"""Factors of that length. Autotuning runs when an iterator's age doubles, so at most one length ends just before it."""


def count_waits(rig: Rig, hook: FitHook, arguments: dict[str, Any], step: float, end: float) -> None:
    """Add to the fact `iterator_ends`, from which `analyse.epoch_waits` estimates how often the ends of epochs wait.

    Nothing is added if one iterator serves all epochs, or if enough epochs ended in the timed part. Nothing is
    synchronized, because that would change how often epochs wait. The program's callbacks and output stay.

    Args:
        rig: the rig.
        hook: the hook into `fit`.
        arguments: the arguments of the program's own call of `fit`.
        step: seconds of a step.
        end: seconds between two epochs.
    """
    ends = rig.facts.iterator_ends
    if ends is not None and (not ends or len(ends) >= FEWEST_ENDS):
        return
    ends = list(ends or ())
    for length in LENGTHS:
        batches = max(FEWEST_BATCHES, math.ceil(length * EPOCH_SECONDS / step))
        epochs = min(MOST_EPOCHS, int(WAITS_SECONDS / len(LENGTHS) / (1.5 * batches * step + end)))
        short = shortened(rig, arguments, batches)
        if short is None or epochs < 2:
            continue
        if short.get("steps_per_epoch"):  # one iterator serves all epochs
            rig.facts.iterator_ends = []
            return
        hook.iterator_starts.clear()
        with rig.scope(), hook.unobserved():
            hook.model.fit(**{**short, "epochs": epochs, "initial_epoch": 0})
        ends += iterator_ends(hook)
    if ends:
        rig.facts.iterator_ends = ends


def iterator_ends(hook: FitHook) -> list[IteratorEnd]:
    """Return the ends of the iterators that the hook has seen, except the last one, which may still be used."""
    return [
        IteratorEnd(age=created - previous, gap=first_step - created)
        for (_, previous), (created, first_step) in pairwise(hook.iterator_starts)
    ]
