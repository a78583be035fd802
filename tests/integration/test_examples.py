"""The examples of the documentation run as shown, from the command line and from Python."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from devbench_process import ROOT, run_devbench
from warm_workers import WarmServer

from bench.store import files

pytestmark = pytest.mark.once

DOCS = ROOT / "docs"


@pytest.mark.parametrize(
    ("name", "loops", "steps"),
    [("mine", ("as-written", "fused"), 3 * 8192 // 256), ("own_step", ("step", "fused"), 384)],
)
def test_an_example_runs_with_the_command_that_its_page_shows(
    tmp_path: Path, warm_server: WarmServer | None, name: str, loops: tuple[str, ...], steps: int
) -> None:
    page = (DOCS / "workloads.md").read_text(encoding="utf-8")
    (line,) = re.findall(rf"`devbench (run examples/{name}\.py [^`]+)`", page)
    path = shlex.quote(str(ROOT / "examples" / f"{name}.py"))
    arguments = shlex.split(line.replace(f"examples/{name}.py", path))
    run = run_devbench(tmp_path, *arguments, "--max-processes", "1", warm=warm_server)
    assert run.code == 0, run.text()
    assert {result.spec.loop: result.status for result in run.results} == dict.fromkeys(loops, "complete")
    for result in run.results:
        assert result.placement is not None
        assert result.placement.verified, result.placement.reason
        assert result.projection is not None
        assert result.projection.steps == steps


@pytest.mark.essential
def test_the_python_of_the_quick_start_measures_the_example(tmp_path: Path) -> None:
    page = (DOCS / "quick-start.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^## From Python\n```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "DEVBENCH_OUTPUT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("complete value=")
    (result,) = files.results(tmp_path)
    assert result.spec.workload == "mine"
