"""A script has no keyboard."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path

import pytest

from bench.model.spec import Script
from bench.worker.protocol import ScriptRun
from bench.worker.script.program import MOST_ANSWERS, ScriptProgram

pytestmark = pytest.mark.once


def run(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a script and return the notes about it."""
    file = folder / "asks.py"
    file.write_text(text)
    for owner, name in ((sys, "argv"), (sys, "path"), (sys, "stdout"), (sys, "stderr"), (builtins, "input")):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # restores it
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    notes: list[str] = []
    ScriptProgram(Script(), ScriptRun(file=str(file), folder=str(folder)), notes.append).run()
    return notes


def test_each_line_that_asks_for_input_has_one_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = run("for n in range(3):\n    input()\ninput('again? ')\n", tmp_path, monkeypatch)
    assert [note.partition(",")[0] for note in notes] == ["The script asked for input in asks.py"] * 2


def test_a_script_that_asks_until_it_gets_an_answer_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EOFError, match=r"asks for input again and again in asks\.py, line 1"):
        run("while input('y? ') != 'y': pass\n", tmp_path, monkeypatch)
    assert MOST_ANSWERS > 10


def test_a_script_may_wrap_its_output_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = (
        "import io, sys\n"
        "assert sys.stdout.name\n"
        "before = sys.stdout\n"
        "sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8')\n"
        "print('é', flush=True)\n"
        "sys.stdout.detach()\n"
        "sys.stdout = before\n"
    )
    run(text, tmp_path, monkeypatch)
    assert capfdbinary.readouterr().out.decode().strip() == "é"
