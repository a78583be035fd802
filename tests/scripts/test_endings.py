"""A script is timed until enough is known, or until it ends by itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from devbench_process import run_devbench

PROGRAMS = Path(__file__).parent / "programs"

COMPUTE = """import time

import tensorflow as tf

end = time.monotonic() + 40
while time.monotonic() < end:
    pass

"""
"""Lines that use the CPU and report nothing."""


@pytest.mark.timeout(600)
def test_a_training_without_an_end_is_stopped_even_if_it_catches_every_exception(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "endless.py", tmp_path)
    run = run_devbench(tmp_path, "run", "endless.py", "--max-processes", "1", "--threads", "2")
    assert run.code == 0, run.text()
    (result,) = run.results
    assert result.recognition is not None
    assert not result.recognition.ended
    assert result.projection is None  # nobody knows how many steps there are
    (sample,) = result.samples
    assert not sample.ended
    assert sample.printed is not None
    assert sample.printed.first == ["caught Finished"]
    assert result.placement is not None
    assert result.placement.verified
    (warning,) = (warning for warning in result.warnings if warning.key == "script-settings")
    assert "threads within an operation 1 instead of 2" in warning.message
    assert "tf.device('/GPU:0') in endless.py, line 21" in warning.message
    assert "/CPU:0" not in warning.message


@pytest.mark.essential
@pytest.mark.timeout(600)
def test_a_script_that_ends_early_gives_what_it_ran_and_starts_again_in_the_next_trial(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "loop_critic.py", tmp_path)
    run = run_devbench(tmp_path, "run", "loop_critic.py", "--max-processes", "2")
    assert run.code == 0, run.text()
    (result,) = run.results
    assert [sample.ended for sample in result.samples] == [True, True]
    assert result.summary.step_seconds is not None
    assert result.projection is not None
    assert result.projection.steps == 30
    for sample in result.samples:
        (series,) = sample.series
        assert 10 <= sum(block.steps for block in [*series.warmup, *series.blocks]) <= 25


STOPS = """import numpy as np
import tensorflow as tf


