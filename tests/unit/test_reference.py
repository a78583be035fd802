"""The documentation against the code: what is in the code is documented, and what is documented is in the code."""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from pages import DOCS, PAGES, ROOT, command_lines, first_column, rows, section, spans
from synthetic import result

from bench import errors, workloads
from bench.analyse import same_answer, summary
from bench.cli.app import COMMANDS, app
from bench.config.settings import FILE_VARIABLE, RunSettings, default, option, variable
from bench.datasets import download
from bench.datasets.files import SETS
from bench.model.result import PHASES, Failure, Result, Stop, Telemetry
from bench.model.spec import LOOPS
from bench.registry.user_file import FUNCTIONS
from bench.render.report import compose, markdown, selection
from bench.render.report.sections import steps
from bench.session import design, interleave, steady_state, stopping, worker_sample
from bench.worker import loops, protocol, rig, timed_loop
from bench.worker.diagnose import step_costs
from docs.__main__ import current, main
from docs.parts import PARTS, settings_table
from docs.result_fields import meaning, models
from docs.tables import NONE

pytestmark = pytest.mark.once

REFERENCE = DOCS["reference"]
MEASURING = DOCS["measuring"]
COMMAND: Any = typer.main.get_command(app)


def stands(word: str, text: str = REFERENCE) -> bool:
    """Return whether a text contains this word, not as a part of another."""
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def calls(folder: str = "bench") -> Iterator[ast.Call]:
    """Every call in the sources."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield from (
            node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
        )


def named(call: ast.Call) -> str:
    """The name of what is called, without what it belongs to."""
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def literals(function: str, keyword: str, place: int = 0) -> set[str]:
    """The strings that calls of a function give for one of its arguments."""
    found = set()
    for call in calls():
        if named(call) == function:
            given = [each.value for each in call.keywords if each.arg == keyword] or call.args[place : place + 1]
            found |= {each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    return found


def options(command: Any) -> set[str]:
    """All spellings of a command's options."""
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts) if name.startswith("-")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_generated_parts_of_a_page_are_up_to_date(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == current(page), "run: python -m docs"


def test_the_pages_hold_every_generated_part_and_the_example() -> None:
    text = "".join(DOCS.values())
    assert [name for name, part in PARTS.items() if part() not in text] == []
    assert (ROOT / "examples" / "mine.py").read_text(encoding="utf-8") in text


def test_a_generated_part_that_is_out_of_date_is_reported_or_rewritten_and_the_rest_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, shown = tmp_path / "page.md", tmp_path / "shown.py"
    shown.write_text("x = 1\n")
    old = "Before\n<!-- generated: settings -->\nold\n<!-- end -->\n<!-- generated: shown.py -->\n<!-- end -->\nAfter\n"
    page.write_text(old)
    assert main(check=True, pages=[page]) == 1
    assert "Run: python -m docs" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == old
    assert main(pages=[page]) == 0
    settings = f"<!-- generated: settings -->\n{settings_table()}<!-- end -->\n"
    code = "<!-- generated: shown.py -->\n```python\nx = 1\n```\n<!-- end -->\n"
    assert page.read_text(encoding="utf-8") == f"Before\n{settings}{code}After\n"
    assert main(check=True, pages=[page]) == 0


@pytest.mark.parametrize("name", RunSettings.model_fields)
def test_a_settings_row_names_its_option_variable_key_default_and_meaning(name: str) -> None:
    field = RunSettings.model_fields[name]
    (row,) = (row for row in rows(section(REFERENCE, "Settings")) if len(row) == 5 and spans(row[2]) == [name])
    assert option(name) in spans(row[0])
    assert spans(row[1]) == [variable(name)]
    assert field.description is not None
    assert row[4].startswith(field.description)
    (shown,) = (each.help for each in COMMAND.get_command(None, "run").params if each.name == name)
    assert (f"default: {row[3]};" if row[3] != "–" else "") in shown
    assert ("default:" in shown) == (row[3] != "–")
    assert row[3] == (default(field) or "–")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_section_with_all_its_options(name: str) -> None:
    (text,) = re.findall(rf"^### devbench {name}\n(.*?)(?=^#|\Z)", section(REFERENCE, "Commands"), re.M | re.S)
    taken = {each for each in options(COMMAND.get_command(None, name)) if not each.startswith("--no-")}
    settings = {option(field) for field in RunSettings.model_fields}
    if "every [setting](#settings)" in text:
        assert settings <= taken
        taken -= settings
    elif "[settings of the hub]" in text:
        text += DOCS["hub"]
    assert {each for each in taken if not stands(each, text)} == set()


def test_the_programs_own_options_stand_on_the_page() -> None:
    assert {each for each in {*options(COMMAND), "-h", "--help"} if not stands(each)} == set()


def test_every_variable_that_is_read_stands_on_the_page() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "bench").rglob("*.py")]
    strings = {node.value for text in sources for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}
    known = {each for each in strings if isinstance(each, str) and re.fullmatch(r"DEVBENCH_[A-Z_]*[A-Z]", each)}
    assert {"DEVBENCH_DATA_URL", "DEVBENCH_TRACEBACK"} <= known
    assert {each for each in known | {FILE_VARIABLE} if not stands(each)} == set()


