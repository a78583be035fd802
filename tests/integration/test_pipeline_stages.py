"""The time of each stage of a `tf.data` pipeline, with a real TensorFlow in a process of its own."""

from __future__ import annotations

from typing import Any

import pytest
from tensorflow_script import ask


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return ask("""
    import time
    from bench.worker.diagnose import pipeline_stages as stages

    def slow(x):
        return tf.py_function(lambda y: (time.sleep(0.002), y)[1], [x], tf.int64)

    source = tf.data.Dataset.range(10_000)
    piped = source.shuffle(500).map(slow).map(lambda x: x + 1, num_parallel_calls=2).batch(8).prefetch(2)
    filtered = source.filter(lambda x: x > 3).map(slow).batch(4)
    say(
        piped=[each.model_dump() for each in stages.measure(piped)],
        filtered=[each.stage for each in stages.measure(filtered)],
        short=[each.stage for each in stages.measure(tf.data.Dataset.range(3).batch(2))],
    )
    """)


def test_each_stage_is_listed_with_its_function_and_the_slow_one_takes_the_time(found: dict[str, Any]) -> None:
    piped = found["piped"]
    assert [each["stage"] for each in piped] == ["range", "shuffle", "map", "map, parallel", "batch", "prefetch"]
    assert (piped[2]["function"], piped[2]["line"] > 0) == ("slow", True)
    assert piped[3]["function"] == "<lambda>"
    assert piped[1]["seconds"] < 0.2 * piped[2]["seconds"]  # filling the buffer does not count
    assert piped[2]["seconds"] - piped[1]["seconds"] >= 8 * 0.002
    assert piped[2]["seconds"] - piped[1]["seconds"] > 0.5 * piped[-1]["seconds"]


def test_stages_before_a_filter_are_left_out(found: dict[str, Any]) -> None:
    assert found["filtered"] == ["filter", "map", "batch"]


def test_a_pipeline_of_a_few_elements_is_measured(found: dict[str, Any]) -> None:
    assert found["short"] == ["range", "batch"]
