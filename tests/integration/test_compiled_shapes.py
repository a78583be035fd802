"""The time that XLA spends on batches with new shapes, with a real TensorFlow in a separate process."""

from __future__ import annotations

from typing import Any

import pytest
from tensorflow_script import run_script
from warm_workers import WarmServer


@pytest.fixture(scope="module")
def found(warm_server: WarmServer | None) -> dict[str, Any]:
    return run_script(
        """
    from types import SimpleNamespace
    from bench.model.facts import Facts
    from bench.worker.diagnose import compiled_shapes
    from bench.worker.synchronize import Synchronizer

    model = tf.keras.Sequential([tf.keras.Input(shape=(None, 4)), tf.keras.layers.GlobalAveragePooling1D(),
                                 tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=True)
    synchronizer = Synchronizer(tf, DEVICE)

    def of(lengths, compiled=True):
        def batches():
            for length in lengths:
                yield np.ones((2, length, 4), "float32"), np.ones((2, 1), "float32")
        signature = (tf.TensorSpec((None, None, 4)), tf.TensorSpec((None, 1)))
        dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
        facts = Facts(jit_compile=compiled)
        rig = SimpleNamespace(tf=tf, facts=facts, yields=False, ctx=SimpleNamespace(device=DEVICE))
        model.fit(dataset.take(1), verbose=0)
        compiled_shapes.measure(rig, SimpleNamespace(model=model, arguments={"x": dataset}), synchronizer)
        return facts.recompiled and facts.recompiled.model_dump()

    report(varied=of(range(1, 31)), half=of([*range(41, 56)] * 2), equal=of([3] * 30), plain=of(range(1, 31), False))
    """,
        warm_server,
    )


def test_each_new_length_of_a_batch_takes_time_to_compile(found: dict[str, Any]) -> None:
    varied, half = found["varied"], found["half"]
    assert (varied["shapes"], varied["calls"]) == (30, 30)
    assert (varied["before"], varied["after"]) == ("(2, 1, 4)", "(2, 2, 4)")
    assert varied["seconds"] > 0.005
    assert (half["shapes"], half["calls"]) == (15, 30)


def test_batches_of_one_shape_and_programs_without_xla_have_nothing_to_report(found: dict[str, Any]) -> None:
    assert found["equal"] is None
    assert found["plain"] is None
