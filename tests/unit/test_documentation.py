"""Every page of the documentation: its links resolve, and its commands, settings and code are valid."""

from __future__ import annotations

import ast
import re
import tokenize
from pathlib import Path
from typing import Any

import pytest
import typer
from pages import (
    DOCS,
    PAGES,
    ROOT,
    anchors,
    command_lines,
    fences,
    first_column,
    links,
    rows,
    section,
    spans,
    words,
)

from bench import backends, registry
from bench.cli.app import COMMANDS, app
from bench.cli.app import load as load_command
from bench.config.base import FILE_VARIABLE
from bench.config.settings import RunSettings, load
from bench.errors import DevbenchError

pytestmark = pytest.mark.once

REFUSED: Any = typer.BadParameter.__mro__[1]
"""Click's UsageError. Some versions of Typer contain their own copy of Click."""

LINES = [(page, line) for page in PAGES for line in command_lines(page.read_text(encoding="utf-8"))]
PACKAGES = ("bench", "benchmarks", "charts", "dashboards", "docs", "images", "tests")
SOURCES = [path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]
TEXTS = [
    *sorted(path for path in (ROOT / "charts").rglob("*") if path.is_file() and path.suffix != ".py"),
    *(ROOT / "images" / name for name in ("base", "build", "devbench", "packages")),
    *sorted(ROOT.glob("Dockerfile.*")),
    *(ROOT / name for name in (".ci/run", ".pre-commit-config.yaml", "CITATION.cff")),
    *(ROOT / name for name in ("Makefile", "compose.yaml", "pyproject.toml")),
]
"""Files that are neither pages nor Python."""

