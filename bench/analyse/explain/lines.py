"""The lines of the program that a finding is about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.model.result import Result


def named_lines(base: Result, lines: Sequence[int]) -> str:
    """Return the lines of the program's own file, in parentheses. Empty if there are none."""
    name = Path(base.spec.file).name if base.spec.file else f"{base.spec.workload}'s source"
    noun = "line" if len(lines) == 1 else "lines"
    return f" ({name} {noun} {', '.join(map(str, lines))})" if lines else ""
