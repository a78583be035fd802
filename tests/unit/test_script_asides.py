"""Work between some steps of a script's own loop, such as a validation, is kept out of the steps."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from test_timed_loop import STEP, Bench

from bench.model.recognition import StepSource
from bench.worker.protocol import BlockTimed, Go
from bench.worker.script import asides, watch
from bench.worker.script.calls import ScriptCall
from bench.worker.script.watch import Watch

pytestmark = pytest.mark.once

VALIDATION = 2.0
TRAIN = ScriptCall("updates", "train_step", "train.py", 10)
VALIDATE = ScriptCall("function", "test_step", "train.py", 20)
HELP = ScriptCall("function", "augment", "train.py", 9)


class Script(Bench):
    """A script with a loop of its own, watched by the real classes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *orders: Go, synchronous: bool = True) -> None:
        super().__init__(monkeypatch, *orders)
        for module in (asides, watch):
            monkeypatch.setattr(module, "time", self.clock)
        target = StepSource(kind="updates", name="train_step", file="train.py", line=10, token=TRAIN.token, steps=0)
        self.synchronous = synchronous
        self.watch = Watch(target, self.timed_loop, lambda model: None, None, synchronous, lambda: None)

    def train(self) -> None:
        """Run a step, which calls another function too."""
        self.watch.step(HELP, 1, 0.5, None)
        self.clock.issue(STEP)
        if self.synchronous:
            self.clock.sync(0.5)
        self.watch.step(TRAIN, 1, 0.5, None)

    def validate(self) -> None:
        """Run a validation of several batches. Reading its result waits for the device."""
        for _ in range(4):
            self.clock.issue(VALIDATION / 4)
            self.clock.sync(0.5)
            self.watch.step(VALIDATE, 1, 0.5, None)

    def run(self, every: int) -> Sequence[BlockTimed]:
        """Train, with a validation after some steps, until the parent has enough. Return the blocks."""
        number = 0

        def step() -> None:
            nonlocal number
            number += 1
            self.train()
            if number % every == 0:
                self.validate()

        self.drive(step, limit=2_000)
        return self.channel.of(BlockTimed)


@pytest.mark.parametrize("every", [10, 50])
def test_a_validation_is_no_part_of_the_steps_around_it_and_is_timed(
    monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    script = Script(monkeypatch, Go(steps=30, blocks=6))
    blocks = script.run(every)
    assert [(block.steps, block.seconds) for block in blocks] == [(30, pytest.approx(30 * STEP))] * 6
    assert script.watch.asides is not None
    found = script.watch.asides.found
    assert found is not None
    assert found.seconds == pytest.approx(VALIDATION, rel=0.01)
    assert found.count == found.steps // every or found.count == found.steps // every - 1


def test_a_call_in_every_step_is_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, Go(steps=30, blocks=2))
    blocks = script.run(10_000)
    assert [block.seconds for block in blocks] == [pytest.approx(30 * STEP)] * 2
    assert script.watch.asides is not None
    assert script.watch.asides.found is None


def test_a_block_is_dropped_if_steps_may_still_run_when_a_validation_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, Go(steps=30, blocks=6), synchronous=False)
    blocks = script.run(100)
    assert max(block.seconds for block in blocks) < 31 * STEP
    assert script.watch.asides is not None
    assert script.watch.asides.found is not None


def test_blocks_end_although_a_validation_falls_into_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, Go(steps=30, blocks=2), synchronous=False)
    assert len(script.run(10)) == 2
