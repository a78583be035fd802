"""Shell completion: commands, options and values, in each shell, without loading TensorFlow."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bench
from bench import registry
from bench.cli.app import COMMANDS
from bench.cli.completion import WIDTH

pytestmark = pytest.mark.once

ROOT = Path(bench.__file__).parent.parent


def complete(shell: str, line: str) -> list[str]:
    """Ask for completions as a shell does, and return the candidates."""
    words = line.split(" ")
    protocol = {
        "_DEVBENCH_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    process = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "bench"],
        env={**os.environ, "PYTHONPATH": str(ROOT), **protocol},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert " tensorflow" not in process.stderr
    lines = process.stdout.splitlines()
    if shell == "zsh":
        return [candidate.partition("((")[2] or candidate for candidate in lines]
    return [candidate.partition("\t")[0] for candidate in lines]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "candidate"),
    [
        ("devbench re", "report"),
        ("devbench run --targ", "--target-error"),
        ("devbench run cif", "cifar"),
        ("devbench run cifar --backend c", "cpu"),
    ],
)
def test_each_shell_completes_commands_options_workloads_and_backends(shell: str, line: str, candidate: str) -> None:
    candidates = complete(shell, line)
    assert any(completion.strip('"').startswith(candidate) for completion in candidates), candidates


def test_an_empty_word_is_completed_to_all_commands() -> None:
    assert complete("bash", "devbench ") == list(COMMANDS)


def test_an_empty_word_after_run_is_completed_to_all_workloads() -> None:
    assert complete("fish", "devbench run ") == registry.names()


@pytest.mark.parametrize(
    ("line", "candidates"),
    [
        ("devbench run cifar --backend cpu,c", ["cpu,cuda"]),
        ("devbench run cifar --loop fit,re", ["fit,resident"]),
        ("devbench run cifar --change cache,pre", ["cache,prefetch"]),
        ("devbench run tabular --case l", ["large"]),
        ("devbench run cifar --dtype mixed", ["mixed_float16", "mixed_bfloat16"]),
        ("devbench hub ex", ["export"]),
        ("devbench report results --format m", ["markdown"]),
        ("devbench list mat", ["matmul"]),
    ],
)
def test_the_last_value_of_a_list_is_completed(line: str, candidates: list[str]) -> None:
    assert complete("bash", line) == candidates


@pytest.mark.parametrize("line", ["devbench run ./", "devbench compare res", "devbench run cifar --data-dir d"])
def test_file_names_are_completed_by_the_shell(line: str) -> None:
    assert "".join(complete("bash", line)) == ""
    assert complete("zsh", line) == ["_files"]


def test_no_summary_is_too_long_for_a_candidate() -> None:
    assert [name for name, (_, summary) in COMMANDS.items() if len(summary) > WIDTH] == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_after_the_completion_is_installed(tmp_path: Path) -> None:
    program = tmp_path / "devbench"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bench "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    script = """
    devbench --install-completion || exit
    source ~/.bashrc
    COMP_WORDS=(devbench expl) COMP_CWORD=1
    _devbench_completion devbench
    echo "completed: ${COMPREPLY[*]}"
    """
    process = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "bash completion installed" in process.stdout, process.stderr
    assert process.stdout.endswith("completed: explain\n")
