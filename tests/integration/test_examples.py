"""The examples of the documentation run as shown, from the command line and from Python."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from devbench_process import ROOT, devbench

from bench.store import files

pytestmark = pytest.mark.once

DOCS = ROOT / "docs"


def test_the_example_runs_with_the_command_that_its_page_shows(tmp_path: Path) -> None:
    page = (DOCS / "your-program.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`devbench (run examples/mine\.py [^`]+)`", page)
    words = shlex.split(line.replace("examples/mine.py", shlex.quote(str(ROOT / "examples" / "mine.py"))))
    ended = devbench(tmp_path, *words, "--max-processes", "1")
    assert ended.code == 0, ended.said()
    assert {each.spec.loop: each.status for each in ended.every} == {"as-written": "complete", "fused": "complete"}
    for each in ended.every:
        assert each.placement is not None
        assert each.placement.verified, each.placement.reason
        assert each.projection is not None
        assert each.projection.steps == 3 * 8192 // 256


@pytest.mark.essential
def test_the_python_of_the_quick_start_measures_the_example(tmp_path: Path) -> None:
    page = (DOCS / "quick-start.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^## From Python\n```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "DEVBENCH_OUTPUT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("complete value=")
    (found,) = files.results(tmp_path)
    assert found.spec.workload == "mine"
