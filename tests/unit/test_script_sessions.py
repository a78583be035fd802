"""Which calls of `Session.run` are steps of one loop, and that graphs of sessions are seeded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bench.worker.script import settings
from bench.worker.script.sessions import Fetches

pytestmark = pytest.mark.once


class Graph:
    """A graph whose operations have the numbers in which they are added."""

    seed: int | None = None

    def __init__(self) -> None:
        self.operations: list[Any] = []

    def add(self, name: str, kind: str = "Mean") -> Any:
        operation = SimpleNamespace(
            name=name, type=kind, graph=self, _id=len(self.operations), inputs=(), control_inputs=()
        )
        self.operations.append(operation)
        return operation

    def get_operations(self) -> list[Any]:
        return self.operations


def test_operations_that_a_script_adds_before_each_call_make_one_loop() -> None:
    graph, fetches = Graph(), Fetches()
    train = graph.add("train", "ResourceApplyGradientDescent")
    first = fetches.of([train, graph.add("loss/Mean_4")])
    assert first.trains
    assert all(fetches.of([train, graph.add(f"loss_{number}/Mean")]) is first for number in range(1, 30))
    assert not fetches.of([graph.add("loss_30/Mean")]).trains


def test_operations_that_existed_before_the_first_call_are_told_apart() -> None:
    graph, fetches = Graph(), Fetches()
    critic, generator = (graph.add(name, "ResourceApplyAdam") for name in ("Adam", "Adam_1"))
    for _ in range(3):
        assert fetches.of([critic]).text == "Adam"
        assert fetches.of([generator]).text == "Adam_1"


def test_each_graph_has_the_seed_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Graph, "__init__", Graph.__init__)
    settings.seed_graphs(Graph, 7)
    assert (Graph().seed, Graph().operations) == (7, [])
