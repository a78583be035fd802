"""The timed loop under a parent that follows a script: what it says, in which order, and what it leaves out.

The channel, the clock and the programs are scripted; the conductor is the real one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from bench.errors import WorkloadError
from bench.model.spec import Data, Spec, Threads
from bench.worker import step_counter, timed_loop
from bench.worker.protocol import (
    BLOCK_SECONDS,
    Answer,
    Failed,
    Finish,
    Go,
    Latencies,
    Latency,
    Order,
    PhaseBegun,
    PhaseDone,
    Ready,
    Start,
    Timed,
)
from bench.worker.step_counter import Counter
from bench.worker.timed_loop import ANSWERS, Conductor, Finished

pytestmark = pytest.mark.once

STEP = 0.003


class Line:
    """A channel whose parent reads from a script, each order once it is asked for."""

    def __init__(self, orders: list[Order]) -> None:
        self.orders = orders
        self.said: list[Any] = []

    def send(self, event: BaseModel) -> None:
        self.said.append(event)

    def receive(self) -> Order:
        self.said.append("order")
        return self.orders.pop(0)

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of a kind, in order."""
        return [each for each in self.said if isinstance(each, kind)]


class Clock:
    """A clock that only steps move; a device that works through its queue when it is read from."""

    def __init__(self) -> None:
        self.now = 100.0
        self.queued = 0.0
        self.syncs = 0
        self.reading = 0.0

    def perf_counter(self) -> float:
        return self.now

    process_time = perf_counter

    def issue(self, seconds: float) -> None:
        """A step is dispatched; its work waits on the device."""
        self.queued += seconds

    def sync(self, value: Any) -> float:
        self.now += self.queued + self.reading
        self.queued = 0.0
        self.syncs += 1
        return float(value)