def test_the_exit_codes_are_those_of_the_errors() -> None:
    def below(kind: type[errors.DevbenchError]) -> Iterator[type[errors.DevbenchError]]:
        yield kind
        for each in kind.__subclasses__():
            yield from below(each)

    codes = {kind.exit_code for kind in below(errors.DevbenchError)} | {0}
    codes |= {errors.Interrupted(each).exit_code for each in (signal.SIGINT, signal.SIGTERM)}
    told = {int(code) for row in rows(section(REFERENCE, "Exit codes")) for code in row[0].split(", ")}
    assert told == codes


def test_the_loops_are_those_of_a_spec_in_their_order() -> None:
    assert [spans(row[0]) for row in rows(section(MEASURING, "Loops"))] == [[loop] for loop in LOOPS]


def test_the_phases_are_those_that_workers_report_in_their_order() -> None:
    assert [spans(row[0]) for row in rows(section(MEASURING, "Phases"))] == [[phase] for phase in PHASES]
    reported = literals("PhaseDone", "phase") | literals("phase", "name")
    assert reported == {*PHASES} - {"warm_up"}, "warm-up is the sum of its blocks; all else a worker reports"


def test_the_warnings_are_those_that_a_result_can_carry() -> None:
    known = literals("add_warning", "key", 1) | literals("ResultWarning", "key")
    assert first_column(section(REFERENCE, "Warnings")) == known


@pytest.mark.parametrize(
    ("key", "field", "whole"),
    [
        ("throttled", "throttled_seconds", 20.0),
        ("stolen", "stolen_seconds", 10.0),
        ("load", "load_before", 2.0),
        ("clocks", "gpu_sm_clock_spread", 1.0),
    ],
)
def test_a_warning_comes_from_where_the_page_says(key: str, field: str, whole: float) -> None:
    (row,) = (row for row in rows(section(REFERENCE, "Warnings")) if spans(row[0]) == [key])
    told = re.search(r"more than (\d+)%", row[1])
    assert told
    limit = int(told[1]) / 100 * whole

    def warned(value: float) -> bool:
        found = result()  # on two CPUs
        found.samples[0].telemetry = Telemetry.model_validate({"wall_seconds": 10.0, field: value})
        summary.warn(found)
        return key in {each.key for each in found.warnings}

    assert (warned(limit * 0.99), warned(limit * 1.01)) == (False, True)


def test_every_kind_of_failure_is_documented() -> None:
    told = first_column(section(REFERENCE, "Failures"))
    assert {kind for kind in get_args(Failure.model_fields["kind"].annotation) if kind not in told} == set()


