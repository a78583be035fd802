"""What a script sets itself is kept and reported, and each of its processes does the same work."""

from __future__ import annotations

from pathlib import Path

import pytest
from devbench_process import run_devbench

PROGRAMS = Path(__file__).parent / "programs"
ENVIRONMENT = """import os

os.environ["CUDA_VISIBLE_DEVICES"] = "0"
print(*{"cat", "dog", "cow", "hen", "owl", "pig", "rat", "yak"})
"""
POLICY = """
tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
"""


@pytest.mark.once
@pytest.mark.timeout(600)
def test_visible_devices_and_a_dtype_policy_that_a_script_sets_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    text = (PROGRAMS / "fit_arrays.py").read_text(encoding="utf-8")
    head, tensorflow, rest = text.partition("import tensorflow as tf\n")
    (tmp_path / "train.py").write_text(head + ENVIRONMENT + tensorflow + POLICY + rest, encoding="utf-8")
    run = run_devbench(tmp_path, "run", "train.py", "--max-processes", "2", "--max-time", "300s")
    assert run.code == 0, run.text()
    (result,) = run.results
    (warning,) = (warning for warning in result.warnings if warning.key == "script-settings")
    assert "CUDA_VISIBLE_DEVICES 0 instead of -1" in warning.message
    assert "dtype policy mixed_bfloat16 instead of float32" in warning.message
    first, second = result.samples
    assert first.first_losses
    assert first.first_losses == second.first_losses
    assert first.printed is not None
    assert second.printed is not None
    assert first.printed.first[0] == second.printed.first[0]  # the order of a set of texts


@pytest.mark.once
@pytest.mark.timeout(600)
def test_a_module_of_a_package_imports_its_neighbours(tmp_path: Path) -> None:
    package = tmp_path / "trainer"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "sizes.py").write_text("ROWS = 400\n")
    (package / "train.py").write_text(
        "import tensorflow as tf\n"
        "from .sizes import ROWS\n"
        "model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "model.fit(tf.ones((ROWS, 4)), tf.ones((ROWS, 1)), batch_size=20, epochs=3, verbose=0)\n"
    )
    run = run_devbench(tmp_path, "run", "-m", "trainer.train", "--max-processes", "1")
    assert run.code == 0, run.text()
    (result,) = run.results
    assert result.recognition is not None
    assert result.recognition.chosen.steps == 60
    assert result.recognition.chosen.place == "fit in trainer/train.py, line 5"
