"""Work between some steps of a script's own loop, such as a validation, is kept out of the steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest
from synthetic import MOMENT
from test_timed_loop import STEP, Bench

from bench.analyse.training_time import Epochs, with_epochs
from bench.model.facts import Asides, Facts
from bench.model.recognition import StepSource
from bench.model.sample import ProcessSample
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
        self.steps_per_call = 1
        self.validation = VALIDATION
        self.helpers: Iterator[ScriptCall | None] = itertools.repeat(HELP)
        self.watch = Watch(target, self.timed_loop, lambda model: None, None, synchronous, lambda: None)

    def train(self) -> None:
        """Run a step, which calls another function too."""
        if (helper := next(self.helpers)) is not None:
            self.watch.step(helper, 1, 0.5, None)
        self.clock.issue(self.steps_per_call * STEP)
        if self.synchronous:
            self.clock.sync(0.5)
        self.watch.step(TRAIN, self.steps_per_call, 0.5, None)

    def validate(self) -> None:
        """Run a validation of several batches. Reading its result waits for the device."""
        for _ in range(4):
            self.clock.issue(self.validation / 4)
            self.clock.sync(0.5)
            self.watch.step(VALIDATE, 1, 0.5, None)
        self.validation = VALIDATION

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


def asides_of(script: Script) -> Asides | None:
    assert script.watch.asides is not None
    return script.watch.asides.found


@pytest.mark.parametrize("every", [10, 50])
def test_a_validation_is_no_part_of_the_steps_around_it_and_is_timed(
    monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    script = Script(monkeypatch, Go(steps=30, blocks=6))
    blocks = script.run(every)
    assert [block.seconds for block in blocks] == [pytest.approx(30 * STEP)] * 6
    assert all(block.cpu_seconds == pytest.approx(block.seconds) for block in blocks)
    found = asides_of(script)
    assert found is not None
    assert found.every == every
    assert found.seconds == pytest.approx(VALIDATION, rel=0.01)


def test_the_first_validation_is_timed_apart_because_its_functions_are_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, Go(steps=30, blocks=6))
    script.validation = 10 * VALIDATION
    script.run(10)
    found = asides_of(script)
    assert found is not None
    assert found.first_seconds == pytest.approx(10 * VALIDATION, rel=0.01)
    assert found.seconds == pytest.approx(VALIDATION, rel=0.01)


def test_a_call_in_every_step_is_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, Go(steps=30, blocks=2))
    blocks = script.run(10_000)
    assert [block.seconds for block in blocks] == [pytest.approx(30 * STEP)] * 2
    assert asides_of(script) is None


def test_a_call_in_every_step_from_some_step_on_is_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, Go(steps=30, blocks=20))
    script.helpers = iter([None] * 100 + [VALIDATE] * 10_000)
    script.run(10_000)
    found = asides_of(script)
    assert found is None or found.count == 1


@pytest.mark.parametrize("every", [1, 2, 4])
def test_frequent_work_is_a_part_of_the_steps(monkeypatch: pytest.MonkeyPatch, every: int) -> None:
    script = Script(monkeypatch, Go(steps=8, blocks=4), Go(steps=8, blocks=4))
    *_, last = script.run(every)
    assert last.seconds == pytest.approx(8 * STEP + 8 // every * VALIDATION)
    assert asides_of(script) is None


def test_one_of_many_calls_in_every_step_is_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, Go(steps=30, blocks=4))
    script.helpers = (ScriptCall("function", "augment", "train.py", 100 + number * 7 % 10) for number in range(10_000))
    assert len(script.run(10_000)) == 4
    assert asides_of(script) is None


def test_calls_of_many_steps_with_a_validation_after_each_end_their_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, Go(steps=300, blocks=4))
    script.steps_per_call = 100
    assert len(script.run(1)) == 4
    assert asides_of(script) is None


def test_a_block_is_dropped_if_steps_may_still_run_when_a_validation_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, Go(steps=30, blocks=6), synchronous=False)
    blocks = script.run(100)
    assert max(block.seconds for block in blocks) < 31 * STEP
    assert asides_of(script) is not None


def test_blocks_end_although_a_validation_falls_into_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, Go(steps=30, blocks=4), synchronous=False)
    *_, last = script.run(10)
    assert last.seconds == pytest.approx(30 * STEP + 3 * VALIDATION, rel=0.1)
    assert asides_of(script) is None


def test_the_projection_contains_the_work_between_steps_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asides = Asides(count=3, first_seconds=5.0, seconds=2.0, every=100.0)
    sample = ProcessSample(trial=1, pid=1, started=MOMENT, facts=Facts(asides=asides))
    other = ProcessSample(trial=2, pid=2, started=MOMENT)
    for completed in with_epochs([sample, other]):
        epochs = Epochs.of(completed)
        assert epochs.seconds(1000) == pytest.approx(5.0 + 9 * 2.0)
        assert epochs.seconds_per_step(0.003) == pytest.approx(0.02)
