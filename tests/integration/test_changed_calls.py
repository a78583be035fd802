"""What-ifs that change the calls of a program, with a real TensorFlow in a separate process."""

from __future__ import annotations

from typing import Any

import pytest
from tensorflow_script import run_script
from warm_workers import WarmServer


@pytest.fixture(scope="module")
def on_batch(warm_server: WarmServer | None) -> dict[str, Any]:
    return run_script(
        """
    from bench.whatif import on_batch

    x, y = np.ones((4, 3), "float32"), np.zeros((4, 1), "float32")
    many = np.ones((40, 3), "float32")

    def made():
        tf.keras.utils.set_random_seed(1)
        model = tf.keras.Sequential([tf.keras.Input(shape=(3,)), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse", metrics=["mae"])
        return model

    def results(model):
        history = model.fit(x, y, verbose=0)
        return {
            "predict": model.predict(x, verbose=0).ravel().tolist(),
            "loss": model.evaluate(x, y, verbose=0)[0],
            "as_dict": sorted(model.evaluate(x, y, verbose=0, return_dict=True)),
            "history": [*map(float, history.history["loss"])],
        }

    expected, original = results(made()), tf.keras.Model.predict
    changed = []
    on_batch.change_tensorflow(tf, lambda: changed.append(True))
    found, model = results(made()), made()
    counts = [len(changed)]

    def replaced(call):
        before = len(changed)
        call()
        return len(changed) > before

    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
    kept = {
        "many rows": replaced(lambda: model.predict(many, verbose=0)),
        "small batches": replaced(lambda: model.predict(x, batch_size=2, verbose=0)),
        "dataset": replaced(lambda: model.fit(dataset, verbose=0)),
        "epochs": replaced(lambda: model.fit(x, y, epochs=2, verbose=0)),
        "validation": replaced(lambda: model.fit(x, y, validation_data=(x, y), verbose=0)),
        "callbacks": replaced(lambda: model.fit(x, y, callbacks=[tf.keras.callbacks.Callback()], verbose=0)),
        "lists": replaced(lambda: model.predict([[1.0, 2.0, 3.0]], verbose=0) if tf.__version__ < "2.16" else None),
    }
    report(expected=expected, found=found, counts=counts[0], kept=kept,
           large=replaced(lambda: model.predict(many, batch_size=64, verbose=0)),
           weighted=replaced(lambda: model.fit(x, y, sample_weight=np.ones(4), verbose=0)))
    """,
        warm_server,
    )


def test_methods_for_single_batches_give_the_same_results(on_batch: dict[str, Any]) -> None:
    expected, found = on_batch["expected"], on_batch["found"]
    assert found["as_dict"] == expected["as_dict"]
    for name in ("predict", "loss", "history"):
        assert found[name] == pytest.approx(expected[name], rel=1e-4)
    assert on_batch["counts"] == 4


def test_calls_that_ask_for_more_than_one_step_on_one_batch_are_kept(on_batch: dict[str, Any]) -> None:
    assert on_batch["kept"] == dict.fromkeys(on_batch["kept"], False)
    assert on_batch["large"]
    assert on_batch["weighted"]


@pytest.fixture(scope="module")
def traces(warm_server: WarmServer | None) -> dict[str, Any]:
    return run_script(
        """
    from bench.whatif import reduce_retracing
    from bench.worker.frames import Sources
    from bench.worker.tracing import Tracing

    tracing = Tracing(Sources(""))
    changed = []
    reduce_retracing.change_tensorflow(tf, lambda: changed.append(True))
    rows = tf.ones((4, 4))

    class Net:
        @tf.function
        def scaled(self, rows, factor):
            return tf.reduce_sum(rows) * factor

    def count(calls):
        before = tracing.count
        values = [float(value) for value in calls]
        return [tracing.count - before, values]

    net = Net()
    by_value = count(net.scaled(rows, n / 4) for n in range(1, 40))
    by_name = count(net.scaled(rows=rows, factor=n / 4) for n in range(1, 40))

    @tf.function
    def total(rows, axis):
        return tf.reduce_sum(tf.reduce_sum(rows, axis=axis))

    constant = count(total(rows, 1) for _ in range(5))
    by_shape = count(total(tf.ones((n, 4)), 1) for n in range(1, 40))
    report(by_value=by_value, by_name=by_name, constant=constant, by_shape=by_shape, changed=len(changed) > 0)
    """,
        warm_server,
    )


@pytest.mark.parametrize("name", ["by_value", "by_name"])
def test_numbers_that_change_need_no_new_graphs(traces: dict[str, Any], name: str) -> None:
    count, values = traces[name]
    assert count <= 8
    assert values == pytest.approx([16 * n / 4 for n in range(1, 40)])
    assert traces["changed"]


def test_shapes_that_change_need_few_graphs(traces: dict[str, Any]) -> None:
    count, values = traces["by_shape"]
    assert count <= 3
    assert values == pytest.approx([4 * n for n in range(1, 40)])


def test_numbers_that_stay_the_same_are_not_changed(traces: dict[str, Any]) -> None:
    assert traces["constant"] == [1, [16.0] * 5]
