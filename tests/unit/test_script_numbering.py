"""Models and optimizers that take the place of others, and threads that run a step once more."""

from __future__ import annotations

import sys
import threading

import pytest

from bench.worker.script.calls import ScriptCall
from bench.worker.script.numbering import Numbering
from bench.worker.script.running import Running

pytestmark = pytest.mark.once

LINE = ScriptCall("train-on-batch", "train_on_batch", "train.py", 7)
OTHER = ScriptCall("train-on-batch", "train_on_batch", "train.py", 9)


class Model:
    """A model that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


def number(numbering: Numbering, model: Model, line: ScriptCall = LINE) -> str:
    return numbering.known(model) or numbering.add(model, line)


def test_a_model_that_takes_the_place_of_another_has_its_number() -> None:
    numbering = Numbering()
    numbers = []
    for _ in range(3):
        model, other = Model(), Model()
        numbers.append([number(numbering, model), number(numbering, other, OTHER), number(numbering, model, OTHER)])
        del model, other
    assert numbers == [["0", "1", "0"]] * 3


def test_models_that_exist_at_the_same_time_have_numbers_of_their_own() -> None:
    numbering, models = Numbering(), [Model(), Model()]
    assert [number(numbering, model) for model in models * 2] == ["0", "1", "0", "1"]


class Replica(threading.Thread):
    """A thread in which a strategy runs a step for a replica."""

    def __init__(self, running: Running, replica_id: int) -> None:
        super().__init__()
        self.running, self.replica_id, self.depth = running, replica_id, -1

    def run(self) -> None:
        self.depth = self.running.depth


def test_only_the_first_replica_of_a_step_is_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", threading.Thread.start)
    running = Running()
    running.inherit_in_threads()
    replicas = [Replica(running, number) for number in range(3)]
    for replica in replicas:
        replica.start()
        replica.join()
    assert [replica.depth for replica in replicas] == [0, sys.maxsize, sys.maxsize]
