"""The timed part of a trial: one worker at a time runs a block, while the others are suspended."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from bench.model.result import Result
from bench.session.launch import Launcher, TrialMember
from bench.session.progress import ProgressReporter

BLOCKS = 20
"""Minimum number of blocks of a process, unless blocks are long."""

MEASURE_SECONDS = 2.5
"""Timed seconds of a process after which `FEWEST_BLOCKS` are enough."""

FEWEST_BLOCKS = 5


class Interleaving:
    """Times the blocks of workers that have warmed up.

    Args:
        members: Each worker with its result. If there are several, they are suspended.
        rng: Draws the order of the workers in each round.
        launcher: Handles the failures of workers.
        progress: Receives a report after each round.

    Attributes:
        rounds: Rounds that were run.
        seconds: Seconds of these rounds.
    """

    def __init__(
        self, members: Sequence[TrialMember], rng: random.Random, launcher: Launcher, progress: ProgressReporter
    ) -> None:
        self._members = members
        self._rng = rng
        self._launcher = launcher
        self._progress = progress
        self._position = 0
        self._timed = [0.0] * len(members)
        self.rounds = 0
        self.seconds = 0.0

    @property
    def results(self) -> list[Result]:
        """The results whose workers have not failed."""
        return [result for result, worker in self._members if worker.sample.failure is None]

    @property
    def _is_over(self) -> bool:
        """Whether no worker can run another block."""
        return all(worker.sample.failure is not None or worker.sample.ended for _, worker in self._members)

    def run_minimum(self) -> None:
        """Run the minimum of rounds: `BLOCKS`, or fewer if they are long."""
        if len(self._members) == 1 and len(self._members[0][1].sample.series) == 1:
            self._run_alone()
            return
        while not self._is_over and self.rounds < (BLOCKS if max(self._timed) <= MEASURE_SECONDS else FEWEST_BLOCKS):
            self._round()

    def run_until(self, rounds: int) -> None:
        """Run rounds until there are `rounds` in total."""
        while not self._is_over and self.rounds < rounds:
            self._round()

    def _run_alone(self) -> None:
        """Order several blocks at a time, because no other worker waits."""
        ((result, worker),) = self._members
        with self._launcher.guard(result, worker):
            worker.resume()  # it is suspended if the other workers of its trial failed
            blocks = worker.sample.series[0].blocks
            while len(blocks) < BLOCKS and not worker.sample.ended:
                if len(blocks) >= FEWEST_BLOCKS and sum(b.wall_seconds for b in blocks) > MEASURE_SECONDS:
                    break
                worker.run_blocks(FEWEST_BLOCKS, len(blocks))
                self._progress.report(result, "steady state")

    def _round(self) -> None:
        start = time.monotonic()
        alone = len(self._members) == 1
        for index in self._rng.sample(range(len(self._members)), len(self._members)):
            result, worker = self._members[index]
            if worker.sample.failure is not None or worker.sample.ended:
                continue
            with self._launcher.guard(result, worker):
                worker.resume()
                self._timed[index] += worker.run_round(self._position, lead=not alone)
                if not alone:
                    worker.suspend()
                self._position += 1
        self.rounds += 1
        self.seconds += time.monotonic() - start
        self._progress.report(self._members[0][0], "steady state" if alone else "interleaving")
