"""Why a function is traced again, by the arguments of its traces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.worker.trace_reasons import TraceReasons


def reason(*calls: tuple[Any, ...]) -> tuple[str, str, str, str] | None:
    reasons = TraceReasons()
    for args in calls:
        reasons.add("f", ["self", "rows", "noise"], args, {})
    typical = reasons.typical("f")
    return (typical.kind, typical.argument, typical.before, typical.after) if typical else None


ROWS = np.zeros((2, 3), "float32")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((ROWS, 0.5), (ROWS, 0.25), ("value", "noise", "0.5", "0.25")),
        ((ROWS, None), (ROWS, "x" * 50), ("value", "noise", "None", "'" + "x" * 39 + "…")),
        ((ROWS, 1), (ROWS[:1], 1), ("shape", "rows", "(2, 3)", "(1, 3)")),
        ((ROWS, 1), (ROWS.astype("float64"), 1), ("dtype", "rows", "float32", "float64")),
        ((ROWS, object()), (ROWS, object()), ("object", "noise", "", "")),
        ((ROWS, ROWS), (ROWS, 0.5), ("structure", "noise", "", "")),
        (({"user": ROWS}, 1), ({"user": ROWS, "item": ROWS}, 1), ("structure", "rows['item']", "", "")),
        (({"user": ROWS, "item": ROWS}, 1), ({"user": ROWS}, 1), ("structure", "rows['item']", "", "")),
        (([ROWS, ROWS], 1), ([ROWS, ROWS[:1]], 1), ("shape", "rows[1]", "(2, 3)", "(1, 3)")),
        ((ROWS, 1), (ROWS, 1), ("new function", "", "", "")),
    ],
)
def test_the_first_argument_that_differs_is_the_reason(
    first: tuple[Any, ...], second: tuple[Any, ...], expected: tuple[str, str, str, str]
) -> None:
    assert reason(first, second) == expected


def test_a_method_may_be_bound_already_and_a_function_may_take_more_arguments() -> None:
    me = object()
    assert reason((me, ROWS, 1), (me, ROWS, 2)) == ("value", "noise", "1", "2")
    assert reason((me, ROWS, 1, 2), (me, ROWS, 1, 3)) == ("value", "argument 4", "2", "3")


def test_the_most_frequent_reason_counts_and_a_single_trace_has_none() -> None:
    assert reason((ROWS, 1)) is None
    assert reason((ROWS, 1), (ROWS[:1], 1), (ROWS[:1], 2), (ROWS[:1], 3)) == ("value", "noise", "2", "3")


def test_equal_values_are_no_reason_if_not_all_values_were_compared() -> None:
    many = list(range(10_000))
    assert reason((many, 1), (many, 2)) is None
    assert reason((many, 1), (many[::-1], 1)) == ("value", "rows[0]", "0", "9999")
