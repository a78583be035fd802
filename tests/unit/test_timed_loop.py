"""The timed loop with a scripted parent: its events, their order, and the steps that it does not count.

The channel, the clock and the programs are scripted. The timed loop is real.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from bench.errors import WorkloadError
from bench.model.spec import Data, Spec, Threads
from bench.worker import block_clock, latency_pass, step_counter, timed_loop
from bench.worker.fit_epochs import Call
from bench.worker.losses import LOSSES
from bench.worker.protocol import (
    BLOCK_SECONDS,
    EVENT,
    BlockTimed,
    Failed,
    Finish,
    FirstLosses,
    Go,
    Latencies,
    Latency,
    Order,
    PhaseEnded,
    PhaseStarted,
    Ready,
    Start,
)
from bench.worker.step_counter import StepCounter
from bench.worker.timed_loop import Finished, TimedLoop

pytestmark = pytest.mark.once

STEP = 0.003


class Channel:
    """A channel with scripted orders."""

    def __init__(self, orders: list[Order]) -> None:
        self.orders = orders
        self.log: list[Any] = []

    def send(self, event: BaseModel) -> None:
        self.log.append(event)

    def receive(self) -> Order:
        self.log.append("order")
        return self.orders.pop(0)

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the events of a kind, in order."""
        return [event for event in self.log if isinstance(event, kind)]


class Clock:
    """A clock that only steps advance, and a device that runs its queue when a value is read."""

    def __init__(self) -> None:
        self.now = 100.0
        self.queued = 0.0
        self.syncs = 0
        self.reading = 0.0

    def perf_counter(self) -> float:
        return self.now

    process_time = perf_counter

    def issue(self, seconds: float) -> None:
        """Dispatch a step. Its work waits in the queue of the device."""
        self.queued += seconds

    def sync(self, value: Any) -> float:
        self.now += self.queued + self.reading
        self.queued = 0.0
        self.syncs += 1
        return float(value)


