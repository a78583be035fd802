"""The blocks of one worker: ordered with as many steps as fill a block, and read."""

from __future__ import annotations

from bench.model.sample import Block, Series
from bench.session.block_steps import steps_of_block
from bench.session.sample_events import SampleEvents, block_of
from bench.session.worker_process import WorkerProcess
from bench.worker.protocol import BLOCK_SECONDS, BlockTimed, Go

SHORT_BLOCK = 0.75 * BLOCK_SECONDS
"""If the first timed block is shorter, the warm-up was slower than the steady state, and blocks get more steps."""


class Blocks:
    """Orders blocks from a worker, and reads them.

    All methods raise `OutOfSteps` if a script ended.

    Args:
        process: The process of the worker.
        events: Its events.

    Attributes:
        steps: Steps of a block, by series.
    """

    def __init__(self, process: WorkerProcess, events: SampleEvents) -> None:
        self._process = process
        self._events = events
        self.steps: dict[str, int] = {}

    def calibrate(self, series: Series) -> None:
        """Find how many steps fill a block. Only the last block of the search stays in the warm-up."""
        self._process.order(Go(series=series.name))
        longest, position = 0, len(series.warmup)
        while True:
            timed: BlockTimed = self._events.until(BlockTimed)
            block = block_of(timed, -1)
            series.warmup[position:] = [block]
            if block.wall_seconds >= BLOCK_SECONDS or block.steps <= longest:  # the program has no more steps
                break
            longest = timed.steps
        self.steps[series.name] = timed.steps

    def run(self, name: str, position: int, lead: int = 0) -> Block:
        """Run a block of a series.

        Args:
            name: Name of the series.
            position: Position of the block in the trial. -1 in the warm-up.
            lead: Number of untimed steps that go first.
        """
        self._process.order(Go(series=name, steps=self.steps[name], lead=lead))
        return self._read(name, position)

    def run_timed(self, series: Series, position: int, lead: int = 0) -> Block:
        """Run a block that counts. If the first one is short, it counts as warm-up, and a longer one follows."""
        ordered = self.steps[series.name]
        block = self.run(series.name, position, lead)
        if series.blocks or block.wall_seconds >= SHORT_BLOCK or block.steps < ordered:
            return block
        series.warmup.append(block.model_copy(update={"position": -1}))
        self.steps[series.name] = steps_of_block(series, block.step_seconds)
        return self.run(series.name, position)

    def run_several(self, series: Series, blocks: int, position: int) -> None:
        """Run several blocks that count with one order, and add each to the series.

        Args:
            series: What to time.
            blocks: Number of blocks.
            position: Position of the first one.
        """
        done = 0
        if not series.blocks:
            series.blocks.append(self.run_timed(series, position))
            done = 1
        if blocks > done:
            self._process.order(Go(series=series.name, steps=self.steps[series.name], blocks=blocks - done))
        for index in range(done, blocks):
            series.blocks.append(self._read(series.name, position + index))

    def _read(self, name: str, position: int) -> Block:
        timed: BlockTimed = self._events.until(BlockTimed)
        self.steps[name] = min(self.steps[name], timed.steps)  # the program may end before a block is full
        return block_of(timed, position)
