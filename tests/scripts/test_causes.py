"""Causes that show only in scripts of certain forms."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from devbench_process import CompletedRun, run_devbench

pytestmark = pytest.mark.timeout(600)

BRIEF = ("--no-changes", "--max-processes", "1", "--max-time", "3m")


def script(folder: Path, text: str) -> str:
    (folder / "train.py").write_text(textwrap.dedent(text), encoding="utf-8")
    return "train.py"


def explained(folder: Path, text: str) -> Any:
    run = run_devbench(folder, "explain", script(folder, text), "--json", *BRIEF)
    assert run.code == 0, run.text()
    return json.loads(run.out)["explanation"]


def measured(folder: Path, text: str, *words: str) -> tuple[CompletedRun, Any]:
    run = run_devbench(folder, "run", script(folder, text), "--json", "--max-processes", "1", *words)
    assert run.code == 0, run.text()
    (result,) = json.loads(run.out)["results"]
    return run, result


METHOD = """
    import numpy as np
    import tensorflow as tf


    class Net(tf.Module):
        def __init__(self):
            self.w = tf.Variable(tf.random.normal([64, 1]))
            self.optimizer = tf.keras.optimizers.SGD(0.01)

        @tf.function
        def step(self, x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ self.w - y))
            self.optimizer.apply_gradients([(tape.gradient(loss, self.w), self.w)])
            return loss


    def main():
        net = Net()
        x = np.random.rand(256, 64).astype("float32")
        y = x.sum(axis=1, keepdims=True)
        for _ in range(3000):
            net.step(tf.constant(x), tf.constant(y))


    main()
"""


def test_a_step_that_is_a_method_of_a_local_object_has_levels(tmp_path: Path) -> None:
    explanation = explained(tmp_path, METHOD)
    assert [part["lower"] for part in explanation["parts"]][:1] == ["host-batches"], explanation["missing_levels"]
    results = [json.loads(path.read_text()) for path in (tmp_path / "results").glob("*.json")]
    levels = [result for result in results if result["spec"]["loop"] == "host-batches"]
    assert all(result["samples"][0]["facts"]["flops_per_step"] > 256 * 64 for result in levels)


EAGER = """
    import numpy as np
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.rand(256, 8).astype("float32")
    model.fit(x, x[:, :1], epochs=100, verbose=0)
"""


def test_functions_that_run_eagerly_are_a_cause_with_the_line_to_remove(tmp_path: Path) -> None:
    findings = {finding["cause"]: finding for finding in explained(tmp_path, EAGER)["findings"]}
    assert findings["eager execution"]["fix"].startswith("Remove tf.config.run_functions_eagerly(True).")


MASKED = """
    import numpy as np
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(8)])


    @tf.function
    def infer(x):
        logits = model(x)
        return tf.where(logits > 0.0, logits, float("-inf"))


    for _ in range(3000):
        infer(tf.constant(np.random.rand(64, 8).astype("float32")))
"""


def test_an_output_with_infinities_on_purpose_is_measured(tmp_path: Path) -> None:
    _, result = measured(tmp_path, MASKED)
    assert (result["status"], result["failure"]) == ("complete", None)


SEVERAL = """
    import time

    import numpy as np
    import tensorflow as tf


    class Slow(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(0.02)


    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.rand(256, 8).astype("float32")
    model.fit(x, x[:, :1], epochs=2, verbose=0, callbacks=[Slow()])
    model.fit(x, x[:, :1], epochs=400, verbose=0)
"""


def test_callbacks_of_another_fit_are_no_cause(tmp_path: Path) -> None:
    causes = [finding["cause"] for finding in explained(tmp_path, SEVERAL)["findings"]]
    assert "callbacks and logging" not in causes


ENDLESS = """
    import numpy as np
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.rand(256, 8).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(32).repeat()
    model.fit(data, steps_per_epoch=100, epochs=20, verbose=0)
"""


def test_data_without_an_end_are_measured_in_the_loop_fit(tmp_path: Path) -> None:
    explanation = explained(tmp_path, ENDLESS)
    assert "fit" not in explanation["missing_levels"]


VALIDATED = """
    import time

    import numpy as np
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.01)
    x = np.random.rand(32, 8).astype("float32")


    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss


    @tf.function
    def validate(x):
        return tf.reduce_mean(model(x))


    for epoch in range(40):
        for _ in range(100):
            train(x)
        validate(x)
        time.sleep(0.5)