class Bench:
    """A timed loop with its clock and its channel."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *orders: Order, kind: type[TimedLoop] = TimedLoop) -> None:
        self.clock = Clock()
        self.channel = Channel([*orders, Finish()])
        for module in (timed_loop, block_clock, latency_pass, step_counter):
            monkeypatch.setattr(module, "time", self.clock)
        channel: Any = self.channel
        self.timed_loop = kind(channel, self.clock.sync, loss=float)
        self.issued = 0

    def step(self, value: float = 0.5, seconds: float = STEP) -> None:
        """Run one step of the program."""
        self.issued += 1
        self.clock.issue(seconds)
        self.timed_loop.tick(value)

    def drive(self, step: Callable[[], None] | None = None, limit: int = 100_000) -> Finished:
        """Run steps until the timed loop ends the program."""
        self.timed_loop.begin()
        try:
            for _ in range(limit):
                (step or self.step)()
        except Finished as finished:
            return finished
        raise AssertionError("the program was never ended")


def test_the_first_step_and_its_tracing_are_separate_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    traced = iter([2.0, 5.0])  # 2 s of tracing before the first step, 3 s in it
    bench.timed_loop.trace_seconds = lambda: next(traced)
    seconds = iter([4.0])
    bench.drive(lambda: bench.step(seconds=next(seconds, STEP)))
    assert {event.phase: event.seconds for event in bench.channel.of(PhaseEnded)} == {
        "trace": 5.0,
        "first_step": pytest.approx(4.0 - 3.0),
    }


def test_time_before_begin_is_not_part_of_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    bench.clock.now += 50.0
    bench.drive()
    assert {event.phase: event.seconds for event in bench.channel.of(PhaseEnded)}["first_step"] == pytest.approx(STEP)


def test_the_first_losses_are_sent_before_the_worker_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    bench.drive(lambda: bench.step(value=bench.issued + 0.5))
    (losses,) = bench.channel.of(FirstLosses)
    assert (losses.values, losses.precision) == ([n + 0.5 for n in range(LOSSES)], "exact")
    kinds = [event if isinstance(event, str) else type(event) for event in bench.channel.log]
    assert kinds == [PhaseEnded, PhaseEnded, FirstLosses, Ready, "order"]


def test_losses_of_single_steps_are_computed_from_the_running_mean_of_keras(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = [3.0, 2.0, 4.0, 1.0, 0.5]
    means = iter([math.fsum(losses[: n + 1]) / (n + 1) for n in range(len(losses))])
    bench = Bench(monkeypatch)
    bench.timed_loop.losses.running_mean = True
    bench.drive(lambda: bench.step(value=next(means)))
    (event,) = bench.channel.of(FirstLosses)
    assert event.values == pytest.approx(losses)


def test_calibration_finds_how_many_steps_fill_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go())
    bench.drive()
    timed = bench.channel.of(BlockTimed)
    assert timed[0].steps == 1
    assert timed[-1].seconds >= BLOCK_SECONDS
    assert timed[-1].seconds < 3 * BLOCK_SECONDS
    assert all(block.seconds < BLOCK_SECONDS for block in timed[:-1])
    assert all(block.seconds == pytest.approx(block.steps * STEP) for block in timed)


def test_a_step_that_is_longer_than_a_block_is_a_block_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go())
    bench.drive(lambda: bench.step(seconds=0.5))
    assert [(block.steps, block.seconds) for block in bench.channel.of(BlockTimed)] == [(1, pytest.approx(0.5))]


def test_calibrating_a_tiny_step_takes_few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go())
    bench.drive(lambda: bench.step(seconds=1e-5))
    assert len(bench.channel.of(BlockTimed)) <= 6


def test_a_block_is_its_steps_and_one_synchronization(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=20, blocks=3))
    bench.drive()
    assert [(block.series, block.steps, block.seconds) for block in bench.channel.of(BlockTimed)] == [
        ("step", 20, pytest.approx(20 * STEP))
    ] * 3
    assert bench.clock.syncs == LOSSES + 3
    assert bench.issued == LOSSES + 60


def test_work_that_is_still_queued_at_the_end_of_a_block_counts_in_that_block(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=2, blocks=2))
    seconds = iter([STEP] * LOSSES + [0.0, 7.0, 1.0, 1.0])
    bench.drive(lambda: bench.step(seconds=next(seconds)))
    assert [block.seconds for block in bench.channel.of(BlockTimed)] == [pytest.approx(7.0), pytest.approx(2.0)]


def test_the_wait_for_an_order_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=4), Go(steps=4))
    receive = bench.channel.receive

    def receive_late() -> Order:
        bench.clock.now += 1000.0
        return receive()

    monkeypatch.setattr(bench.channel, "receive", receive_late)
    bench.drive()
    assert [block.seconds for block in bench.channel.of(BlockTimed)] == [pytest.approx(4 * STEP)] * 2


def test_lead_in_steps_run_and_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=10, lead=3))
    slow_start = iter([STEP] * LOSSES + [9.0, 9.0, 9.0])
    bench.drive(lambda: bench.step(seconds=next(slow_start, STEP)))
    assert [block.seconds for block in bench.channel.of(BlockTimed)] == [pytest.approx(10 * STEP)]
    assert bench.issued == LOSSES + 3 + 10


def test_steps_before_a_latency_pass_run_and_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Latency(steps=4, seconds=60.0, lead=3))
    slow_start = iter([STEP] * LOSSES + [9.0, 9.0, 9.0])
    bench.drive(lambda: bench.step(seconds=next(slow_start, STEP)))
    (latencies,) = bench.channel.of(Latencies)
    assert len(latencies.seconds) == 4
    assert max(latencies.seconds) < 2 * STEP
    assert bench.issued == LOSSES + 3 + 4


def test_all_steps_of_a_fused_call_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=512, blocks=2))

    def fused() -> None:
        count = min(bench.timed_loop.steps_left, 100)
        bench.issued += count
        bench.clock.issue(count * STEP)
        bench.timed_loop.tick(0.5, count)

    bench.drive(fused)
    assert [(block.steps, block.seconds) for block in bench.channel.of(BlockTimed)] == [
        (512, pytest.approx(512 * STEP))
    ] * 2


def test_a_call_that_overshoots_a_block_counts_in_that_block(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=5, blocks=2))

    def execution() -> None:
        bench.issued += 4
        bench.clock.issue(4 * STEP)
        bench.timed_loop.tick(0.5, 4)

    bench.drive(execution)
    assert [(block.steps, block.seconds) for block in bench.channel.of(BlockTimed)] == [
        (8, pytest.approx(8 * STEP))
    ] * 2


def test_a_block_in_which_the_program_restarted_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=10, blocks=2))

    def program() -> None:
        bench.step()
        if bench.issued == LOSSES + 4:
            bench.clock.now += 77.0  # between two runs of the program
            bench.timed_loop.restart()

    bench.drive(program)
    assert [(block.steps, block.seconds) for block in bench.channel.of(BlockTimed)] == [
        (10, pytest.approx(10 * STEP))
    ] * 2
    assert bench.issued == LOSSES + 4 + 1 + 20


def finite(bench: Bench, length: int) -> Callable[[], None]:
    """Return a program of `length` steps that restarts whenever it ends."""

    def program() -> None:
        bench.step()
        if bench.issued % length == 0:
            bench.clock.now += 77.0
            bench.timed_loop.restart()

    return program


@pytest.mark.parametrize("length", [2, 3, 7, 20])
def test_a_block_is_shortened_to_the_length_of_a_shorter_program(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    bench = Bench(monkeypatch, Go(steps=1000, blocks=3), Go(steps=1000, lead=125), Latency(steps=5, seconds=600.0))
    bench.drive(finite(bench, length))
    steps = length - 1  # the first step after each start may trace, so it does not count
    assert [(block.steps, block.seconds) for block in bench.channel.of(BlockTimed)] == [
        (steps, pytest.approx(steps * STEP))
    ] * 4
    assert bench.channel.of(Latencies)[0].seconds == [pytest.approx(STEP)] * 5


@pytest.mark.parametrize("length", [2, 3, 7, 20, 40])
def test_calibration_ends_for_a_program_shorter_than_a_block(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    bench = Bench(monkeypatch, Go())
    bench.drive(finite(bench, length))
    assert max(block.steps for block in bench.channel.of(BlockTimed)) <= max(
        length - 1, math.ceil(1.1 * BLOCK_SECONDS / STEP)
    )
    if length < 20:
        assert [block.steps for block in bench.channel.of(BlockTimed)][-2:] == [length - 1] * 2


def test_a_program_of_one_step_is_refused_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go())
    with pytest.raises(WorkloadError, match="one step") as caught:
        bench.drive(finite(bench, 1), limit=50)
    assert caught.value.hint


@pytest.mark.parametrize("kind", [TimedLoop, StepCounter])
def test_a_program_that_cannot_start_again_is_refused(monkeypatch: pytest.MonkeyPatch, kind: type[TimedLoop]) -> None:
    bench = Bench(monkeypatch, Go(steps=10, blocks=2), kind=kind)
    bench.timed_loop.begin()
    for _ in range(LOSSES + 3):
        bench.step()
    bench.timed_loop.restart()
    with pytest.raises(WorkloadError, match="the program ran no step when it started again"):
        bench.timed_loop.restart()


def test_the_first_step_after_a_restart_is_not_a_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Latency(steps=4, seconds=60.0))

    def program() -> None:
        bench.step(seconds=5.0 if bench.issued == LOSSES + 2 else STEP)
        if bench.issued == LOSSES + 2:
            bench.timed_loop.restart()

    bench.drive(program)
    (latencies,) = bench.channel.of(Latencies)
    assert latencies.seconds == [pytest.approx(STEP)] * 4


def test_the_latency_pass_synchronizes_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Latency(steps=7, seconds=60.0))
    bench.drive()
    (latencies,) = bench.channel.of(Latencies)
    assert latencies.seconds == [pytest.approx(STEP)] * 7
    assert bench.clock.syncs == LOSSES + 2 * 7


def test_the_cost_of_synchronization_is_subtracted_from_a_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Latency(steps=7, seconds=60.0))
    bench.clock.reading = 0.02
    bench.drive()
    (latencies,) = bench.channel.of(Latencies)
    assert latencies.seconds == [pytest.approx(STEP)] * 7


def test_the_latency_of_a_call_is_divided_by_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Latency(steps=3, seconds=60.0))

    def execution() -> None:
        bench.issued += 4
        bench.clock.issue(4 * STEP)
        bench.timed_loop.tick(0.5, 4)

    bench.drive(execution)
    (latencies,) = bench.channel.of(Latencies)
    assert latencies.seconds == [pytest.approx(STEP)] * 3


def test_the_latency_pass_ends_at_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Latency(steps=1000, seconds=10.5 * STEP))
    bench.drive()
    (latencies,) = bench.channel.of(Latencies)
    assert len(latencies.seconds) == 11


def test_the_latency_pass_does_not_wait_for_many_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Latency(steps=1000, seconds=2.0))

    def epoch() -> None:
        bench.step()
        bench.timed_loop.pause(0.5)
        bench.clock.now += 0.5  # a validation
        bench.timed_loop.resume()

    bench.drive(epoch)
    (latencies,) = bench.channel.of(Latencies)
    assert latencies.seconds == [pytest.approx(STEP)] * 17


@pytest.mark.parametrize("at", [1, 3, LOSSES + 7])
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_ends_the_program(monkeypatch: pytest.MonkeyPatch, at: int, number: float) -> None:
    bench = Bench(monkeypatch, Go(steps=1, blocks=50))
    ended = bench.drive(lambda: bench.step(value=number if bench.issued + 1 == at else 0.5))
    (failed,) = bench.channel.of(Failed)
    assert failed.failure.kind == "nan"
    assert failed.failure.hint
    assert ended.args == (None,)
    assert bench.issued == at


def test_a_program_that_catches_all_exceptions_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not issubclass(Finished, Exception)
    bench = Bench(monkeypatch)

    def careless() -> None:
        try:
            bench.step()
        except Exception:
            pytest.fail("caught")

    bench.drive(careless)


def test_the_end_of_a_program_contains_its_order_and_the_timed_steps_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(monkeypatch, Go(steps=6, blocks=2))
    ended = bench.drive()
    assert isinstance(ended.args[0], Finish)
    assert (bench.timed_loop.steps_run, bench.timed_loop.restarts) == (12, 0)


def test_the_ordered_series_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(series="big", steps=2), Go(series="small", steps=3))
    bench.timed_loop.series = ["small", "big"]
    bench.timed_loop.current = "small"
    bench.drive()
    assert [(block.series, block.steps) for block in bench.channel.of(BlockTimed)] == [("big", 2), ("small", 3)]


def test_an_unexpected_order_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = Spec(workload="x", backend="cpu", threads=Threads(intra=1, inter=1), data=Data(kind="own"))
    bench = Bench(monkeypatch, Start(spec=spec, spawned=0.0))
    with pytest.raises(TypeError, match="unexpected order"):
        bench.drive()


def test_a_whole_training_is_counted_and_never_synchronized(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, kind=StepCounter)
    for _ in range(500):
        bench.step()
    assert isinstance(bench.timed_loop, StepCounter)
    assert bench.timed_loop.steps_run == 500
    assert bench.clock.syncs == 0
    assert all(isinstance(event, PhaseStarted) for event in bench.channel.log)


def test_a_long_training_reports_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, kind=StepCounter)
    for _ in range(600):
        bench.step()
        bench.clock.now += 1.0
    notes = [event.note for event in bench.channel.of(PhaseStarted)]
    assert 600 / (step_counter.PROGRESS_SECONDS + 1) <= len(notes) <= 1 + 600 / step_counter.PROGRESS_SECONDS
    assert "1" in notes[0]


def test_an_endless_training_is_ended_after_its_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, kind=StepCounter)
    assert isinstance(bench.timed_loop, StepCounter)
    bench.timed_loop.limit = 130

    def fused() -> None:
        count = min(bench.timed_loop.steps_left, 50)
        bench.issued += count
        bench.timed_loop.tick(0.5, count)

    bench.drive(fused)
    assert bench.issued == bench.timed_loop.steps_run == 130


def test_a_whole_training_measures_the_end_of_each_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, kind=StepCounter)
    assert isinstance(bench.timed_loop, StepCounter)
    for number in range(120):
        bench.clock.now += 0.1 + {0: 30.0, 40: 2.0, 80: 20.0}.get(number, 0.0)  # the first gap is before the first step
        bench.timed_loop.after(Call(1, first=number % 40 == 0), 0.5)
        if number % 40 == 39:
            bench.timed_loop.end_epoch()
    ends = bench.timed_loop.epoch_ends(bench.clock.now + 5.0)
    assert ends == pytest.approx([2.0, 20.0, 5.0])


def test_a_program_without_known_epochs_has_no_epoch_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, kind=StepCounter)
    assert isinstance(bench.timed_loop, StepCounter)
    for _ in range(50):
        bench.step()
    assert bench.timed_loop.epoch_ends(bench.clock.now) == []


def test_every_step_is_announced_before_it_is_issued_and_a_block_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[Order] = [Go(lead=2), Go(steps=5, blocks=3, lead=2), Latency(steps=4, seconds=60.0), Go(steps=7)]
    bench = Bench(monkeypatch, *orders)
    announced = [LOSSES]  # other workers run the first steps unasked
    bench.timed_loop.announce = announced.append
    unannounced: list[int] = []

    def step() -> None:
        if bench.timed_loop.issued >= max(announced):
            unannounced.append(bench.timed_loop.issued)
        bench.step()

    bench.drive(step)
    assert unannounced == []
    assert max(announced) == bench.issued
    assert {bench.issued - 7, bench.issued - 7 - 4} <= set(announced)
    assert bench.issued - 7 - 4 - 2 - 15 in announced


def test_an_output_beyond_the_range_of_numbers_reaches_the_parent() -> None:
    event = FirstLosses(values=[1.0, math.inf], precision="exact")
    received = EVENT.validate_json(event.model_dump_json())
    assert isinstance(received, FirstLosses)
    assert received.values == [1.0, pytest.approx(math.nan, nan_ok=True)]
