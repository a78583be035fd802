"""A script is refused without running it, and a wrapper of two lines measures it as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from devbench_process import run_devbench

SCRIPT = """
import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input(shape=(4,)), tf.keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
if __name__ == "__main__":
    model.fit(np.ones((320, 4), "float32"), np.ones(320, "float32"), epochs=3, verbose=0)
    open("trained", "w").close()
"""
WRAPPER = """import runpy
def as_written(): runpy.run_path("train.py", run_name="__main__")
"""


@pytest.mark.timeout(600)
def test_a_script_is_refused_with_the_wrapper_that_measures_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    refused = run_devbench(tmp_path, "run", "./train.py")
    assert refused.code == 2
    assert not (tmp_path / "trained").exists()
    assert "def as_written(): runpy.run_path(" in refused.err
    (tmp_path / "wrapped.py").write_text(WRAPPER)
    measured = run_devbench(tmp_path, "run", "./wrapped.py", "--max-processes", "1")
    assert measured.code == 0, measured.text()
    (result,) = measured.results
    assert (result.status, result.failure) == ("complete", None)
    assert result.placement is not None
    assert result.placement.verified
    assert result.summary.step_seconds is not None
