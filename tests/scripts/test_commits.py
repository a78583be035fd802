"""A script at two commits, or in two folders: `gate`, its action, `bisect`, and `run --compare`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from devbench_process import ROOT, run_devbench
from git_repository import GitRepository

pytestmark = [pytest.mark.once, pytest.mark.timeout(600)]

SCRIPT = (Path(__file__).parent / "programs" / "commits.py").read_text(encoding="utf-8")
FAST, SLOW = "SECONDS = 0.01\n", "SECONDS = 0.03\n"
BROKEN = "raise ImportError('cost was moved')\n"
BRIEF = ("--max-processes", "1", "--max-time", "40s")


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    """Return a repository with one commit."""
    made = GitRepository(tmp_path / "project")
    made.commit({"train.py": SCRIPT, "cost.py": FAST, ".gitignore": "results/\nout\nerr\n"})
    return made


def test_a_gate_fails_for_a_slower_head_and_writes_the_table_and_its_cause(repository: GitRepository) -> None:
    repository.commit({"cost.py": SLOW})
    options = ("--base", "HEAD~1", "--summary", "results/summary.md", "--explain", *BRIEF)
    run = run_devbench(repository.folder, "gate", "train.py", *options)
    assert run.code == 5, run.text()
    assert "slower: train of head on cpu, as-written takes" in run.text()
    assert "times" in run.text()
    summary = (repository.folder / "results" / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("## devbench gate: slower\n")
    assert "\n\nFalse alarms: devbench's benchmark ran " in summary
    assert "| head | slower |" in summary
    assert "Python without TensorFlow (train.py line 16)" in summary
    assert "\n" not in repository.git("worktree", "list")


WORKLOAD = """
import time
from pathlib import Path
import tensorflow as tf
from pydantic import BaseModel

class Params(BaseModel):
    factor: float = 1.0

CASES = {"short": {"factor": 1.0}, "long": {"factor": 2.0}}

def as_written(p):
    seconds = p.factor * float(Path("seconds.txt").read_text())
    weights = tf.Variable([1.0, 2.0])
    while True:
        weights.assign(weights * 0.5)
        time.sleep(seconds)
        yield weights.value()
"""


def test_a_gate_compares_each_case_of_a_workload(repository: GitRepository) -> None:
    repository.commit({"wide.py": WORKLOAD, "seconds.txt": "0.01"})
    repository.commit({"wide.py": f"{WORKLOAD}# changed\n", "seconds.txt": "0.03"})
    options = ("--base", "HEAD~1", "--summary", "results/summary.md", *BRIEF)
    run = run_devbench(repository.folder, "gate", "wide.py", *options)
    assert run.code == 5, run.text()
    for case in ("short", "long"):
        assert f"slower: wide/{case} of head on cpu, as-written takes" in run.text()


def test_a_gate_says_which_side_does_not_run(repository: GitRepository) -> None:
    repository.commit({"cost.py": BROKEN})
    repository.commit({"cost.py": FAST})
    run = run_devbench(repository.folder, "gate", "train.py", "--base", "HEAD~1", *BRIEF)
    assert run.code == 2, run.text()
    assert "the base (HEAD~1) does not run" in run.text()
    assert "cost was moved" in run.text()


def test_the_action_installs_devbench_and_fails_a_pull_request_that_is_slower(
    repository: GitRepository, tmp_path: Path
) -> None:
    import yaml  # the environment with TensorFlow 2.10 lacks it

    base = repository.git("rev-parse", "HEAD")
    repository.commit({"cost.py": SLOW})
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (own,) = {path for path in map(Path, sys.path) if path.name == "site-packages"}
    (site / "tensorflow.pth").write_text(f"{own}\n")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    given = {"program": "train.py", "base": base, "max-time": "40s", "python": str(python)}
    inputs = {name: given.get(name, str(entry.get("default", ""))) for name, entry in action["inputs"].items()}
    summary = tmp_path / "summary.md"
    codes = []
    for step in action["runs"]["steps"]:
        variables = {
            name: str(ROOT) if "github.action_path" in value else inputs[value.split("inputs.")[1].split(" ")[0]]
            for name, value in step["env"].items()
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=repository.folder,
            env={**os.environ, **variables, "GITHUB_STEP_SUMMARY": str(summary)},
            capture_output=True,
            text=True,
            check=False,
        )
        codes.append(done.returncode)
        assert done.returncode in (0, 5), done.stderr
    assert codes == [0, 0, 5]
    assert "slower" in summary.read_text(encoding="utf-8")


def test_each_side_of_a_gate_imports_an_installed_package_from_its_own_commit(repository: GitRepository) -> None:
    package = "src/costs/__init__.py"
    repository.commit({"examples/train.py": SCRIPT.replace("from cost ", "from costs "), package: FAST})
    repository.commit({package: SLOW})
    path = os.pathsep.join([str(repository.folder / "src"), str(ROOT)])
    run = run_devbench(repository.folder, "gate", "examples/train.py", "--base", "HEAD~1", *BRIEF, PYTHONPATH=path)
    assert run.code == 5, run.text()


def test_a_gate_judges_a_head_that_computes_other_losses(repository: GitRepository) -> None:
    repository.commit({"train.py": SCRIPT.replace("weights**2", "3.0 * weights**2"), "cost.py": SLOW})
    run = run_devbench(repository.folder, "gate", "train.py", "--base", "HEAD~1", *BRIEF)
    assert run.code == 5, run.text()
    assert "first losses" in run.text()
    assert "slower: train of head on cpu, as-written takes" in run.text()


def test_a_bisection_of_commits_skips_what_does_not_run_and_continues_where_it_ended(repository: GitRepository) -> None:
    good = repository.git("rev-parse", "HEAD")
    repository.commit({"cost.py": BROKEN})
    slow = repository.commit({"cost.py": SLOW})
    options = ("bisect", "train.py", "--good", good, "--bad", "HEAD", *BRIEF, "--json")
    run = run_devbench(repository.folder, *options)
    assert run.code == 0, run.text()
    bisection = json.loads(run.out)["bisection"]
    (found,) = bisection["slow_downs"]
    assert found["first_bad"] == slow
    assert found["last_good"] == good
    assert len(found["skipped"]) == 1
    assert found["ratio"]["value"] > 1.5
    (broken,) = (race for race in bisection["races"] if race["verdict"] == "skipped")
    assert "cost was moved" in broken["reason"]
    again = json.loads(run_devbench(repository.folder, *options).out)["bisection"]
    settled = [race for race in bisection["races"] if race["verdict"] == "bad"]
    assert again["slow_downs"] == bisection["slow_downs"]
    assert [race for race in again["races"] if race["verdict"] == "bad"] == settled
    assert "\n" not in repository.git("worktree", "list")


def test_two_folders_run_with_their_own_modules(tmp_path: Path) -> None:
    for name, text in (("base", FAST), ("head", SLOW)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(SCRIPT)
        (tmp_path / name / "cost.py").write_text(text)
    run = run_devbench(tmp_path, "run", "base/train.py", "head/train.py", "--compare", *BRIEF)
    assert run.code == 0, run.text()
    base, head = run.results
    assert (base.spec.checkout, head.spec.checkout) == ("base", "head")
    assert "slower: head takes" in run.text()
