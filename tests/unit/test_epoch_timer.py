"""The epochs of a scripted `fit` under the real timed loop: what counts as a step, and what is timed apart from it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.errors import WorkloadError
from bench.model.facts import Epoch
from bench.worker import block_clock, epoch_timer, timed_loop
from bench.worker.epoch_timer import EpochTimer
from bench.worker.fit_epochs import FitEpochs, epoch_of_fit, length_of_pass, validated_epochs
from bench.worker.losses import LOSSES
from bench.worker.protocol import BlockTimed, Finish, FirstLosses, Go, Latencies, Latency, Order, PhaseEnded
from bench.worker.timed_loop import Finished, TimedLoop

pytestmark = pytest.mark.once

STEP, PARTIAL, FILL, CHECKPOINT, VALIDATION, TRACE, WAIT = 0.003, 0.002, 0.05, 0.4, 0.2, 7.0, 19.0


class Fit:
    """A scripted `fit` on a device whose clock only this script advances.

    Args:
        monkeypatch: replaces the clock.
        orders: of the parent.
        batches: full batches of an epoch.
        remainder: whether a partial batch follows them. The first one compiles.
        known: whether Keras knows the length of an epoch before the first one ended.
        frequency: `validation_freq`.
        waits: whether each epoch waits until the iterator of the one before has ended.
        traces_again: whether a program that starts again compiles and traces again.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *orders: Order,
        batches: int,
        remainder: bool = False,
        known: bool = True,
        frequency: int = 1,
        waits: bool = False,
        traces_again: bool = False,
    ) -> None:
        self.traces_again = traces_again
        self.now = 100.0
        self.events: list[Any] = []
        self.orders = [*orders, Finish()]
        self.batches, self.remainder, self.known, self.frequency = batches, remainder, known, frequency
        self.compiled = self.validated = False
        self.ended, self.waits = 0, waits
        for module in (block_clock, timed_loop, epoch_timer):
            monkeypatch.setattr(module, "time", self)
        self.epochs = FitEpochs()
        channel: Any = self
        self.loop = TimedLoop(channel, sync=float, loss=float)
        self.timer = EpochTimer(self.loop, self.epochs, float, self.loop.losses)

    def perf_counter(self) -> float:
        return self.now

    process_time = perf_counter

    def send(self, event: Any) -> None:
        self.events.append(event)

    def receive(self) -> Order:
        self.now += 1000.0  # the parent takes its time
        return self.orders.pop(0)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def call(self, seconds: float, value: float = 0.5) -> None:
        """Call the train function."""
        call = self.epochs.next_call(1)
        self.timer.before(call)
        self.now += seconds
        self.epochs.advance(call)
        self.timer.after(call, value)

    def epoch(self, left: int, stop: int | None = None) -> None:
        """Run an epoch, with a checkpoint and perhaps validation at its end.

        Args:
            left: epochs left.
            stop: steps after which a callback ends the epoch.
        """
        length = Epoch(batches=self.batches, remainder=int(self.remainder)) if self.known else None
        self.epochs.begin_epoch(length, left)
        if self.ended and self.waits:
            self.epochs.iterator_gap = WAIT
            self.now += WAIT
        for number in range(min(self.batches, stop or self.batches)):
            self.call(STEP + (0 if number else FILL))
        if self.remainder and not stop:
            self.call(PARTIAL + (0 if self.compiled else TRACE))
            self.compiled = True
        if not self.known:
            self.timer.ran_out()
        self.now += CHECKPOINT
        self.ended += 1
        if self.ended % self.frequency == 0:
            seconds = VALIDATION + (0 if self.validated else TRACE)
            self.now += seconds
            self.timer.validated(seconds)
            self.validated = True
        self.epochs.end_epoch()
        self.timer.end_epoch()

    def end_program(self) -> None:
        if self.traces_again:
            self.compiled = self.validated = False
        self.timer.end_program()
        self.epochs.end_program()

    def run(self, epochs: int = 100, programs: int = 1) -> None:
        """Run a program, again and again, until the parent wants no more steps."""
        self.loop.on_restart = self.end_program
        self.loop.begin()
        try:
            for _ in range(programs):
                self.epochs.begin_fit()
                for epoch in range(epochs):
                    self.epoch(epochs - epoch)
                self.now += 55.0
                self.loop.restart()
        except Finished:
            return
        raise AssertionError("the program was never ended")

    def phases(self) -> dict[str, float]:
        """Return what the epochs took."""
        self.events.clear()
        self.timer.send_phases(self.send, STEP)
        return {event.phase: event.seconds for event in self.of(PhaseEnded)}


