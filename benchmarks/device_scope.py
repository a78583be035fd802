"""Does `tf.device` around a call of `fit` change what is timed?

`python -m benchmarks.device_scope`, on a machine with a GPU. It prints one JSON document: microseconds per step for XLA
off and "auto", without and with a device scope, alternately. devbench opens no scope around `fit` on a GPU.
"""

from __future__ import annotations

import contextlib
import json
import time

STEPS = 500
ROUNDS = 2


def main() -> None:
    """Print the times."""
    import numpy as np
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    device = "/GPU:0" if gpus else "/CPU:0"
    rng = np.random.default_rng(0)
    x, y = rng.random((32 * STEPS, 100), dtype="float32"), rng.integers(0, 10, 32 * STEPS)
    times: dict[str, dict[str, list[float]]] = {}
    for jit in (False, "auto"):
        row = times[f"jit_compile={jit}"] = {"natural": [], "scope": []}
        for _ in range(ROUNDS):
            for name, values in row.items():
                with tf.device(device) if name == "scope" else contextlib.nullcontext():
                    layers = tf.keras.layers
                    hidden = [layers.Dense(512, activation="relu") for _ in range(6)]
                    model = tf.keras.Sequential([tf.keras.Input((100,)), *hidden, layers.Dense(10, "softmax")])
                    model.compile("sgd", "sparse_categorical_crossentropy", jit_compile=jit)
                    model.fit(x, y, batch_size=32, verbose=0)
                    start = time.perf_counter()
                    model.fit(x, y, batch_size=32, verbose=0)
                    values.append((time.perf_counter() - start) / STEPS * 1e6)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