SCANNED = {tokenize.NAME, tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
BLOCKS = [(page, fence) for page in PAGES for fence in fences(page.read_text(encoding="utf-8"))]


PLACEHOLDERS = ("./mine.py", "train.py", "train.ipynb", "old/train.py", "new/train.py")
"""Files that stand for a user's own."""


def parse(line: str) -> None:
    """Parse a command line as devbench does, and run nothing.

    Raises:
        Exception: devbench would refuse the line too.
    """
    variables, arguments = words(line)
    for name in variables:
        if name.startswith("DEVBENCH_") and name != FILE_VARIABLE:
            assert name in map(RunSettings.variable, RunSettings.model_fields), f"{name} is not a setting"
    group: Any = typer.main.get_command(app)
    if arguments[0].startswith("-"):  # parsing would run these options
        names = {name for parameter in group.params for name in parameter.opts} | {"-h", "--help"}
        assert set(arguments) <= names, f"devbench has no option {' '.join(arguments)}"
        return
    assert arguments[0] in COMMANDS, f"there is no command {arguments[0]}"
    if arguments[1:]:  # a command by itself is a mention, not a call
        parameters = load_command(arguments[0]).make_context(arguments[0], arguments[1:]).params
        workload = parameters.get("name") or "NAME"  # only `devbench list` has this parameter
        if not str(workload).isupper() and workload not in PLACEHOLDERS:
            registry.describe(workload)
        if "config" in parameters:
            names = {"config", *RunSettings.model_fields}  # Typer has checked all other options
            check_settings(
                parameters.pop("workloads", None) or [],
                {name: value for name, value in parameters.items() if name in names},
            )


def check_settings(names: list[str], options: dict[str, Any]) -> None:
    """Check settings and the names of workloads. A name in capitals is a placeholder. No file is run."""
    settings = load(options.pop("config"), **{name: value for name, value in options.items() if value not in ([], ())})
    for backend in settings.backend:
        backends.load(backend)
    for name in names:
        if name.endswith((".py", ".ipynb")):
            path = ROOT / name
            assert name in PLACEHOLDERS or registry.is_script(path) or registry.describe(path).offers
        elif not name.isupper():
            workload = registry.resolve(name, settings.param)
            assert set(settings.case) <= set(workload.cases), f"{name} lacks a case"
            for loop in settings.loop:
                assert registry.obstacle(workload.offers, workload.not_loops, loop) is None


@pytest.mark.parametrize(("page", "line"), LINES, ids=[f"{page.name}: {line}" for page, line in LINES])
def test_a_command_line_on_a_page_is_valid(
    page: Path, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parse(line)


@pytest.mark.parametrize(
    "line",
    [
        "devbench measure cifar",
        "devbench run",
        "devbench run cifar --fast",
        "devbench run cifa",
        "devbench run cifar --param batches=64",
        "devbench run cifar --param batch=0",
        "devbench run cifar --backend gpu",
        "devbench run cifar --loop steps",
        "devbench run transfer --loop fused",
        "devbench run tabular --case middle",
        "devbench run cifar --target-error 3",
        "devbench run examples/none.py",
        "devbench doctor --loop fit",
        "devbench list all",
        "devbench --fast",
        "DEVBENCH_BACKENDS=cpu devbench run cifar",
    ],
)
def test_a_command_line_that_devbench_refuses_is_not_valid(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    full = f"{line} --output here" if line == "devbench run" else line
    with pytest.raises((DevbenchError, AssertionError, REFUSED)):
        parse(full)


def test_command_lines_are_found_in_shell_blocks_in_consoles_and_in_text() -> None:
    page = """
Call `devbench run cifar`, or `devbench` alone; `devbench.toml` is a file. `X=1 devbench list` has a variable.
```sh
make demo
.venv/bin/devbench run mnist --backend cpu \\
  --json > out.json  # a comment
```
```console
$ devbench doctor
devbench shows this
```
```text
devbench is a word here
```
"""
    lines = command_lines(page)
    assert [words(line) for line in lines] == [
        ([], ["run", "cifar"]),
        (["X"], ["list"]),
        ([], ["run", "mnist", "--backend", "cpu", "--json"]),
        ([], ["doctor"]),
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_resolves_to_a_file_and_a_heading(page: Path) -> None:
    for target in links(page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file.read_text(encoding="utf-8")), f"{page.name} links to {target}"


def test_links_to_files_headings_and_pages_are_found() -> None:
    assert "../bench/model/schema.json" in links(DOCS["result"])
    assert "#settings" in links(DOCS["reference"])
    assert "measuring.md#data" in links(DOCS["reference"])


def test_the_index_lists_every_page() -> None:
    assert {f"{name}.md" for name in DOCS if name != "index"} <= set(links(DOCS["index"]))


def test_python_on_a_page_compiles() -> None:
    for page, fence in BLOCKS:
        if fence.language == "python":
            compile(fence.text, page.name, "exec")


def test_a_settings_file_on_a_page_loads(tmp_path: Path) -> None:
    for number, (_, fence) in enumerate(BLOCKS):
        if fence.language == "toml":
            file = tmp_path / f"{number}.toml"
            file.write_text(fence.text, encoding="utf-8")
            load(file)


def test_make_bench_runs_every_program_of_the_benchmarks_page() -> None:
    (line,) = re.findall(r"^BENCHMARKS := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    run = {words.partition("/")[0] for words in line.split()}
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    claims = page.partition("| program | question")[2].partition("\n\n")[0]
    assert run == set(re.findall(r"^\| `(\w+)` \|", claims, re.MULTILINE))
    assert all((ROOT / "benchmarks" / f"{name}.py").is_file() for name in run)


def test_the_architecture_page_describes_every_folder_and_gives_its_layer() -> None:
    folders = {path.parent.name for path in (ROOT / "bench").glob("*/__init__.py")}
    assert first_column(section(DOCS["architecture"], "What each folder is for")) == folders
    layers = {name for row in rows(section(DOCS["architecture"], "What may import what")) for name in spans(row[1])}
    assert folders <= layers


def test_contributing_explains_every_marker_of_a_test() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (markers,) = re.findall(r"^markers = \[\n(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    documented = first_column(section((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), "Tests"))
    assert {name.partition("(")[0] for name in documented} == set(re.findall(r'^    "(\w+)', markers, re.MULTILINE))


def test_every_alert_is_documented() -> None:
    rules = (ROOT / "charts" / "devbench" / "rules" / "alerting.yaml").read_text(encoding="utf-8")
    alerts = set(re.findall(r"- alert: (\w+)", rules))
    assert alerts
    assert first_column(section(DOCS["metrics"], "Dashboards and alerts")) == alerts


def test_the_walk_of_the_settings_follows_the_code_in_at_most_20_stops_and_never_climbs() -> None:
    layers = {
        name: int(row[0])
        for row in rows(section(DOCS["architecture"], "What may import what"))
        for name in spans(row[1])
    }
    stops = [(spans(row[1])[0], links(row[2])[0]) for row in rows(section(DOCS["architecture"], WALK))]
    assert 10 <= len(stops) <= 20
    callers: list[str] = []
    layer = 0
    for folder, link in stops:
        name = module((ROOT / "docs" / link).resolve())
        assert name.split(".")[1] == folder
        assert layers[folder] >= layer, f"{name} is on a higher layer than the stop before it"
        layer = layers[folder]
        while callers and name not in mentioned(callers[-1]):
            callers.pop()  # the caller has returned
        assert callers or link == stops[0][1], f"no stop before {name} that has not returned calls it"
        callers.append(name)


WALK = "How settings reach the worker"


def module(path: Path) -> str:
    """Return the name of a module, whose file must exist."""
    assert path.is_file(), f"{path} does not exist"
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def mentioned(name: str) -> set[str]:
    """Return the modules that a module imports, at module level or in functions, or names in a string."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(ROOT.joinpath(*name.split(".")).with_suffix(".py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
    return names


def test_the_glossary_defines_each_term_once_in_alphabetical_order() -> None:
    terms = [row[0] for row in rows(DOCS["glossary"])]
    assert terms == sorted(set(terms), key=str.lower)


AVOIDED = re.compile(
    r"\b(t(ake|akes|ook) turns|(a|its|whose) turn|cohorts?|rungs?|counterfactuals?|cure[ds]?|doubt(s|ful)?|proofs?"
    r"|roofs?)\b",
    re.IGNORECASE,
)
"""Words for which the glossary has other terms."""

ALLOWED = {
    "tests/unit/test_documentation.py": "defines the words",
    "CONTRIBUTING.md": "shows words to avoid",
}
"""Files that may use the words, and why."""

PROSE = [*PAGES, *(path for path in TEXTS if path not in PAGES)]


def avoided(text: str) -> list[str]:
    """Return the avoided words in a text or in the name of a variable, function or file."""
    return [match[0] for match in AVOIDED.finditer(text.replace("_", " "))]


def is_allowed(path: Path) -> bool:
    """Return whether a file may use avoided words."""
    return path.relative_to(ROOT).as_posix() in ALLOWED


def test_the_scan_finds_avoided_words_in_texts_and_names() -> None:
    assert avoided("They take turns on each rung.") == ["take turns", "rung"]
    assert avoided("test_a_cohort_has_no_proof") == ["cohort", "proof"]
    assert avoided("a roofline, a return, uncured") == []


@pytest.mark.parametrize("path", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_page_or_template_uses_a_word_that_the_glossary_replaces(path: Path) -> None:
    if not is_allowed(path):
        assert avoided(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in SOURCES}), ids=lambda path: str(path.relative_to(ROOT))
)
def test_no_name_comment_or_string_uses_a_word_that_the_glossary_replaces(folder: Path) -> None:
    used = []
    for path in sorted(folder.glob("*.py")):
        if is_allowed(path):
            continue
        used += [(path.name, 0, word) for word in avoided(path.stem)]
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                if token.type in SCANNED:
                    used += [(path.name, token.start[0], word) for word in avoided(token.string)]
    assert used == []
