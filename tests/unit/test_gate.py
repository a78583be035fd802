"""`devbench gate` refuses what it cannot race, and says what it compares."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from git_repository import SCRIPT, GitRepository, project
from typer.testing import CliRunner

from bench.analyse.comparable import differences
from bench.analyse.outcome import Outcome
from bench.analyse.pairing import is_fair, pair
from bench.cli.app import app
from bench.config.settings import RunSettings, load
from bench.errors import UsageError
from bench.model.result import Result
from bench.publish.recorder import Recorder, recording
from bench.render.sentences import gate as gate_text
from bench.session.results import new_results
from bench.study import checkout
from bench.study.gate import gate
from bench.study.plan import groups, spec_of_settings
from bench.study.run import run_design

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    """Return a repository with two commits. It is the working folder."""
    made = project(tmp_path / "project")
    monkeypatch.chdir(made.folder)
    return made


def refusal(*words: str) -> str:
    """Return the message of a gate that ends with exit code 2."""
    result = CliRunner().invoke(app, ["gate", *words])
    assert result.exit_code == 2, result.output
    return " ".join(result.stderr.split())


def test_a_syntax_error_is_reported_with_its_side_and_line(repository: GitRepository) -> None:
    repository.commit({"sub/train.py": "import helper\nprint(\n"})
    assert "the head has a syntax error in train.py, line 2" in refusal("sub/train.py", "--base", "HEAD~1")
    repository.commit({"sub/train.py": SCRIPT})
    assert "the base (HEAD~1) has a syntax error in train.py" in refusal("sub/train.py", "--base", "HEAD~1")


def test_a_base_that_does_not_exist_is_refused(repository: GitRepository) -> None:
    message = refusal("sub/train.py", "--base", "v9")
    assert "the repository has no commit v9" in message
    assert "git fetch origin" in message
    assert "the repository has no commit --all" in refusal("sub/train.py", "--base=--all")
    repository.git("mv", "sub/train.py", "sub/other.py")
    repository.commit({})
    assert "sub/other.py does not exist in commit" in refusal("sub/other.py", "--base", "HEAD~1")


def test_a_shallow_clone_is_refused_with_the_command_that_completes_it(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = repository.folder.as_uri()
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", url, str(tmp_path / "shallow")], check=True)
    monkeypatch.chdir(tmp_path / "shallow")
    message = refusal("sub/train.py", "--base", "HEAD~1")
    assert "this shallow clone has no commit HEAD~1" in message
    assert "git fetch --unshallow" in message


@pytest.mark.parametrize("depth", ["1", "2"])
@pytest.mark.parametrize("base", ["origin/main", "tip"])
def test_the_action_fetches_the_commit_at_which_the_head_of_a_shallow_clone_branched_off(
    repository: GitRepository, tmp_path: Path, depth: str, base: str
) -> None:
    import yaml  # the environment with TensorFlow 2.10 lacks it

    start = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "--quiet", "-b", "change")
    for number in range(3):
        repository.commit({"sub/helper.py": f"NUMBER = 1{number}\n"})
    repository.git("checkout", "--quiet", "main")
    tip = [repository.commit({"note.txt": str(number)}) for number in range(3)][-1]
    clone = tmp_path / "shallow"
    options = ["--quiet", "--depth", depth, "--branch", "change"]
    subprocess.run(["git", "clone", *options, repository.folder.as_uri(), str(clone)], check=True)
    if base == "tip":  # a commit that is there, but not its history
        subprocess.run(["git", "fetch", "--quiet", "--depth", depth, "origin", tip], cwd=clone, check=True)
        base = tip
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (step,) = (step for step in action["runs"]["steps"] if step["name"] == "Fetch the base")
    bash = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
    subprocess.run(bash, cwd=clone, env={**os.environ, "BASE": base}, check=True)
    head = checkout.commit_of(clone, "HEAD")
    assert checkout.branch_point(clone, checkout.commit_of(clone, base), head) == start


def test_changes_that_are_not_committed_are_refused(repository: GitRepository) -> None:
    (repository.folder / "sub" / "helper.py").write_text("NUMBER = 3\n")
    assert "uncommitted changes in 1 file: sub/helper.py" in refusal("sub/train.py", "--base", "HEAD~1")


def test_a_gate_needs_a_program_and_a_working_folder_in_its_repository(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no file at sub/trian.py" in refusal("sub/trian.py", "--base", "HEAD~1")
    monkeypatch.chdir(repository.folder.parent)
    message = refusal("project/sub/train.py", "--base", "HEAD~1")
    assert "the working folder is not in the repository" in message


def test_a_program_outside_a_repository_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    assert "train.py is not in a git repository" in refusal("train.py", "--base", "HEAD~1")


WORKLOAD = """
import json
from pathlib import Path
from pydantic import BaseModel

class Params(BaseModel):
    width: int = 4
    batch: int = 8

CASES = json.loads(Path("cases.json").read_text())

def step(p, ctx):
    return lambda: None
