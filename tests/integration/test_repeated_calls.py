"""The share of a step that new graphs take, with a real TensorFlow in a separate process."""

from __future__ import annotations

from typing import Any

import pytest
from tensorflow_script import run_script
from warm_workers import WarmServer


@pytest.fixture(scope="module")
def shares(warm_server: WarmServer | None) -> dict[str, Any]:
    return run_script(
        """
    import itertools
    from bench.worker.diagnose import repeated_calls
    from bench.worker.frames import Sources
    from bench.worker.tracing import Tracing

    tracing = Tracing(Sources(""))

    @tf.function
    def scaled(rows, factor):
        return tf.reduce_sum(rows * factor)

    numbers = itertools.count(1)

    def steps(values):
        rows = tf.ones((8, 8))
        for value in values():
            yield scaled(rows, value)

    for _ in steps(lambda: (1000 + number for number in range(40))):
        pass
    report(
        restarted=repeated_calls.measure(tf, lambda: steps(lambda: (1000 + number for number in range(100))), tracing),
        new=repeated_calls.measure(tf, lambda: steps(lambda: (next(numbers) / 7 for _ in range(60))), tracing),
        known=repeated_calls.measure(tf, lambda: steps(lambda: itertools.repeat(1 / 7)), tracing),
    )
    """,
        warm_server,
    )


def test_a_call_that_traces_a_new_graph_takes_most_of_a_small_step(shares: dict[str, Any]) -> None:
    assert shares["new"] > 0.7


def test_a_program_that_finds_its_graphs_again_has_no_share(shares: dict[str, Any]) -> None:
    assert shares["known"] is None


def test_a_program_that_starts_again_with_the_same_numbers_runs_until_they_are_new(shares: dict[str, Any]) -> None:
    assert shares["restarted"] > 0.7
