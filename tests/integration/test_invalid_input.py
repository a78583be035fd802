"""Bad input, met before anything is measured: exit 2, what is wrong, what to do, no traceback, nothing measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from devbench_process import BRIEF, Ended, devbench

pytestmark = pytest.mark.once  # none of it comes to TensorFlow, but for what only reading shows

MNIST = {"x_train": (60_000, 28, 28), "y_train": (60_000,), "x_test": (10_000, 28, 28), "y_test": (10_000,)}


def refused(ended: Ended) -> str:
    """Checks that it ended as bad input does; returns what it said."""
    assert ended.code == 2, ended.said()
    assert ended.out == ""
    assert ended.err.startswith("error: ")
    assert "Traceback" not in ended.err
    assert "starting" not in ended.err
    assert not list(ended.folder.glob("*.json"))
    return ended.said()


@pytest.mark.parametrize(
    ("words", "wrong", "fix"),
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
def test_a_wrong_name_or_value_is_told_with_what_would_be_right(
    words: list[str], wrong: str, fix: str, tmp_path: Path
) -> None:
    said = refused(devbench(tmp_path, "run", *BRIEF, *words))
    assert wrong in said
    assert fix in said


def test_an_unknown_option_is_met_with_the_nearest(tmp_path: Path) -> None:
    ended = devbench(tmp_path, "run", "cifar", "--worker-timeuot", "5s")
    assert ended.code == 2
    assert "--worker-timeuot" in ended.err
    assert "--worker-timeout" in ended.err
    assert "Traceback" not in ended.err


def test_an_unknown_key_in_the_settings_file_is_told_by_file_and_key(tmp_path: Path) -> None:
    (tmp_path / "devbench.toml").write_text('max_tiem = "2m"\n')
    said = refused(devbench(tmp_path, "run", "cifar"))
    assert "unknown key 'max_tiem' in devbench.toml" in said
    assert "Did you mean max_time?" in said


@pytest.mark.parametrize("place", ["taken", "taken/deep/below"])
def test_an_output_folder_that_can_not_be_is_found_before_anything_is_measured(place: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    said = refused(devbench(tmp_path, "run", "matmul", "--output", place, *BRIEF))
    assert f"cannot write results to {place}" in said
    assert "Choose another folder with --output" in said
    assert (tmp_path / "taken").read_text() == "a file"


def mnist(path: Path, **shapes: tuple[int, ...]) -> Path:
    """Writes a full set of black images, each array of the usual shape or another."""
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {name: np.zeros(shape, np.uint8) for name, shape in (MNIST | shapes).items()}
    np.savez_compressed(path, **arrays)
    return path


def test_a_data_file_of_the_wrong_shape_is_named_with_what_is_expected(tmp_path: Path) -> None:
    file = mnist(tmp_path / "data/mnist.npz", x_test=(10_000, 28, 27))
    said = refused(devbench(tmp_path, "run", "mnist", "--data", "full", "--data-dir", "data", *BRIEF))
    assert f"x_test in {file.relative_to(tmp_path)} is uint8 (10000, 28, 27), not uint8 (10000, 28, 28)" in said
    assert "--data sample" in said


def test_a_truncated_data_file_is_named_with_the_fix(tmp_path: Path) -> None:
    file = mnist(tmp_path / "data/mnist.npz")
    file.write_bytes(file.read_bytes()[:-100])
    said = refused(devbench(tmp_path, "run", "mnist", "--data", "full", "--data-dir", "data", *BRIEF))
    assert "data/mnist.npz is truncated or damaged" in said
    assert "Replace or delete the file" in said


def test_a_data_file_that_can_not_be_read_is_named_with_the_fix(tmp_path: Path) -> None:
    (tmp_path / "data/cifar10.npz").mkdir(parents=True)
    said = refused(devbench(tmp_path, "run", "cifar", "--data", "full", "--data-dir", "data", *BRIEF))
    assert "data/cifar10.npz cannot be read" in said
    assert "Replace or delete the file" in said


def test_a_data_folder_that_is_not_there_is_named_with_its_option(tmp_path: Path) -> None:
    said = refused(devbench(tmp_path, "run", "mnist", "--data-dir", "nowhere", *BRIEF))
    assert "the data folder nowhere does not exist" in said
    assert "--data-dir" in said


def test_damage_that_only_reading_shows_fails_the_result_with_the_fix(tmp_path: Path) -> None:
    file = mnist(tmp_path / "data/mnist.npz")
    damaged = bytearray(file.read_bytes())
    damaged[2000:2100] = bytes(each ^ 0xFF for each in damaged[2000:2100])
    file.write_bytes(damaged)
    ended = devbench(tmp_path, "run", "mnist", "--data", "full", "--data-dir", "data", *BRIEF)
    assert ended.code == 2, ended.said()
    failure = ended.results["mnist"].failure
    assert failure is not None
    assert (failure.kind, failure.phase) == ("data", "data")
    assert "data/mnist.npz is truncated or damaged" in ended.said()
    assert "Replace or delete the file" in ended.said()
    assert "Traceback" not in ended.err


BAD_FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "no Python": ("def as_written(:\n", ("mine.py is not Python", "mine.py, line 1: def as_written(:")),
    "a missing module": (
        "import os\nimport tensorflwo\n",
        ("No module named 'tensorflwo'", "mine.py, line 2: import tensorflwo", "Install tensorflwo"),
    ),
    "an error at its top": ("x = 1\ny = x / 0\n", ("ZeroDivisionError", "mine.py, line 2: y = x / 0")),
    "a script that ends": ("import sys\nsys.exit('done')\n", ("SystemExit: done", "mine.py, line 2", "__main__")),
    "nothing to run": ("x = 1\n", ("mine.py defines nothing to run", "Define one of these: `as_written`")),
    "a strange argument": (
        "\ndef as_written(gpu):\n    yield 1\n",
        ("mine.py, line 2: `as_written` has an argument `gpu`", "can take ctx, data, inputs, model, p"),
    ),
    "a crash": ("import os\nos.abort()\n", ("mine.py ended the process with exit code",)),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_users_file_that_is_wrong_is_told_by_its_own_line(name: str, tmp_path: Path) -> None:
    text, told = BAD_FILES[name]
    (tmp_path / "mine.py").write_text(text)
    said = refused(devbench(tmp_path, "run", "./mine.py", *BRIEF))
    for each in told:
        assert each in said
    assert "registry" not in said


def test_a_users_file_that_never_finishes_importing_is_given_up_after_the_workers_time_out(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("while True:\n    pass\n")
    said = refused(devbench(tmp_path, "run", "./mine.py", "--worker-timeout", "3s"))
    assert "mine.py took longer than 3 s" in said
    assert "--worker-timeout" in said
