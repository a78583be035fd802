"""The time of each stage of a `tf.data` pipeline, with a real TensorFlow in a separate process."""

from __future__ import annotations

from typing import Any

import pytest
from tensorflow_script import run_script
from warm_workers import WarmServer


@pytest.fixture(scope="module")
def stages(warm_server: WarmServer | None) -> dict[str, Any]:
    return run_script(
        """
    import time
    from bench.worker.diagnose import pipeline_stages as stages

    def slow(x):
        return tf.py_function(lambda y: (time.sleep(0.002), y)[1], [x], tf.int64)

    source = tf.data.Dataset.range(10_000)
    piped = source.shuffle(500).map(slow).map(lambda x: x + 1, num_parallel_calls=2).batch(8).prefetch(2)
    filtered = source.filter(lambda x: x > 3).map(slow).batch(4)
    def records():
        yield from range(10_000)

    generated = tf.data.Dataset.from_generator(records, output_signature=tf.TensorSpec((), tf.int64)).batch(8)
    class Rows(tf.keras.utils.Sequence):
        def __len__(self):
            return 5

        def __getitem__(self, index):
            time.sleep(0.002)
            return index

    computed = []

    def counted(x):
        return tf.py_function(lambda y: (time.sleep(0.002), computed.append(1), y)[2], [x], tf.int64)

    stages.SLOW_START = 0.3
    shuffled = [stage.model_dump() for stage in stages.measure(source.map(counted).shuffle(300).batch(2).prefetch(1))]
    stages.SLOW_START = 3.0

    report(
        shuffled=shuffled,
        computed=len(computed),
        rows=[stage.model_dump() for stage in stages.measure_py_dataset(Rows(), 5)],
        generated=[stage.model_dump() for stage in stages.measure(generated)],
        piped=[stage.model_dump() for stage in stages.measure(piped)],
        filtered=[stage.stage for stage in stages.measure(filtered)],
        short=[stage.stage for stage in stages.measure(tf.data.Dataset.range(3).batch(2))],
    )
    """,
        warm_server,
    )


def test_each_stage_is_listed_with_its_function_and_the_slow_one_takes_the_time(stages: dict[str, Any]) -> None:
    piped = stages["piped"]
    assert [stage["stage"] for stage in piped] == ["range", "shuffle", "map", "map, parallel", "batch", "prefetch"]
    assert (piped[2]["function"], piped[2]["line"] > 0) == ("slow", True)
    assert piped[3]["function"] == "<lambda>"
    assert piped[1]["seconds"] < 0.2 * piped[2]["seconds"]  # filling the buffer does not count
    assert piped[2]["seconds"] - piped[1]["seconds"] >= 8 * 0.002
    assert piped[2]["seconds"] - piped[1]["seconds"] > 0.5 * piped[-1]["seconds"]


def test_a_large_shuffle_buffer_is_filled_once_and_its_filling_is_timed(stages: dict[str, Any]) -> None:
    by_stage = {stage["stage"]: stage for stage in stages["shuffled"]}
    assert by_stage["shuffle"]["filling_seconds"] > 300 * 0.002
    assert by_stage["shuffle"]["buffer"] == 300
    assert by_stage["prefetch"]["seconds"] > 2 * 0.002
    fillings = stages["computed"] / 300
    assert fillings < 8, (
        "the part before the buffer is timed too, but each part behind it used to fill it several times"
    )


def test_stages_before_a_filter_are_left_out(stages: dict[str, Any]) -> None:
    assert stages["filtered"] == ["filter", "map", "batch"]


def test_a_pipeline_of_a_few_elements_is_measured(stages: dict[str, Any]) -> None:
    assert stages["short"] == ["range", "batch"]


def test_a_generator_is_a_stage_with_the_function_of_the_program(stages: dict[str, Any]) -> None:
    assert [(stage["stage"], stage["function"]) for stage in stages["generated"]] == [
        ("from_generator", "records"),
        ("batch", None),
    ]


def test_the_method_of_a_keras_dataset_is_a_stage(stages: dict[str, Any]) -> None:
    (rows,) = stages["rows"]
    assert (rows["stage"], rows["function"].split(".")[-2:]) == ("Keras dataset", ["Rows", "__getitem__"])
    assert 0.002 <= rows["seconds"] < 0.2
