"""A program at another commit has its own files, and the data of the working tree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from git_repository import SCRIPT, GitRepository, project

from bench.config.settings import RunSettings
from bench.errors import UsageError
from bench.machine import git_worktree
from bench.session.script_folder import ScriptFolder
from bench.study import checkout
from bench.study.plan import spec_of_settings
from bench.worker.protocol import Start
from bench.worker.start_up import import_own_modules

pytestmark = pytest.mark.once


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    """Return a repository with two commits. It is the working folder."""
    made = project(tmp_path / "project")
    monkeypatch.chdir(made.folder)
    return made


def test_another_commit_has_its_own_files_and_the_data_that_git_does_not_track(repository: GitRepository) -> None:
    (repository.folder / "data").mkdir()
    (repository.folder / "data" / "rows.csv").write_text("1,2\n")
    (repository.folder / "sub" / "weights.bin").write_text("w")
    commit = checkout.commit_of(repository.folder, "HEAD~1")
    with checkout.at(repository.folder, Path("sub/train.py"), commit, "base", Path("results")) as program:
        assert program.parent.parent.name == "base"
        assert (program.parent / "helper.py").read_text() == "NUMBER = 1\n"
        assert (program.parent.parent / "data" / "rows.csv").read_text() == "1,2\n"
        assert (program.parent / "weights.bin").read_text() == "w"
    assert not program.exists()
    assert repository.git("worktree", "list").count("\n") == 0


@pytest.mark.parametrize("current", [".", "sub"])
def test_a_script_of_another_worktree_runs_in_the_folder_that_corresponds_to_the_current_one(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, current: str
) -> None:
    repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "other"), "HEAD~1")
    monkeypatch.chdir(repository.folder / current)
    script = tmp_path / "other" / "sub" / "train.py"
    spec = spec_of_settings("train", RunSettings()).model_copy(update={"file": str(script)})
    assert ScriptFolder.of(spec, None, tmp_path / "results").root == tmp_path / "other" / current


def test_a_script_of_another_commit_cannot_change_the_data_that_git_does_not_track(
    repository: GitRepository, tmp_path: Path
) -> None:
    data = repository.folder / "data" / "rows.csv"
    data.parent.mkdir()
    data.write_text("1,2\n")
    with checkout.at(repository.folder, Path("sub/train.py"), "HEAD~1", "base", tmp_path / "results") as program:
        spec = spec_of_settings("train", RunSettings()).model_copy(update={"file": str(program)})
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        folder = ScriptFolder.of(spec, None, tmp_path / "results")
        _, working = folder.prepare(scratch)
        assert (working / "data" / "rows.csv").read_text() == "1,2\n"
        (working / "data" / "rows.csv").write_text("changed\n")
        (working / "data" / "new.csv").write_text("new\n")
    assert data.read_text() == "1,2\n"
    assert [path.name for path in data.parent.iterdir()] == ["rows.csv"]


def test_a_commit_without_a_folder_gets_the_untracked_files_in_it(repository: GitRepository, tmp_path: Path) -> None:
    results = repository.folder / "data" / "results"
    results.mkdir(parents=True)
    (repository.folder / "data" / "rows.csv").write_text("1,2\n")
    repository.commit({"assets/README": "", ".gitignore": "data/\n*.bin\n"})
    (repository.folder / "assets" / "weights.bin").write_text("w")
    with checkout.at(repository.folder, Path("sub/train.py"), "HEAD~1", "base", results) as program:
        base = program.parent.parent
        assert (base / "assets" / "weights.bin").read_text() == "w"
        assert [path.name for path in (base / "data").iterdir()] == ["rows.csv"]


def test_a_commit_has_its_submodules(repository: GitRepository, tmp_path: Path) -> None:
    library = GitRepository(tmp_path / "library")
    library.commit({"parts.py": "NUMBER = 1\n", ".gitignore": "*.csv\n"})
    allowed = ("-c", "protocol.file.allow=always")
    repository.git(*allowed, "submodule", "--quiet", "add", str(library.folder), "libs/parts")
    repository.commit({})
    library.commit({"parts.py": "NUMBER = 2\n"})
    repository.git(*allowed, "submodule", "--quiet", "update", "--remote")
    repository.commit({})
    (repository.folder / "libs" / "parts" / "rows.csv").write_text("1,2\n")
    with checkout.at(repository.folder, Path("sub/train.py"), "HEAD~1", "base", tmp_path / "results") as program:
        parts = program.parent.parent / "libs" / "parts"
        assert (parts / "parts.py").read_text() == "NUMBER = 1\n"
        assert (parts / "rows.csv").read_text() == "1,2\n"
    assert "\n" not in repository.git("worktree", "list")
    assert "\n" not in repository.git("-C", "libs/parts", "worktree", "list")


def test_the_base_is_the_commit_at_which_the_head_branched_off(repository: GitRepository) -> None:
    start = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "--quiet", "-b", "change")
    head = repository.commit({"sub/helper.py": "NUMBER = 3\n"})
    repository.git("checkout", "--quiet", "main")
    main = repository.commit({"sub/helper.py": "NUMBER = 4\n"})
    assert checkout.branch_point(repository.folder, main, head) == start
    assert checkout.branch_point(repository.folder, start, head) == start
    assert checkout.branch_point(repository.folder, head, start) == head  # an older commit is checked out


def test_a_worker_of_a_workload_runs_in_the_folder_of_its_own_commit(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository.folder / "sub")
    with checkout.at(repository.folder, Path("train.py"), "HEAD~1", "base", tmp_path / "results") as program:
        spec = spec_of_settings("train", RunSettings()).model_copy(update={"file": str(program), "checkout": "base"})
        monkeypatch.setattr(sys, "path", [*sys.path])
        import_own_modules(Start(spec=spec, spawned=0.0))
        assert Path.cwd() == program.parent
        monkeypatch.chdir(repository.folder)


def test_a_folder_has_no_counterpart_in_another_repository(repository: GitRepository, tmp_path: Path) -> None:
    other = GitRepository(tmp_path / "stranger")
    other.commit({"sub/train.py": SCRIPT})
    assert git_worktree.counterpart(repository.folder / "sub", other.folder / "sub" / "train.py") is None
    assert git_worktree.counterpart(repository.folder / "sub", tmp_path / "train.py") is None


def test_commits_are_listed_from_the_good_end_to_the_bad_one(repository: GitRepository) -> None:
    commits = [repository.commit({"note.txt": str(number)}) for number in range(3)]
    assert checkout.commits(repository.folder, "HEAD~2", "main") == commits
    with pytest.raises(UsageError, match="HEAD is not an ancestor of HEAD~1"):
        checkout.commits(repository.folder, "HEAD", "HEAD~1")


def test_each_commit_of_a_search_contains_the_good_one(repository: GitRepository) -> None:
    repository.git("checkout", "--quiet", "-b", "change")
    good, after = (repository.commit({"sub/helper.py": f"NUMBER = {number}\n"}) for number in (3, 4))
    repository.git("checkout", "--quiet", "main")
    main = [repository.commit({"note.txt": str(number)}) for number in range(2)]
    repository.git("merge", "--quiet", "--no-edit", "change")
    merge, last = repository.git("rev-parse", "HEAD"), repository.commit({"note.txt": "last"})
    assert checkout.commits(repository.folder, good, "main") == [good, after, merge, last]
    assert checkout.commits(repository.folder, main[0], "main") == [*main, merge, last]


def test_the_history_of_a_gate_ends_with_the_head(repository: GitRepository) -> None:
    program = repository.folder / "sub" / "train.py"
    first, second = (repository.git("rev-parse", name) for name in ("HEAD~1", "HEAD"))
    assert checkout.sides(program, "HEAD~1").history == [first, second]
    assert checkout.sides(program, "HEAD").history == [second]
    repository.git("checkout", "--quiet", "HEAD~1")
    assert checkout.sides(program, "main").history == [second, first]


def test_a_checkout_leaves_the_index_of_a_git_hook_alone_and_runs_no_hook(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = repository.folder / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 3\n")
    hook.chmod(0o755)
    index = repository.folder / ".git" / "index"
    before = index.read_bytes()
    monkeypatch.setenv("GIT_DIR", str(repository.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(index))
    with checkout.at(repository.folder, Path("sub/train.py"), "HEAD~1", "base", tmp_path / "results") as program:
        assert (program.parent / "helper.py").read_text() == "NUMBER = 1\n"
    assert index.read_bytes() == before


def test_worktrees_of_a_process_that_was_killed_are_removed(repository: GitRepository, tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f"{checkout.PREFIX}{ended.pid}-abc" / "base"
    kept = tmp_path / f"{checkout.PREFIX}{os.getpid()}-abc" / "base"
    users = tmp_path / "mine" / "base"
    for folder in (left, kept, users):
        repository.git("worktree", "add", "--quiet", "--detach", str(folder))
    with checkout.at(repository.folder, Path("sub/train.py"), "HEAD~1", "base", tmp_path / "results"):
        pass
    assert not left.parent.exists()
    listed = repository.git("worktree", "list", "--porcelain")
    assert [line.split(" ", 1)[1] for line in listed.splitlines() if line.startswith("worktree ")][1:] == [
        str(kept),
        str(users),
    ]


def test_names_may_have_spaces_and_letters_of_any_alphabet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = GitRepository(tmp_path / "größer als ")
    for number in (1, 2):
        repository.commit({" ein ordner/übung 1.py": f"print({number})\n"})
    monkeypatch.chdir(repository.folder)
    (repository.folder / " daten ä.csv").write_text("1,2\n")
    program = Path(" ein ordner/übung 1.py")
    root = checkout.root_of(program)
    with checkout.at(root, program, checkout.commit_of(root, "HEAD~1"), "base", tmp_path / "results") as file:
        assert file.read_text() == "print(1)\n"
        assert (file.parent.parent / " daten ä.csv").read_text() == "1,2\n"
    program.write_text("print(3)\n")
    with pytest.raises(UsageError, match=r"uncommitted changes in 1 file: .* ein ordner/übung 1.py"):
        checkout.require_clean(root)
