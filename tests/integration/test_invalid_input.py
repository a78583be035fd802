"""Invalid input is reported before anything is measured: exit code 2, the error, its fix and no traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from devbench_process import BRIEF, CompletedRun, run_devbench

pytestmark = pytest.mark.once  # TensorFlow starts only where the error shows in the worker

MNIST = {"x_train": (60_000, 28, 28), "y_train": (60_000,), "x_test": (10_000, 28, 28), "y_test": (10_000,)}


def refusal(run: CompletedRun) -> str:
    """Check that a run refused its input before it measured anything. Return its output."""
    assert run.code == 2, run.text()
    assert run.out == ""
    assert run.err.startswith("error: ")
    assert "Traceback" not in run.err
    assert "starting" not in run.err
    assert not list(run.folder.glob("*.json"))
    return run.text()


@pytest.mark.parametrize(
    ("arguments", "error", "fix"),
    [
        (["cifra"], "no workload named 'cifra'", "Did you mean cifar?"),
        (["matmul", "cifra"], "no workload named 'cifra'", "Did you mean cifar?"),
        (["cifar", "--backend", "cdua"], "no backend named 'cdua'", "Did you mean cuda"),
        (["cifar", "--param", "bacth=64"], "no parameter named 'bacth'", "Did you mean batch?"),
        (["tabular", "--case", "smal"], "no case named 'smal'", "Did you mean small?"),
        (["cifar", "--param", "batch=0"], "invalid value '0' for parameter batch", "from 1 to"),
        (["cifar", "--param", "batch=many"], "invalid value 'many' for parameter batch", "a whole number"),
        (["cifar", "--param", "batch"], "invalid value 'batch' for --param", "batch=64"),
        (["cifar", "--target-error", "3"], "invalid value '3' for --target-error", "Use a share such as 3% or 0.03"),
        (["cifar", "--max-processes", "0"], "invalid value '0' for --max-processes", "Use a whole number of 1 or more"),
        (["matmul", "--loop", "stpe"], "invalid value 'stpe' for --loop", "step"),
        (["matmul", "--loop", "fit"], "matmul by loop fit: not applicable, because", "devbench list"),
        (["./absent.py"], "absent.py does not exist", "Give a name that `devbench list` shows, or the path of a file."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_invalid_name_or_value_is_reported_with_valid_ones(
    arguments: list[str], error: str, fix: str, tmp_path: Path
) -> None:
    text = refusal(run_devbench(tmp_path, "run", *BRIEF, *arguments))
    assert error in text
    assert fix in text


def test_an_unknown_option_is_reported_with_the_nearest_one(tmp_path: Path) -> None:
    run = run_devbench(tmp_path, "run", "cifar", "--worker-timeuot", "5s")
    assert run.code == 2
    assert "--worker-timeuot" in run.err
    assert "--worker-timeout" in run.err
    assert "Traceback" not in run.err


def test_an_unknown_key_in_the_settings_file_is_reported_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "devbench.toml").write_text('max_tiem = "2m"\n')
    text = refusal(run_devbench(tmp_path, "run", "cifar"))
    assert "unknown key 'max_tiem' in devbench.toml" in text
    assert "Did you mean max_time?" in text


@pytest.mark.parametrize("output", ["occupied", "occupied/folder/below"])
def test_an_unwritable_output_folder_is_reported_before_anything_is_measured(output: str, tmp_path: Path) -> None:
    (tmp_path / "occupied").write_text("a file")
    text = refusal(run_devbench(tmp_path, "run", "matmul", "--output", output, *BRIEF))
    assert f"cannot write results to {output}" in text
    assert "Choose another folder with --output" in text
    assert (tmp_path / "occupied").read_text() == "a file"


def mnist(path: Path, **shapes: tuple[int, ...]) -> Path:
    """Write a full MNIST of black images. `shapes` replaces the shapes of arrays."""
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {name: np.zeros(shape, np.uint8) for name, shape in (MNIST | shapes).items()}
    np.savez_compressed(path, **arrays)
    return path


def test_a_data_file_of_the_wrong_shape_is_reported_with_the_expected_shape(tmp_path: Path) -> None:
    file = mnist(tmp_path / "data/mnist.npz", x_test=(10_000, 28, 27))
    text = refusal(run_devbench(tmp_path, "run", "mnist", "--data", "full", "--data-dir", "data", *BRIEF))
    assert f"x_test in {file.relative_to(tmp_path)} is uint8 (10000, 28, 27), not uint8 (10000, 28, 28)" in text
    assert "--data sample" in text


def test_a_truncated_data_file_is_reported_with_the_fix(tmp_path: Path) -> None:
    file = mnist(tmp_path / "data/mnist.npz")
    file.write_bytes(file.read_bytes()[:-100])
    text = refusal(run_devbench(tmp_path, "run", "mnist", "--data", "full", "--data-dir", "data", *BRIEF))
    assert "data/mnist.npz is truncated or damaged" in text
    assert "Replace or delete the file" in text


def test_an_unreadable_data_file_is_reported_with_the_fix(tmp_path: Path) -> None:
    (tmp_path / "data/cifar10.npz").mkdir(parents=True)
    text = refusal(run_devbench(tmp_path, "run", "cifar", "--data", "full", "--data-dir", "data", *BRIEF))
    assert "data/cifar10.npz cannot be read" in text
    assert "Replace or delete the file" in text


def test_a_missing_data_folder_is_reported_with_its_option(tmp_path: Path) -> None:
    text = refusal(run_devbench(tmp_path, "run", "mnist", "--data-dir", "nowhere", *BRIEF))
    assert "the data folder nowhere does not exist" in text
    assert "--data-dir" in text


def test_damage_that_only_a_full_read_shows_fails_the_result_with_the_fix(tmp_path: Path) -> None:
    file = mnist(tmp_path / "data/mnist.npz")
    damaged = bytearray(file.read_bytes())
    damaged[2000:2100] = bytes(byte ^ 0xFF for byte in damaged[2000:2100])
    file.write_bytes(damaged)
    run = run_devbench(tmp_path, "run", "mnist", "--data", "full", "--data-dir", "data", *BRIEF)
    assert run.code == 2, run.text()
    failure = run.by_workload["mnist"].failure
    assert failure is not None
    assert (failure.kind, failure.phase) == ("data", "data")
    assert "data/mnist.npz is truncated or damaged" in run.text()
    assert "Replace or delete the file" in run.text()
    assert "Traceback" not in run.err


BAD_FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "a syntax error": ("def as_written(:\n", ("mine.py is not Python", "mine.py, line 1: def as_written(:")),
    "a missing module": (
        "import os\nimport tensorflwo\ndef step(): ...\n",
        ("No module named 'tensorflwo'", "mine.py, line 2: import tensorflwo", "Install tensorflwo"),
    ),
    "an error at module level": (
        "x = 1\ny = x / 0\ndef step(): ...\n",
        ("ZeroDivisionError", "mine.py, line 2: y = x / 0"),
    ),
    "a script that exits": (
        "import sys\nsys.exit('done')\ndef step(): ...\n",
        ("SystemExit: done", "mine.py, line 2", "__main__"),
    ),
    "an unknown argument": (
        "\ndef as_written(gpu):\n    yield 1\n",
        ("mine.py, line 2: `as_written` has an argument `gpu`", "can take ctx, data, inputs, model, p"),
    ),
    "a crash": ("import os\nos.abort()\ndef step(): ...\n", ("mine.py ended the process with exit code",)),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_an_error_in_a_users_file_is_reported_with_its_line(name: str, tmp_path: Path) -> None:
    source, messages = BAD_FILES[name]
    (tmp_path / "mine.py").write_text(source)
    output = refusal(run_devbench(tmp_path, "run", "./mine.py", *BRIEF))
    for message in messages:
        assert message in output
    assert "registry" not in output


def test_an_import_of_a_users_file_ends_after_the_worker_timeout(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("while True:\n    pass\ndef step(): ...\ndef inputs(): ...\n")
    text = refusal(run_devbench(tmp_path, "run", "./mine.py", "--worker-timeout", "3s"))
    assert "mine.py took longer than 3 s" in text
    assert "--worker-timeout" in text
