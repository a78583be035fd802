"""A failure says whose fault it probably is, and shows what its worker printed last."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bench
from bench.session.worker_failure import last_lines
from bench.worker.failure import failure_of

pytestmark = pytest.mark.once


def function(path: Path, name: str, body: str, **names: Any) -> Callable[[], None]:
    """Return a function of a source file that need not exist."""
    exec(compile(f"def {name}():\n    {body}\n", str(path), "exec"), names)
    result: Callable[[], None] = names[name]
    return result


@pytest.mark.parametrize(
    ("handler", "words"),
    [("call", "probably a fault of devbench"), ("error_handler", "The last lines below come from the program")],
)
def test_an_error_whose_inner_frames_keras_removed_is_not_a_fault_of_devbench(
    handler: str, words: str, tmp_path: Path
) -> None:
    hook = function(Path(bench.__file__).parent / "worker" / "fit_hook.py", "fit", "raise ValueError('shapes')")
    keras = function(tmp_path / "site-packages" / "keras.py", handler, "fit()", fit=hook)
    program = function(tmp_path / "train.py", "train", "fit()", fit=keras)
    with pytest.raises(ValueError, match="shapes") as caught:
        program()
    assert words in failure_of(caught.value, str(tmp_path / "train.py"), "first_step").hint


def test_the_last_lines_of_a_crash_leave_out_the_frames_of_devbench_but_not_those_of_its_workloads() -> None:
    package = Path(bench.__file__).parent
    ours = [package / "registry" / "user_file.py", package / "registry" / "__init__.py", package / "worker" / "main.py"]
    program = [Path("/programs/train.py"), package / "workloads" / "cifar.py"]
    frames = [f'  File "{file}", line 12 in load' for file in (*program, *ours)]
    heading = ["Fatal Python error: Segmentation fault", "Current thread 0x00007f (most recent call first):"]
    text = "\n".join([*heading, *frames, '  File "<frozen runpy>", line 88 in _run_code'])
    assert last_lines(text) == [*heading, *frames[:2]]


def test_the_last_lines_of_a_failure_leave_out_what_tensorflow_logs_at_each_start() -> None:
    logged = [
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
        "I0000 00:00:1795677668.372007   29720 port.cc:153] oneDNN custom operations are on. You may see slightly",
        "I0000 00:00:1795677668.447744   29720 cpu_feature_guard.cc:227] This TensorFlow binary is optimized",
        "To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow",
        "2026-01-01 00:00:00.123456: I tensorflow/core/platform/cpu_feature_guard.cc:193] This TensorFlow binary",
        "To enable them in other operations, rebuild TensorFlow with the appropriate compiler flags.",
    ]
    told = ["I0000 00:00:1795677668.500000   29720 cuda_dnn.cc:529] Loaded cuDNN version 91002", "about to fail"]
    assert last_lines("\n".join([logged[0], told[0], *logged[1:], told[1]])) == told