class Stop(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = epoch == 2


x = np.random.rand(320, 8).astype("float32")
model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
model.fit(x, x[:, :1], batch_size=32, epochs=50, callbacks=[Stop()], verbose=0)
"""
"""A training of 50 epochs of 10 steps that stops after the third one."""


@pytest.mark.timeout(600)
def test_a_fit_that_stops_by_itself_is_projected_for_the_steps_that_it_ran(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STOPS)
    run = run_devbench(tmp_path, "run", "train.py", "--max-processes", "1")
    assert run.code == 0, run.text()
    (result,) = run.results
    assert result.projection is not None
    assert (result.projection.steps, result.projection.planned_steps) == (30, 500)
    assert "stopped by itself after 30 of 500 steps" in run.text()


@pytest.mark.timeout(600)
def test_seeds_and_xla_that_a_script_chooses_are_kept_and_reported(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "seeds_itself.py", tmp_path)
    run = run_devbench(tmp_path, "run", "seeds_itself.py", "--max-processes", "1")
    assert run.code == 0, run.text()
    (result,) = run.results
    (warning,) = (warning for warning in result.warnings if warning.key == "script-settings")
    assert "seed of NumPy 3 instead of 1" in warning.message
    assert "seed of TensorFlow 4 instead of 1" in warning.message
    assert "seed of Python" not in warning.message
    assert "jit_compile=True for train_step in seeds_itself.py, line 15" in warning.message
    printed = result.samples[0].printed
    assert printed is not None
    assert printed.first[0] == f"first number {np.random.RandomState(3).rand()}"


@pytest.mark.timeout(600)
def test_a_script_that_computes_before_its_first_step_may_be_silent_for_longer(tmp_path: Path) -> None:
    text = (PROGRAMS / "loop_critic.py").read_text(encoding="utf-8")
    (tmp_path / "prepares.py").write_text(COMPUTE + text, encoding="utf-8")
    run = run_devbench(tmp_path, "run", "prepares.py", "--max-processes", "1", "--worker-timeout", "15s")
    assert run.code == 0, run.text()


@pytest.mark.timeout(600)
def test_an_explanation_of_a_script_without_a_step_ends_in_time_and_says_so(tmp_path: Path) -> None:
    computes = "import tensorflow as tf\n\nwhile True:\n    sum(range(10**6))\n"
    (tmp_path / "computes.py").write_text(computes, encoding="utf-8")
    run = run_devbench(tmp_path, "explain", "computes.py", "--max-time", "15s")
    assert run.code == 1, run.text()
    assert "no training step found in computes within 15 s" in " ".join(run.err.split())


@pytest.mark.timeout(600)
def test_a_script_that_waits_before_its_first_step_is_ended(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text("import time\n\nimport tensorflow as tf\n\ntime.sleep(900)\n", encoding="utf-8")
    run = run_devbench(tmp_path, "run", "waits.py", "--max-processes", "1", "--worker-timeout", "15s")
    assert run.code == 1, run.text()
    (result,) = run.results
    assert result.failure is not None
    assert result.failure.kind == "hung"
    assert result.failure.message.startswith("no training step found in waits.py: the worker was silent for 15 s")


SERVES = """
import http.server
http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler).serve_forever()
"""
STOPS_EARLY = ("epochs=2", "epochs=400, callbacks=[tf.keras.callbacks.EarlyStopping('loss', min_delta=1e9)]")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("replaced", [("", ""), STOPS_EARLY], ids=["all epochs", "early stopping"])
def test_a_script_that_goes_on_after_its_training_is_measured(replaced: tuple[str, str], tmp_path: Path) -> None:
    text = (PROGRAMS / "fit_dataset.py").read_text().replace(*replaced)
    (tmp_path / "serves.py").write_text(text + SERVES)
    run = run_devbench(tmp_path, "run", "serves.py", "--max-processes", "1")
    assert run.code == 0, run.text()
    (result,) = run.results
    assert result.recognition is not None
    assert result.recognition.chosen.kind == "fit"
    assert result.recognition.total_steps == result.recognition.chosen.steps == 40
    (series,) = result.samples[0].series
    assert series.blocks
    assert "serves.py went on after its last step, so devbench ended it." in result.notes


@pytest.mark.timeout(600)
def test_a_loop_that_goes_on_after_its_steps_is_measured(tmp_path: Path) -> None:
    (tmp_path / "serves.py").write_text((PROGRAMS / "loop_function.py").read_text() + SERVES)
    run = run_devbench(tmp_path, "run", "serves.py", "--max-processes", "1", "--worker-timeout", "40s")
    assert run.code == 0, run.text()
    (result,) = run.results
    assert result.recognition is not None
    assert (result.recognition.chosen.steps, result.recognition.ended) == (80, False)
    assert result.samples[0].series[0].blocks
    assert "serves.py went on after its last step, so devbench ended it." in result.notes


@pytest.mark.timeout(600)
def test_what_a_script_does_after_its_training_is_no_part_of_the_full_training(tmp_path: Path) -> None:
    after = f"""
import psutil, time
with open({str(tmp_path / "ended.txt")!r}, "a") as file:
    print(time.time() - psutil.Process().create_time(), file=file)
time.sleep(5)
"""
    (tmp_path / "train.py").write_text((PROGRAMS / "fit_dataset.py").read_text() + after)
    run = run_devbench(tmp_path, "run", "train.py", "--full", "--max-processes", "1")
    assert run.code == 0, run.text()
    projection = run.results[0].projection
    assert projection is not None
    assert projection.full_training is not None
    *_, ended = map(float, (tmp_path / "ended.txt").read_text().split())
    assert projection.full_training.total_seconds < ended + 1
    assert sum(projection.full_training.epoch_ends) < 5


@pytest.mark.timeout(600)
def test_the_full_training_of_a_custom_loop_ends_with_its_last_step(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text((PROGRAMS / "loop_function.py").read_text() + "\nimport time\ntime.sleep(5)\n")
    run = run_devbench(tmp_path, "run", "train.py", "--full", "--max-processes", "1")
    assert run.code == 0, run.text()
    projection = run.results[0].projection
    assert projection is not None
    assert projection.steps == 80
    assert projection.full_training is not None
    assert sum(projection.full_training.epoch_ends) < 5


@pytest.mark.once
@pytest.mark.timeout(600)
def test_a_full_training_without_a_step_has_the_same_error_as_a_run(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "no_step.py", tmp_path)
    run = run_devbench(tmp_path, "run", "no_step.py", "--full", "--max-processes", "1")
    assert run.code != 0
    (result,) = run.results
    assert result.failure is not None
    assert "no training step found in no_step.py" in result.failure.message