class Bench:
    """A conductor, its clock and its line."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *orders: Order, kind: type[Conductor] = Conductor) -> None:
        self.clock = Clock()
        self.line = Line([*orders, Finish()])
        for module in (timed_loop, step_counter):
            monkeypatch.setattr(module, "time", self.clock)
        channel: Any = self.line
        self.conductor = kind(channel, self.clock.sync, answer=float)
        self.issued = 0

    def step(self, value: float = 0.5, seconds: float = STEP) -> None:
        """One step of the program."""
        self.issued += 1
        self.clock.issue(seconds)
        self.conductor.tick(value)

    def drive(self, step: Callable[[], None] | None = None, limit: int = 100_000) -> Finished:
        """Steps until the conductor unwinds the program."""
        self.conductor.begin()
        try:
            for _ in range(limit):
                (step or self.step)()
        except Finished as unwound:
            return unwound
        raise AssertionError("the program was never unwound")


def test_the_first_step_is_a_phase_of_its_own_apart_from_its_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    traced = iter([2.0, 5.0])  # 2 s were traced before the first step, 3 s within it
    bench.conductor.traced = lambda: next(traced)
    seconds = iter([4.0])
    bench.drive(lambda: bench.step(seconds=next(seconds, STEP)))
    assert {each.phase: each.seconds for each in bench.line.of(PhaseDone)} == {
        "trace": 5.0,
        "first_step": pytest.approx(4.0 - 3.0),
    }


def test_what_comes_before_begin_is_not_in_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    bench.clock.now += 50.0
    bench.drive()
    assert {each.phase: each.seconds for each in bench.line.of(PhaseDone)}["first_step"] == pytest.approx(STEP)


def test_the_first_answers_are_told_before_the_worker_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    bench.drive(lambda: bench.step(value=bench.issued + 0.5))
    (answer,) = bench.line.of(Answer)
    assert (answer.values, answer.kind) == ([n + 0.5 for n in range(ANSWERS)], "exact")
    kinds = [each if isinstance(each, str) else type(each) for each in bench.line.said]
    assert kinds == [PhaseDone, PhaseDone, Answer, Ready, "order"]


def test_of_keras_running_mean_the_steps_own_answers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = [3.0, 2.0, 4.0, 1.0, 0.5]
    means = iter([math.fsum(losses[: n + 1]) / (n + 1) for n in range(len(losses))])
    bench = Bench(monkeypatch)
    bench.conductor.averaged = True
    bench.drive(lambda: bench.step(value=next(means)))
    (answer,) = bench.line.of(Answer)
    assert answer.values == pytest.approx(losses)


def test_calibration_finds_the_steps_of_a_block_and_no_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go())
    bench.drive()
    timed = bench.line.of(Timed)
    assert timed[0].steps == 1
    assert timed[-1].seconds >= BLOCK_SECONDS
    assert timed[-1].seconds < 3 * BLOCK_SECONDS
    assert all(each.seconds < BLOCK_SECONDS for each in timed[:-1])
    assert all(each.seconds == pytest.approx(each.steps * STEP) for each in timed)


def test_a_step_longer_than_a_block_is_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go())
    bench.drive(lambda: bench.step(seconds=0.5))
    assert [(each.steps, each.seconds) for each in bench.line.of(Timed)] == [(1, pytest.approx(0.5))]


def test_a_tiny_step_is_calibrated_in_few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go())
    bench.drive(lambda: bench.step(seconds=1e-5))
    assert len(bench.line.of(Timed)) <= 6


def test_a_block_is_its_steps_and_one_synchronisation(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=20, blocks=3))
    bench.drive()
    assert [(each.series, each.steps, each.seconds) for each in bench.line.of(Timed)] == [
        ("step", 20, pytest.approx(20 * STEP))
    ] * 3
    assert bench.clock.syncs == ANSWERS + 3
    assert bench.issued == ANSWERS + 60


def test_what_the_device_still_does_at_a_blocks_end_is_in_that_block(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=2, blocks=2))
    seconds = iter([STEP] * ANSWERS + [0.0, 7.0, 1.0, 1.0])
    bench.drive(lambda: bench.step(seconds=next(seconds)))
    assert [each.seconds for each in bench.line.of(Timed)] == [pytest.approx(7.0), pytest.approx(2.0)]


def test_waiting_for_an_order_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=4), Go(steps=4))
    receive = bench.line.receive

    def late() -> Order:
        bench.clock.now += 1000.0
        return receive()

    monkeypatch.setattr(bench.line, "receive", late)
    bench.drive()
    assert [each.seconds for each in bench.line.of(Timed)] == [pytest.approx(4 * STEP)] * 2


def test_a_lead_in_is_done_and_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=10, lead=3))
    slow_start = iter([STEP] * ANSWERS + [9.0, 9.0, 9.0])
    bench.drive(lambda: bench.step(seconds=next(slow_start, STEP)))
    assert [each.seconds for each in bench.line.of(Timed)] == [pytest.approx(10 * STEP)]
    assert bench.issued == ANSWERS + 3 + 10


def test_steps_that_come_several_at_once_are_counted_as_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=512, blocks=2))

    def fused() -> None:
        count = min(bench.conductor.left, 100)
        bench.issued += count
        bench.clock.issue(count * STEP)
        bench.conductor.tick(0.5, count)

    bench.drive(fused)
    assert [(each.steps, each.seconds) for each in bench.line.of(Timed)] == [(512, pytest.approx(512 * STEP))] * 2


def test_a_call_of_several_steps_that_overshoots_a_block_is_counted_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=5, blocks=2))

    def execution() -> None:
        bench.issued += 4
        bench.clock.issue(4 * STEP)
        bench.conductor.tick(0.5, 4)

    bench.drive(execution)
    assert [(each.steps, each.seconds) for each in bench.line.of(Timed)] == [(8, pytest.approx(8 * STEP))] * 2


def test_a_block_in_which_the_program_began_again_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=10, blocks=2))

    def program() -> None:
        bench.step()
        if bench.issued == ANSWERS + 4:
            bench.clock.now += 77.0  # what lies between two runs of the program
            bench.conductor.restart()

    bench.drive(program)
    assert [(each.steps, each.seconds) for each in bench.line.of(Timed)] == [(10, pytest.approx(10 * STEP))] * 2
    assert bench.issued == ANSWERS + 4 + 1 + 20


def finite(bench: Bench, length: int) -> Callable[[], None]:
    """A program of so many steps that is begun again whenever it ends."""

    def program() -> None:
        bench.step()
        if bench.issued % length == 0:
            bench.clock.now += 77.0
            bench.conductor.restart()

    return program


@pytest.mark.parametrize("length", [2, 3, 7, 20])
def test_a_block_is_cut_to_a_program_that_is_shorter(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    bench = Bench(monkeypatch, Go(steps=1000, blocks=3), Go(steps=1000, lead=125), Latency(steps=5, seconds=60.0))
    bench.drive(finite(bench, length))
    steps = length - 1  # the first after each beginning may trace, and does not count
    assert [(each.steps, each.seconds) for each in bench.line.of(Timed)] == [(steps, pytest.approx(steps * STEP))] * 4
    assert bench.line.of(Latencies)[0].seconds == [pytest.approx(STEP)] * 5


@pytest.mark.parametrize("length", [2, 3, 7, 20, 40])
def test_calibration_ends_with_a_program_that_fills_no_block(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    bench = Bench(monkeypatch, Go())
    bench.drive(finite(bench, length))
    assert max(each.steps for each in bench.line.of(Timed)) <= max(length - 1, math.ceil(1.1 * BLOCK_SECONDS / STEP))
    if length < 20:
        assert [each.steps for each in bench.line.of(Timed)][-2:] == [length - 1] * 2


def test_a_program_of_one_step_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go())
    with pytest.raises(WorkloadError, match="one step") as caught:
        bench.drive(finite(bench, 1), limit=50)
    assert caught.value.hint


def test_the_first_step_after_a_new_beginning_is_not_a_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Latency(steps=4, seconds=60.0))

    def program() -> None:
        bench.step(seconds=5.0 if bench.issued == ANSWERS + 2 else STEP)
        if bench.issued == ANSWERS + 2:
            bench.conductor.restart()

    bench.drive(program)
    (found,) = bench.line.of(Latencies)
    assert found.seconds == [pytest.approx(STEP)] * 4


def test_in_the_latency_pass_each_step_is_synchronised(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Latency(steps=7, seconds=60.0))
    bench.drive()
    (found,) = bench.line.of(Latencies)
    assert found.seconds == [pytest.approx(STEP)] * 7
    assert bench.clock.syncs == ANSWERS + 2 * 7


def test_what_reading_costs_is_subtracted_from_a_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Latency(steps=7, seconds=60.0))
    bench.clock.reading = 0.02
    bench.drive()
    (found,) = bench.line.of(Latencies)
    assert found.seconds == [pytest.approx(STEP)] * 7


def test_of_a_call_of_several_steps_the_latency_is_that_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Latency(steps=3, seconds=60.0))

    def execution() -> None:
        bench.issued += 4
        bench.clock.issue(4 * STEP)
        bench.conductor.tick(0.5, 4)

    bench.drive(execution)
    (found,) = bench.line.of(Latencies)
    assert found.seconds == [pytest.approx(STEP)] * 3


def test_the_latency_pass_ends_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Latency(steps=1000, seconds=10.5 * STEP))
    bench.drive()
    (found,) = bench.line.of(Latencies)
    assert len(found.seconds) == 11


@pytest.mark.parametrize("at", [1, 3, ANSWERS + 7])
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_step_that_is_no_number_unwinds_the_program(monkeypatch: pytest.MonkeyPatch, at: int, number: float) -> None:
    bench = Bench(monkeypatch, Go(steps=1, blocks=50))
    ended = bench.drive(lambda: bench.step(value=number if bench.issued + 1 == at else 0.5))
    (failed,) = bench.line.of(Failed)
    assert failed.failure.kind == "nan"
    assert failed.failure.hint
    assert ended.args == (None,)
    assert bench.issued == at


def test_a_programs_own_except_clause_does_not_swallow_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not issubclass(Finished, Exception)
    bench = Bench(monkeypatch)

    def careless() -> None:
        try:
            bench.step()
        except Exception:
            pytest.fail("swallowed")

    bench.drive(careless)


def test_the_end_carries_the_order_and_the_timed_steps_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(steps=6, blocks=2))
    ended = bench.drive()
    assert isinstance(ended.args[0], Finish)
    assert (bench.conductor.stepped, bench.conductor.restarts) == (12, 0)


def test_the_series_that_is_asked_for_is_the_one_that_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, Go(series="big", steps=2), Go(series="small", steps=3))
    bench.conductor.series = ["small", "big"]
    bench.conductor.current = "small"
    bench.drive()
    assert [(each.series, each.steps) for each in bench.line.of(Timed)] == [("big", 2), ("small", 3)]


def test_an_order_out_of_turn_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = Spec(workload="x", backend="cpu", threads=Threads(intra=1, inter=1), data=Data(kind="own"))
    bench = Bench(monkeypatch, Start(spec=spec, spawned=0.0))
    with pytest.raises(TypeError, match="out of turn"):
        bench.drive()


def test_a_whole_training_is_counted_and_never_synchronised(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, kind=Counter)
    for _ in range(500):
        bench.step()
    assert isinstance(bench.conductor, Counter)
    assert bench.conductor.stepped == 500
    assert bench.clock.syncs == 0
    assert all(isinstance(each, PhaseBegun) for each in bench.line.said)


def test_a_long_training_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, kind=Counter)
    for _ in range(600):
        bench.step()
        bench.clock.now += 1.0
    said = [each.note for each in bench.line.of(PhaseBegun)]
    assert 600 / (step_counter.NEWS_SECONDS + 1) <= len(said) <= 1 + 600 / step_counter.NEWS_SECONDS
    assert "1" in said[0]


def test_a_training_without_an_end_of_its_own_is_unwound_at_its_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, kind=Counter)
    assert isinstance(bench.conductor, Counter)
    bench.conductor.limit = 130

    def fused() -> None:
        count = min(bench.conductor.left, 50)
        bench.issued += count
        bench.conductor.tick(0.5, count)

    bench.drive(fused)
    assert bench.issued == bench.conductor.stepped == 130


def test_a_whole_training_tells_how_long_it_stood_still_at_each_epochs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, kind=Counter)
    assert isinstance(bench.conductor, Counter)
    bench.conductor.epoch = 40
    for number in range(120):
        bench.clock.now += 0.1 + {0: 30.0, 40: 2.0, 80: 20.0}.get(number, 0.0)  # the first is no epoch's end
        bench.step()
    found = bench.conductor.epoch_ends(bench.clock.now + 5.0)
    assert found == pytest.approx([2.0, 20.0, 5.0])


def test_a_program_of_no_known_epochs_tells_of_no_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, kind=Counter)
    assert isinstance(bench.conductor, Counter)
    for _ in range(50):
        bench.step()
    assert bench.conductor.epoch_ends(bench.clock.now) == []
