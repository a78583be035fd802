"""The hint of a failure says whose fault it probably is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bench
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
