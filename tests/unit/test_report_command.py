"""`devbench report`: what it writes, where, and its exit codes."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from synthetic import folder, measured
from typer.testing import CliRunner

import bench
from bench.cli.app import app
from bench.version import __version__

pytestmark = pytest.mark.once


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return folder(tmp_path / "results", measured("1", [0.1] * 3), measured("2", [0.0981] * 3, loop="fit"))


def report(monkeypatch: pytest.MonkeyPatch, *words: str) -> Any:
    monkeypatch.setattr(sys, "argv", ["devbench", "report", *words])
    return CliRunner().invoke(app, ["report", *words])


def test_by_default_report_writes_an_html_file_and_prints_its_name(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = report(monkeypatch, "results")
    assert (command.exit_code, command.stdout, command.stderr) == (
        0,
        "",
        "report: report.html. Open it in a browser.\n",
    )
    text = Path("report.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert f"devbench {__version__}" in text
    assert [path.name for path in results.parent.iterdir() if path.name.endswith(".tmp")] == []


@pytest.mark.parametrize(("form", "begins"), [("markdown", "## devbench: results\n"), ("csv", "id,key,group,")])
def test_the_other_formats_go_to_stdout_or_into_a_file(
    results: Path, monkeypatch: pytest.MonkeyPatch, form: str, begins: str
) -> None:
    command = report(monkeypatch, "results", "--format", form)
    assert command.exit_code == 0
    assert command.stdout.startswith(begins)
    assert report(monkeypatch, "results", "--format", form, "--output", "it").stdout == ""
    assert Path("it").read_text(encoding="utf-8") == command.stdout
    assert results.is_dir()


def test_csv_and_markdown_need_no_extra_package(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("vl_convert", "jinja2"):
        monkeypatch.setitem(sys.modules, name, None)
    assert len(list(csv.reader(report(monkeypatch, "results", "--format", "csv").stdout.splitlines()))) > 50
    assert "fit" in report(monkeypatch, "results", "--format", "markdown").stdout
    command = report(monkeypatch, str(results))
    assert command.exit_code == 2
    assert "pip install '.[report]'" in command.stderr
    assert not Path("report.html").exists()


def test_the_json_document_names_the_file(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = report(monkeypatch, "results", "--json", "--output", "page.html")
    size = Path("page.html").stat().st_size
    assert json.loads(command.stdout) == {"report": {"file": "page.html", "format": "html", "bytes": size}}
    assert results.is_dir()


@pytest.mark.parametrize("form", ["markdown", "csv"])
def test_json_and_a_report_cannot_both_go_to_stdout(results: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    command = report(monkeypatch, "results", "--json", "--format", form)
    assert command.exit_code == 2
    assert json.loads(command.stdout)["error"]["hint"] == "Set a file with --output."
    assert results.is_dir()


def test_the_threshold_decides_what_counts_as_the_same(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "same: 'fit' takes" in report(monkeypatch, "results", "--format", "markdown").stdout
    stricter = report(monkeypatch, str(results), "--format", "markdown", "--threshold", "1%").stdout
    assert "as fast as 'as-written' per step" in stricter
    assert "'fit' is 1.0194 times" in stricter


@pytest.mark.parametrize("form", ["html", "markdown", "csv"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none"], "folder none does not exist"),
        (["empty"], "no results in empty"),
        (["cut"], "is not a complete JSON document"),
        (["newer"], "was written by a newer devbench"),
        (["older"], "was written by an older devbench (schema 1)"),
        (["results", "--output", "none/it"], "cannot write"),
    ],
)
def test_an_error_exits_with_2_and_keeps_an_older_report(
    results: Path, monkeypatch: pytest.MonkeyPatch, form: str, words: list[str], message: str
) -> None:
    Path("empty").mkdir()
    for name, text in (
        ("cut", '{"schema_version": 1, '),
        ("newer", '{"schema_version": 99}'),
        ("older", '{"schema_version": 1}'),
    ):
        Path(name).mkdir()
        (Path(name) / "x.json").write_text(text, encoding="utf-8")
    old = results.parent / "report.html"
    old.write_text("old", encoding="utf-8")
    command = report(
        monkeypatch, *words, "--format", form, *(() if "--output" in words else ("--output", "report.html"))
    )
    assert command.exit_code == 2
    assert message in command.stderr
    assert old.read_text(encoding="utf-8") == "old"
    assert [path.name for path in results.parent.iterdir() if path.name.endswith(".tmp")] == []


def test_report_loads_no_tensorflow_and_loads_charts_only_for_html(results: Path) -> None:
    code = "import sys; sys.argv[1:] = ['report', 'results', '--format', 'markdown']; from bench.__main__ import main\n"
    code += "try: main()\nexcept SystemExit as end: assert not end.code\n"
    code += "print(*{'tensorflow', 'keras', 'vl_convert', 'jinja2'} & set(sys.modules), file=sys.stderr)"
    environment = {**os.environ, "PYTHONPATH": str(Path(bench.__file__).parent.parent), "PYTHONIOENCODING": "utf-8"}
    arguments = [sys.executable, "-c", code]
    process = subprocess.run(arguments, env=environment, capture_output=True, text=True, encoding="utf-8", check=True)
    assert process.stderr.strip() == ""
    assert results.is_dir()
