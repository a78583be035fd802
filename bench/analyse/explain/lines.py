"""The lines of the program that a finding is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from bench.model.facts import Retraced
from bench.model.result import Result


def lines_of_traced(base: Result, calls: Sequence[Retraced]) -> str:
    """Return the lines of calls in which TensorFlow traced, in parentheses."""
    own = Path(base.spec.file).name if base.spec.file else ""
    by_file: dict[str, list[int]] = {}
    for call in sorted(calls, key=lambda call: call.line):
        by_file.setdefault(Path(call.file).name, []).append(call.line)
    return named_lines(base, by_file.pop(own, []), by_file)


def named_lines(
    base: Result, lines: Sequence[int], elsewhere: Mapping[str, Sequence[int]] = MappingProxyType({})
) -> str:
    """Return lines of the program, in parentheses. Empty if there are none.

    Args:
        base: the result of the program as written.
        lines: lines of its own file.
        elsewhere: lines of other files of a script, or of cells of a notebook, by name.
    """
    name = Path(base.spec.file).name if base.spec.file else f"{base.spec.workload}'s source"
    by_file = {name: lines, **elsewhere}
    texts = []
    for file, numbers in by_file.items():
        noun = "line" if len(numbers) == 1 else "lines"
        comma = "," if "," in file else ""  # a cell
        texts += [f"{file}{comma} {noun} {', '.join(map(str, numbers))}"] if numbers else []
    return f" ({'; '.join(texts)})" if texts else ""
