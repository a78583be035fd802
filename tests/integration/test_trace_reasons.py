"""Why a real `tf.function` is traced again, in a separate process."""

from __future__ import annotations

from typing import Any

import pytest
from tensorflow_script import run_script
from warm_workers import WarmServer


@pytest.fixture(scope="module")
def reasons(warm_server: WarmServer | None) -> dict[str, Any]:
    return run_script(
        """
    from bench.worker.frames import Sources
    from bench.worker.tracing import Tracing

    tracing = Tracing(Sources(""))

    class Model:
        @tf.function
        def scaled(self, rows, factor=1.0):
            return tf.reduce_sum(rows["user"] * factor)

    @tf.function
    def doubled(rows):
        return 2 * rows

    model = Model()
    for number in range(1, 4):
        model.scaled({"user": tf.ones((2, 3))}, factor=1 / number)
    for length in range(1, 4):
        doubled(tf.ones((length,)))

    def step(rows):
        return 3 * rows

    for _ in range(3):
        tf.function(step)(tf.ones((2,)))
    typical = {traced.function: tracing.reasons.typical(traced) for traced in tracing.by_function}
    report(**{name: reason.model_dump() for name, reason in typical.items()})
    """,
        warm_server,
    )


def test_a_number_that_changes_is_named_with_its_values(reasons: dict[str, Any]) -> None:
    assert reasons["scaled"] == {"kind": "value", "argument": "factor", "before": "0.5", "after": repr(1 / 3)}


def test_a_shape_that_changes_is_named(reasons: dict[str, Any]) -> None:
    assert (reasons["doubled"]["kind"], reasons["doubled"]["argument"]) == ("shape", "rows")
    assert reasons["doubled"]["after"] == "(3,)"


def test_a_function_that_is_made_anew_for_each_call_is_told_from_changed_arguments(reasons: dict[str, Any]) -> None:
    assert reasons["step"]["kind"] == "new function"
