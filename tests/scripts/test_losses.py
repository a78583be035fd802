"""What devbench reads from a step of a script: its loss, whatever else the step returns."""

from __future__ import annotations

from pathlib import Path

import pytest
from devbench_process import BRIEF, run_devbench

pytestmark = pytest.mark.timeout(300)

TRAINS = """
import numpy as np
import tensorflow as tf

x, y = np.random.rand(3200, 8).astype("float32"), np.random.randint(0, 10, 3200)
model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(10, activation="softmax")])
model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=20, verbose=0)
"""


def test_the_first_losses_of_a_fit_with_metrics_are_losses(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS, encoding="utf-8")
    run = run_devbench(tmp_path, "run", "train.py", *BRIEF)
    assert run.code == 0, run.text()
    (sample, *_) = run.results[0].samples
    assert len(sample.first_losses) == 5
    assert all(loss > 1.5 for loss in sample.first_losses)  # of ten classes; an accuracy is at most 1


def test_a_session_of_each_process_starts_with_the_same_weights(tmp_path: Path) -> None:
    program = Path(__file__).parent / "programs" / "session.py"
    (tmp_path / "train.py").write_text(program.read_text().replace("range(65)", "range(20000)"), encoding="utf-8")
    run = run_devbench(tmp_path, "run", "train.py", "--max-processes", "2", "--max-time", "60s")
    assert run.code == 0, run.text()
    first, second = (sample.first_losses for sample in run.results[0].samples[:2])
    assert first == second
