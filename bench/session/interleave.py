"""The timed part of a trial: its workers take turns block by block, whoever waits suspended; one alone goes on."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from bench.model.result import Result
from bench.session.worker_sample import Sampling

BLOCKS = 20
"""Blocks of a process at least, unless they are long."""

MEASURE_SECONDS = 2.5
"""Where blocks are long, no more are due after this, once there are `FEWEST_BLOCKS`."""

FEWEST_BLOCKS = 5

Pair = tuple[Result, Sampling]
Guard = Callable[[Result, Sampling], AbstractContextManager[None]]
"""Makes a worker that ends badly fail its own result only."""

Tell = Callable[[Result, str], None]
"""Told of a result and its phase, between blocks."""


Length = Callable[[int, float], int]
"""Told of the rounds that are due at least and the seconds that they took, says how many there should be."""


def interleave(pairs: Sequence[Pair], rng: random.Random, guarded: Guard, tell: Tell, length: Length) -> None:
    """Times the blocks of workers that are warmed up and suspended.

    Args:
        pairs: each worker with its result.
        rng: draws the order of each round.
        guarded: around whatever a worker is asked to do.
        tell: of progress.
        length: asked once of each trial of several.
    """
    if len(pairs) == 1 and len(pairs[0][1].sample.series) == 1:
        _alone(pairs[0], guarded, tell)
    else:
        _in_rounds(pairs, rng, guarded, tell, length)


def _alone(pair: Pair, guarded: Guard, tell: Tell) -> None:
    """Several blocks at each order: nobody waits for a turn."""
    result, worker = pair
    with guarded(result, worker):
        worker.resume()  # it waits suspended where the others of its trial failed
        timed = 0.0
        while len(worker.sample.series[0].blocks) < BLOCKS:
            done = len(worker.sample.series[0].blocks)
            if done >= FEWEST_BLOCKS and timed > MEASURE_SECONDS:
                break
            worker.run(FEWEST_BLOCKS, done)
            timed = sum(b.seconds for b in worker.sample.series[0].blocks)
            tell(result, "steady state")


def _in_rounds(pairs: Sequence[Pair], rng: random.Random, guarded: Guard, tell: Tell, length: Length) -> None:
    turn, timed = 0, [0.0] * len(pairs)
    alone = len(pairs) == 1
    begun = time.monotonic()
    wanted: int | None = None
    for round_number in itertools.count():
        due = BLOCKS if max(timed) <= MEASURE_SECONDS else FEWEST_BLOCKS
        if wanted is None and round_number >= due:
            wanted = round_number if alone else length(round_number, time.monotonic() - begun)
        if wanted is not None and round_number >= wanted:
            break
        for index in rng.sample(range(len(pairs)), len(pairs)):
            result, worker = pairs[index]
            if worker.sample.failure is not None:
                continue
            with guarded(result, worker):
                worker.resume()
                timed[index] += worker.turn(turn, lead=not alone)
                if not alone:
                    worker.suspend()
                turn += 1
        tell(pairs[0][0], "taking turns" if not alone else "steady state")