"""


def test_a_validation_that_takes_most_of_the_time_of_a_loop_comes_first(tmp_path: Path) -> None:
    explanation = explained(tmp_path, VALIDATED)
    assert explanation["answer"][0]["name"] == "work between some steps"


PIPELINE = """
    import time

    import numpy as np
    import tensorflow as tf

    w = tf.Variable(tf.zeros([8, 1]))
    optimizer = tf.keras.optimizers.SGD(0.01)


    def read(x):
        time.sleep(0.003)
        return x


    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(x @ w)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])


    data = tf.data.Dataset.from_tensor_slices(np.random.rand(64, 32, 8).astype("float32")).repeat()
    data = data.map(lambda x: tf.ensure_shape(tf.numpy_function(read, [x], tf.float32), [32, 8]), num_parallel_calls=4)
    for x in data.prefetch(4).take(3000):
        train(x)
"""


def test_slow_input_of_a_loop_of_its_own_names_the_stage(tmp_path: Path) -> None:
    findings = {finding["cause"]: finding for finding in explained(tmp_path, PIPELINE)["findings"]}
    assert "Slowest stage: map" in findings["slow input"]["sentence"]
    assert "(train.py line 24)" in findings["slow input"]["sentence"]


SAVING = """
    import pathlib
    import time

    import numpy as np
    import tensorflow as tf

    w = tf.Variable(tf.zeros([64, 1]))
    optimizer = tf.keras.optimizers.SGD(0.01)


    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(x @ w)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])


    def save():
        pathlib.Path("weights.txt").write_text("1")
        time.sleep(0.3)


    x = tf.constant(np.random.rand(256, 64).astype("float32"))
    for n in range(200_000):
        train(x)
        if n % 100 == 99:
            save()
"""


def test_a_checkpoint_in_few_steps_is_a_cause_with_its_line(tmp_path: Path) -> None:
    findings = {finding["cause"]: finding for finding in explained(tmp_path, SAVING)["findings"]}
    assert "train.py line" in findings["rare long steps"]["sentence"]
    assert findings["rare long steps"]["share"] > 0.5


def test_keras_that_does_not_compute_with_tensorflow_is_refused(tmp_path: Path) -> None:
    chosen = 'import os\nos.environ["KERAS_BACKEND"] = "jax"\n' + textwrap.dedent(ENDLESS)
    run = run_devbench(tmp_path, "run", script(tmp_path, chosen))
    assert run.code == 2, run.text()
    assert "Keras computes with jax, not with TensorFlow" in run.text()
    assert "Set KERAS_BACKEND=tensorflow." in run.text()


ACTOR = """
    import threading
    import time

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.01)
    x = tf.random.normal((32, 8))
    model(x)
    trained = threading.Event()


    def act():
        while not trained.is_set():
            model(x)
            time.sleep(0.3)


    actor = threading.Thread(target=act, daemon=True)
    actor.start()
    time.sleep(1.0)
    for _ in range(500):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    trained.set()
    actor.join()
"""


def test_a_training_that_begins_while_another_thread_runs_the_model_is_explained(tmp_path: Path) -> None:
    """Steps of that thread are then looked into."""
    explanation = explained(tmp_path, ACTOR)
    assert "eager execution" in [finding["cause"] for finding in explanation["findings"]]


RETRACED = """
    import tensorflow as tf

    w = tf.Variable(tf.zeros([8, 1]))
    optimizer = tf.keras.optimizers.SGD(0.01)
    x = tf.random.normal((32, 8))


    @tf.function
    def train(x, scale):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ w - scale))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss


    for n in range(100_000):
        train(x, n / 1e6)
"""


def test_a_step_that_only_traces_new_graphs_spends_most_of_its_time_in_it(tmp_path: Path) -> None:
    findings = {finding["cause"]: finding for finding in explained(tmp_path, RETRACED)["findings"]}
    assert "TensorFlow traced train (train.py line 9) into a new graph" in findings["retracing"]["sentence"]
    assert findings["retracing"]["share"] > 0.8


SLOW_BETWEEN = RETRACED.replace("    train(x, n / 1e6)", "    train(x, n / 1e6)\n        time.sleep(0.5)").replace(
    "    import tensorflow", "    import time\n\n    import tensorflow"
)


def test_a_step_that_traces_and_then_waits_has_the_share_of_its_traces(tmp_path: Path) -> None:
    findings = {finding["cause"]: finding for finding in explained(tmp_path, SLOW_BETWEEN)["findings"]}
    assert findings["retracing"]["share"] < 0.5
