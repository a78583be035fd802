"""Which graphs belong to a step, from stacks of scripted files."""

from __future__ import annotations

from typing import Any

import pytest

from bench.worker.tracing import in_validation

pytestmark = pytest.mark.once

KERAS = "/site-packages/keras"


def function(name: str, file: str) -> Any:
    """Return a function of a file that calls its argument."""
    names: dict[str, Any] = {}
    exec(compile(f"def {name}(call):\n    return call()\n", file, "exec"), names)
    return names[name]


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        (("fit", "evaluate"), True),
        (("fit", "on_epoch_end", "evaluate"), True),
        (("fit",), False),
        (("evaluate",), False),
        (("evaluate", "fit"), False),
    ],
    ids=str,
)
def test_a_graph_of_a_validation_belongs_to_no_step(stack: tuple[str, ...], expected: bool) -> None:
    call: Any = lambda: in_validation((KERAS,))  # noqa: E731
    for name in reversed(stack):
        call = function(name, f"{KERAS}/trainer.py").__get__(call)
    assert call() is expected


def test_a_function_of_the_program_may_be_called_evaluate() -> None:
    inner = function("evaluate", "/folder/train.py").__get__(lambda: in_validation((KERAS,)))
    assert function("fit", f"{KERAS}/trainer.py")(inner) is False