@pytest.mark.parametrize("remainder", [False, True])
@pytest.mark.parametrize("known", [True, False])
def test_blocks_hold_full_steps_only_however_short_epochs_are(
    monkeypatch: pytest.MonkeyPatch, remainder: bool, known: bool
) -> None:
    fit = Fit(monkeypatch, Go(steps=30, blocks=4), batches=7, remainder=remainder and known, known=known)
    fit.run()
    blocks = fit.of(BlockTimed)
    assert [(block.steps, block.seconds) for block in blocks] == [(30, pytest.approx(30 * STEP))] * 4
    assert all(block.epoch_end_seconds > 4 * (CHECKPOINT + VALIDATION) for block in blocks)
    assert all(block.cpu_seconds == pytest.approx(block.seconds) for block in blocks)


def test_a_block_is_dropped_if_an_epoch_of_unknown_length_ends_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step of the epoch may run on a partial batch, and compile for it."""
    fit = Fit(monkeypatch, Go(steps=30, blocks=4), batches=20, remainder=True, known=False)
    fit.run()
    blocks = fit.of(BlockTimed)
    assert [block.steps for block in blocks] == [30] * 4
    assert max(block.seconds for block in blocks) < 31 * STEP


def fit_again_and_again(fit: Fit) -> None:
    """Let one program call `fit` for one epoch, again and again."""
    fit.loop.begin()
    for _ in range(100):
        fit.epochs.begin_fit()
        fit.epoch(1)


def test_blocks_end_although_each_of_many_fits_has_one_epoch_of_unknown_length(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch, Go(steps=30, blocks=4), batches=20, remainder=True, known=False)
    with pytest.raises(Finished):
        fit_again_and_again(fit)
    assert max(block.seconds for block in fit.of(BlockTimed)) < 31 * STEP


def test_blocks_end_although_a_program_has_one_epoch_of_unknown_length(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch, Go(steps=30, blocks=4), batches=20, remainder=True, known=False)
    fit.run(epochs=1, programs=100)
    assert max(block.seconds for block in fit.of(BlockTimed)) < 31 * STEP


@pytest.mark.parametrize("frequency", [1, 3])
def test_what_passes_between_epochs_is_timed_apart_from_the_steps(
    monkeypatch: pytest.MonkeyPatch, frequency: int
) -> None:
    fit = Fit(monkeypatch, Go(steps=30, blocks=4), batches=7, remainder=True, frequency=frequency)
    fit.run()
    assert fit.phases() == {
        "first_epoch_end": pytest.approx(CHECKPOINT),
        "epoch_end": pytest.approx(CHECKPOINT),
        "first_validation": pytest.approx(VALIDATION + TRACE),
        "validation": pytest.approx(VALIDATION),
        "epoch_start": pytest.approx(FILL),
        "partial_batch": pytest.approx(PARTIAL + TRACE),
        "partial_batch_again": pytest.approx(PARTIAL),
    }


def test_the_only_step_of_an_epoch_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch, Go(steps=10, blocks=2), batches=1)
    fit.run()
    assert [(block.steps, block.seconds) for block in fit.of(BlockTimed)] == [
        (10, pytest.approx(10 * (STEP + FILL)))
    ] * 2
    assert fit.phases()["epoch_end"] == pytest.approx(CHECKPOINT)
    assert fit.phases()["epoch_start"] == pytest.approx(0.0)


def test_the_start_of_an_epoch_does_not_contain_the_wait_for_the_iterator_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fit = Fit(monkeypatch, Go(steps=30, blocks=4), batches=7, waits=True)
    fit.run()
    assert fit.phases()["epoch_start"] == pytest.approx(FILL)


def test_a_block_continues_when_a_program_of_short_epochs_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch, Go(steps=30, blocks=2), batches=7)
    fit.run(epochs=2, programs=100)
    assert [(block.steps, block.seconds) for block in fit.of(BlockTimed)] == [(30, pytest.approx(30 * STEP))] * 2
    assert fit.loop.restarts > 2
    assert fit.phases()["epoch_start"] == pytest.approx(FILL)  # the start of a program is not the start of an epoch


def test_a_program_that_starts_again_traces_again_in_its_first_epoch_only(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch, Go(steps=30, blocks=3), batches=7, remainder=True, traces_again=True)
    fit.run(epochs=2, programs=100)
    assert fit.loop.restarts > 2
    phases = fit.phases()
    assert phases["first_validation"] == pytest.approx(VALIDATION + TRACE)
    assert phases["validation"] == pytest.approx(VALIDATION)
    assert phases["partial_batch_again"] == pytest.approx(PARTIAL)


def test_a_program_of_one_epoch_has_no_later_ends_of_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch, Go(steps=30, blocks=3), batches=7, traces_again=True)
    fit.run(epochs=1, programs=100)
    assert fit.phases()["validation"] == pytest.approx(VALIDATION + TRACE)


def test_a_program_of_one_step_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch, Go(steps=30), batches=1)
    with pytest.raises(WorkloadError, match="one step"):
        fit.run(epochs=1, programs=50)


def test_single_steps_do_not_contain_ends_of_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch, Latency(steps=20, seconds=60.0), batches=7)
    fit.run()
    (latencies,) = fit.of(Latencies)
    assert latencies.seconds == [pytest.approx(STEP)] * 20


def test_a_block_in_which_an_epoch_ends_early_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch, Go(steps=5, blocks=3), batches=20)
    fit.loop.begin()
    fit.epochs.begin_fit()

    def train() -> None:
        for number in range(100):
            fit.epoch(100 - number, stop=8)  # a callback stops each epoch after 8 of 20 steps

    with pytest.raises(Finished):
        train()
    assert [(block.steps, block.seconds) for block in fit.of(BlockTimed)] == [(5, pytest.approx(5 * STEP))] * 3


@pytest.mark.parametrize(("known", "planned"), [(True, 14), (False, 14)])
def test_the_steps_that_a_program_plans_and_runs_are_counted(
    monkeypatch: pytest.MonkeyPatch, known: bool, planned: int
) -> None:
    fit = Fit(monkeypatch, Go(steps=500), batches=7, known=known)
    fit.epochs.begin_fit()
    fit.loop.begin()
    fit.epoch(2)
    assert fit.epochs.planned == planned
    fit.epoch(1, stop=4)
    fit.epochs.end_program()
    assert fit.epochs.first_run is not None
    assert (fit.epochs.first_run.run, fit.epochs.first_run.planned) == (11, planned)


def test_the_batches_before_a_partial_batch_are_known_as_soon_as_the_partial_batch_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fit = Fit(monkeypatch, batches=3, remainder=True)
    left = [fit.epochs.full_batches_left]
    fit.epochs.begin_fit()
    fit.epochs.length = Epoch(batches=3, remainder=8)  # devbench's own call of `fit` knows more than Keras
    fit.epochs.begin_epoch(Epoch(batches=4, remainder=0), 2)
    for _ in range(3):
        left.append(fit.epochs.full_batches_left)
        fit.call(STEP)
    call = fit.epochs.next_call(1)
    assert (left, fit.epochs.full_batches_left) == ([math.inf, 3, 2, 1], 0)
    assert (call.partial, call.counts) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "share"),
    [
        ({"epochs": 10}, 0.0),
        ({"epochs": 10, "validation_split": 0.2}, 1.0),
        ({"epochs": 10, "validation_data": (), "validation_freq": 3}, 0.3),
        ({"epochs": 10, "validation_data": (), "validation_freq": 3, "initial_epoch": 5}, 0.4),
        ({"epochs": 10, "validation_data": (), "validation_freq": [1, 2, 10, 20]}, 0.3),
        ({"validation_data": (), "validation_freq": 2}, 0.0),
    ],
)
def test_the_share_of_epochs_with_a_validation_follows_from_the_call_of_fit(
    arguments: dict[str, Any], share: float
) -> None:
    assert validated_epochs(arguments) == pytest.approx(share)


class Batches(list[list[np.ndarray[Any, Any]]]):
    """A Keras `PyDataset`, as far as devbench reads it."""


@pytest.mark.parametrize(
    ("sizes", "arguments", "length"),
    [
        ([16, 16, 6], {"shuffle": False}, (3, 6)),
        ([16, 16, 16], {"shuffle": False}, (3, 0)),
        ([6], {"shuffle": False}, (1, 0)),
        ([16, 16, 6], {}, (3, 0)),  # by default, fit shuffles the batches, so the partial one may come anywhere
    ],
)
def test_the_last_batch_of_a_keras_dataset_is_the_partial_batch_if_it_is_smaller(
    sizes: list[int], arguments: dict[str, Any], length: tuple[int, int]
) -> None:
    tf = SimpleNamespace(
        data=SimpleNamespace(Dataset=type(None)),
        keras=SimpleNamespace(utils=SimpleNamespace(PyDataset=Batches)),
        nest=SimpleNamespace(flatten=lambda parts: list(parts) if isinstance(parts, tuple) else [parts]),
    )
    data = Batches([np.zeros((size, 8)), np.zeros(size)] for size in sizes)
    assert length_of_pass(tf, {"x": data, **arguments}) == length


def test_losses_are_those_of_single_steps_although_keras_starts_a_new_mean_with_each_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fit = Fit(monkeypatch, batches=3)
    fit.loop.losses.running_mean = True
    fit.loop.begin()
    fit.epochs.begin_fit()
    losses = [3.0, 1.0, 2.0, 0.5, 0.25]
    means = [3.0, 2.0, 2.0, 0.5, 0.375]

    def train() -> None:
        for number, mean in enumerate(means):
            if number % 3 == 0:
                fit.epochs.begin_epoch(Epoch(batches=3, remainder=0), 2)
            fit.call(STEP, mean)

    with pytest.raises(Finished):
        train()
    (event,) = fit.of(FirstLosses)
    assert event.values == pytest.approx(losses)


def test_losses_after_a_partial_batch_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Fit(monkeypatch, batches=3, remainder=True)
    fit.run()
    (event,) = fit.of(FirstLosses)
    assert len(event.values) == 3 < LOSSES


@pytest.mark.parametrize(
    ("length", "steps_per_epoch", "per_call", "steps"),
    [
        ((0, 0), 10, 4, 12),  # endless data
        ((0, 0), 10, 1, 10),
        ((150, 0), 120, 100, 150),  # the data end within the last call
        ((469, 96), 468, 10, 469),
        ((1000, 0), 10, 4, 12),
        ((8, 0), 10, 4, 10),  # Keras warns that the data are too short
    ],
)
def test_each_call_of_several_steps_runs_in_full_as_long_as_there_are_data(
    length: tuple[int, int], steps_per_epoch: int, per_call: int, steps: int
) -> None:
    epoch = epoch_of_fit(length, {"steps_per_epoch": steps_per_epoch}, steps_per_epoch, per_call)
    assert epoch is not None
    assert epoch.steps == steps


def test_a_fraction_of_a_step_per_epoch_is_one_more_step() -> None:
    epoch = epoch_of_fit((0, 0), {"steps_per_epoch": 31.25}, 31.25)
    assert epoch is not None
    assert epoch.steps == 32