"""


def raced(repository: GitRepository, output: Path, **options: Any) -> list[list[Result]]:
    """Return the results of a gate of HEAD~1 and HEAD before anything is measured: those of the base, and the head."""
    settings = RunSettings(output=output, compare=True, **options)
    with ExitStack() as stack:
        files = [
            stack.enter_context(checkout.at(repository.folder, Path("wide.py"), commit, name, output))
            for commit, name in (("HEAD~1", "base"), ("HEAD", "head"))
        ]
        (group,) = groups(files, settings)
        with recording(settings) as recorder:
            results = new_results(group, settings, run_design(group), recorder)
    return [[result for result in results if result.spec.file == str(file)] for file in files]


@pytest.mark.parametrize("change", ["# another text\n", ""])
@pytest.mark.parametrize(
    "options", [{}, {"case": ["small", "large"], "param": {"batch": "9"}}, {"vary": {"batch": "2,3"}}]
)
def test_each_case_of_a_workload_is_compared_with_the_same_case_of_the_base(
    repository: GitRepository, tmp_path: Path, change: str, options: dict[str, Any]
) -> None:
    small, large = {"width": 1}, {"width": 9}
    repository.commit({"wide.py": WORKLOAD, "cases.json": json.dumps({"small": small, "large": large})})
    changed = {"small": small, "large": {"width": 7}}
    repository.commit({"wide.py": WORKLOAD + change, "cases.json": json.dumps(changed)})
    base, head = raced(repository, tmp_path / "results", **options)
    assert {(result.spec.case, result.spec.params["width"]) for result in base} == {("small", 1), ("large", 9)}
    assert {(result.spec.case, result.spec.params["width"]) for result in head} == {("small", 1), ("large", 7)}
    found = pair([base, head])
    assert found.unchecked == []
    assert len(found.pairs) == len(base)
    for one, other in found.pairs:
        assert (one.spec.case, one.spec.params["batch"]) == (other.spec.case, other.spec.params["batch"])
        assert is_fair(differences(one, other))


@pytest.fixture
def not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """End each gate when both commits are checked out."""

    def run(files: object, settings: RunSettings, recorder: object, deadline: float, over_epochs: bool) -> None:
        raise UsageError("it is not run")

    monkeypatch.setattr("bench.study.gate.run", run)


@pytest.mark.usefixtures("not_run")
def test_a_gate_says_how_the_commits_belong_together(repository: GitRepository) -> None:
    message = refusal("sub/train.py", "--base", "HEAD")
    assert "note: HEAD is the current commit, so the gate races this" in message
    assert "note: note:" not in message
    repository.git("checkout", "--quiet", "--orphan", "other")
    repository.commit({})
    message = refusal("sub/train.py", "--base", "main")
    assert "note: the base is main itself, with all of its commits. This repository does not have the" in message
    repository.git("checkout", "--quiet", "main~1")
    message = refusal("sub/train.py", "--base", "main")
    assert "note: main is newer than the current commit and contains it." in message
    assert "it is not run" in message


@pytest.mark.usefixtures("not_run")
def test_a_gate_names_the_other_bases_of_branches_that_were_merged_crosswise(repository: GitRepository) -> None:
    main = repository.commit({"main.txt": ""})
    repository.git("checkout", "--quiet", "-b", "change", "HEAD~1")
    change = repository.commit({"change.txt": ""})
    repository.git("merge", "--quiet", "--no-edit", main)
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-edit", change)
    repository.git("checkout", "--quiet", "change")
    message = refusal("sub/train.py", "--base", "main")
    assert "the base could also be" in message
    assert main[:12] in message
    assert change[:12] in message


@pytest.mark.usefixtures("not_run")
def test_a_gate_says_what_both_commits_share(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"requirements/train.txt": "keras==3\n", "uv.lock": "", "src/mine/__init__.py": "", "notes": ""})
    for name, kind in (("copied", {}), ("linked", {"editable": True})):
        info = tmp_path / "site" / f"{name}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "RECORD").write_text(f"{info.name}/METADATA,,\nmine/__init__.py,,\n")
        (info / "direct_url.json").write_text(json.dumps({"url": repository.folder.as_uri(), "dir_info": kind}))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    message = refusal("sub/train.py", "--base", "HEAD~1")
    assert "although these files differ: requirements/train.txt, uv.lock" in message
    assert "note: both commits import the installed copy of copied." in message
    assert "linked" not in message
    monkeypatch.setenv("PYTHONPATH", str(repository.folder / "src"))
    assert "installed copy" not in refusal("sub/train.py", "--base", "HEAD~1")


def test_a_gate_that_measures_nothing_says_why_in_its_summary(repository: GitRepository, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    refusal("sub/train.py", "--base", "v9", "--summary", str(summary))
    repository.commit({"sub/train.py": "print(\n"})
    refusal("sub/train.py", "--base", "HEAD~1", "--summary", str(summary))
    text = summary.read_text()
    assert text.count("## devbench gate: no verdict\n\n") == 2
    assert "the repository has no commit v9" in text
    assert "the head has a syntax error in train.py, line 1" in text


@pytest.mark.usefixtures("not_run")
def test_a_gate_resolves_its_commits_once(repository: GitRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve, resolved = checkout.commit_of, []

    def commit_of(root: Path, reference: str) -> str:
        resolved.append(reference)
        return resolve(root, reference)

    monkeypatch.setattr(checkout, "commit_of", commit_of)
    refusal("sub/train.py", "--base", "HEAD~1")
    assert resolved == ["HEAD~1", "HEAD"]


def test_the_slower_case_is_explained(repository: GitRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    explained: list[RunSettings] = []
    spec = spec_of_settings("train", RunSettings()).model_copy(update={"case": "large", "backend": "cuda"})
    comparisons = [
        SimpleNamespace(verdict="slower", unfair=unfair, other=SimpleNamespace(id=name))
        for name, unfair in (("a", ["another device"]), ("b", []))
    ]
    results = [
        SimpleNamespace(id="a", spec=spec_of_settings("train", RunSettings())),
        SimpleNamespace(id="b", spec=spec),
    ]
    monkeypatch.setattr("bench.study.gate.run", lambda *rest, **more: SimpleNamespace(results=results))
    monkeypatch.setattr("bench.study.gate.pair", lambda sides: None)
    monkeypatch.setattr(Outcome, "of", lambda *rest: SimpleNamespace(comparisons=comparisons))
    monkeypatch.setattr("bench.study.gate.explain", lambda program, settings, recorder: explained.append(settings))
    gate(Path("sub/train.py"), "HEAD~1", RunSettings(backend="cpu,cuda"), explain_slower=True)
    (settings,) = explained
    assert (settings.backend, settings.case) == (("cuda",), ("large",))


def test_the_time_limit_holds_for_the_whole_gate(repository: GitRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, float] = {}

    def run(files: object, settings: RunSettings, recorder: object, deadline: float, over_epochs: bool) -> None:
        given.update(max_time=settings.max_time, seconds=deadline - time.monotonic())
        raise UsageError("it is not run")

    monkeypatch.setattr("bench.study.gate.run", run)
    for options, seconds in (((), 300), (("--max-time", "40s"), 40)):
        assert "it is not run" in refusal("sub/train.py", "--base", "HEAD~1", *options)
        assert given["max_time"] == seconds
        assert seconds - 30 < given["seconds"] < seconds  # the checkouts take a part of it


def test_a_gate_measures_until_the_verdict_on_the_steps_because_it_judges_steps(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[bool] = []

    def run(files: object, settings: RunSettings, recorder: object, deadline: float, over_epochs: bool) -> None:
        given.append(over_epochs)
        raise UsageError("it is not run")

    monkeypatch.setattr("bench.study.gate.run", run)
    assert "it is not run" in refusal("sub/train.py", "--base", "HEAD~1")
    assert given == [False]


def test_a_gate_that_explains_the_head_is_one_run_at_the_hub(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []

    @contextmanager
    def reporting(settings: RunSettings, title: str, *_: object) -> Iterator[SimpleNamespace]:
        reported.append(title)
        yield SimpleNamespace(signum=None, cut_short=None)

    def run(
        files: object, settings: RunSettings, recorder: Recorder, deadline: float, over_epochs: bool
    ) -> SimpleNamespace:
        with recorder.reporting("run"):
            spec = SimpleNamespace(file="", backend="cpu", case=None, loop="as-written", env=None)
            return SimpleNamespace(results=[SimpleNamespace(id="head", spec=spec)])

    def explain(program: str, settings: RunSettings, recorder: Recorder) -> None:
        with recorder.reporting("explain"):
            reported.append(recorder.new_id())

    comparison = SimpleNamespace(verdict="slower", unfair=None, other=SimpleNamespace(id="head"))
    slower = SimpleNamespace(comparisons=[comparison])
    monkeypatch.setattr("bench.publish.recorder.reporting", reporting)
    monkeypatch.setattr("bench.study.gate.run", run)
    monkeypatch.setattr("bench.study.gate.explain", explain)
    monkeypatch.setattr("bench.study.gate.Outcome", SimpleNamespace(of=lambda *_: slower))
    settings = load(hub="http://hub.example", run_id="r", output=repository.folder.parent / "results")
    assert gate(Path("sub/train.py"), "HEAD~1", settings, explain_slower=True) == slower
    assert reported == ["gate train.py", "r-001"]


def test_the_summary_gives_the_false_alarms_of_the_published_runs() -> None:
    lines = (ROOT / "benchmarks" / "changes.jsonl").read_text(encoding="utf-8").splitlines()
    runs = [run for run in map(json.loads, lines) if run["kind"] == "gate" and not run["slower"]]
    assert len(runs) == gate_text.UNCHANGED_GATES
    assert sum(run["verdict"] == "slower" for run in runs) == gate_text.FALSE_ALARMS
    assert gate_text.false_alarms() == (
        f"False alarms: devbench's benchmark ran {len(runs)} gates without a change, and none raised an alarm."
    )