def test_a_reason_to_stop_that_stands_on_the_page_is_one() -> None:
    told = re.search(r"`stop\.reason` in the result is (.*?)\.\n", MEASURING, re.DOTALL)
    assert told
    assert set(spans(told[1])) <= set(get_args(Stop.model_fields["reason"].annotation))
    assert {"target", "max-time", "max-processes"} <= set(spans(told[1]))


def test_the_protocols_functions_and_constants_stand_on_the_page() -> None:
    told = DOCS["your-program"]
    assert first_column(section(told, "Functions")) == set(FUNCTIONS)
    constants = set(re.findall(r"^`([A-Z_]+) =", workloads.__doc__ or "", re.MULTILINE))
    assert {"DATA", "CASES"} <= constants
    assert constants == first_column(section(told, "Parameters and constants"))


def test_the_data_choices_sets_and_files_stand_on_the_page() -> None:
    told = section(MEASURING, "Data")
    assert first_column(told) == set(get_args(RunSettings.model_fields["data"].annotation))
    files = {name for known in SETS.values() for name in (known.name, *known.forms)}
    assert files <= set(spans(told))


@pytest.mark.parametrize(
    ("page", "title", "told"),
    [
        ("measuring", "Loops", f"up to {rig.POOL} batches"),
        ("measuring", "Loops", f"up to {loops.FUSED_STEPS} steps in one graph"),
        ("measuring", "Phases", f"median of {step_costs.REPEATS}"),
        ("measuring", "Blocks", f"at least {protocol.BLOCK_SECONDS * 1000:.0f} ms"),
        ("measuring", "Blocks", f"{interleave.BLOCKS} blocks, or until {interleave.MEASURE_SECONDS:g} s"),
        ("measuring", "Blocks", f"no fewer than {interleave.FEWEST_BLOCKS}"),
        (
            "measuring",
            "Warm-up",
            f"two stretches of {steady_state.WINDOW} blocks agree within {steady_state.TOLERANCE:.0%}",
        ),
        ("measuring", "Warm-up", f"{worker_sample.WARMUP_BLOCKS} blocks or {worker_sample.WARMUP_SECONDS:g} s"),
        ("measuring", "Warm-up", f"fewer than {2 * steady_state.WINDOW} blocks"),
        (
            "measuring",
            "Latency",
            f"up to {worker_sample.LATENCY_STEPS} steps or {worker_sample.LATENCY_SECONDS:g} s",
        ),
        ("measuring", "Stopping", f"A pilot of {design.PILOT} trials"),
        ("measuring", "Stopping", f"after {stopping.CLEAR_TRIALS} trials where even an interval of"),
        ("measuring", "Stopping", f"{stopping.CLEAR:.1%} says so"),
        ("measuring", "Same-answer check", f"the first {timed_loop.ANSWERS} steps"),
        ("measuring", "Same-answer check", f"| `exact` | {same_answer.TOLERANCES['exact']:.1%} |"),
        ("measuring", "Same-answer check", f"| `reduced` | {same_answer.TOLERANCES['reduced']:.0%} |"),
        (
            "measuring",
            "Data",
            f"{download.CONNECT_SECONDS:g} s without a connection, or {download.READ_SECONDS:g} s of silence",
        ),
        ("report", "Chapters", f"at most {selection.CHAPTERS} chapters of {selection.MEMBERS} results each"),
        ("report", "Chapters", f"names up to {compose.LISTED:,} results"),
        ("report", "Sections", f"at most {steps.TICKS} blocks"),
        ("report", "Formats", f"{markdown.LONGEST:,} characters"),
    ],
)
def test_a_number_on_a_page_is_the_codes(page: str, title: str, told: str) -> None:
    assert told in " ".join(section(DOCS[page], title).split())


def test_the_page_about_programs_shows_how_its_example_is_run() -> None:
    assert any("examples/mine.py" in line for line in command_lines(DOCS["your-program"]))


def test_every_field_of_a_result_has_a_meaning() -> None:
    missing = [
        f"{model.__name__}.{name}"
        for model in models(Result)
        for name, field in model.model_fields.items()
        if meaning(field) == NONE
    ]
    assert missing == []
