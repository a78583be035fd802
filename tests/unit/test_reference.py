"""The documentation is complete: it has every option, variable, code and number of the code, and no others."""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from pages import DOCS, ROOT, command_lines, first_column, rows, section, spans
from synthetic import result

from bench import errors, workloads
from bench.analyse import same_answer
from bench.analyse.warnings import add_warnings
from bench.cli.app import COMMANDS, app, load
from bench.config.base import FILE_VARIABLE
from bench.config.notation import default, option
from bench.config.settings import RunSettings
from bench.datasets import download
from bench.datasets.files import SETS
from bench.model.failure import Failure
from bench.model.phase import PHASES
from bench.model.result import Result, Stop
from bench.model.spec import LOOPS
from bench.model.telemetry import Telemetry
from bench.registry.user_file import FUNCTIONS
from bench.render.report import compose, markdown
from bench.render.report.sections import steps
from bench.session import design, interleave, steady_state, stopping, warm_up, worker_sample
from bench.store import selection
from bench.worker import batches, loops, losses, protocol
from bench.worker.diagnose import timing
from docs.__main__ import main
from docs.parts import PARTS, settings_tables
from docs.result_fields import meaning, models
from docs.tables import NONE

pytestmark = pytest.mark.once

REFERENCE = DOCS["reference"]
MEASURING = DOCS["measuring"]
COMMAND: Any = typer.main.get_command(app)


def mentions(word: str, text: str = REFERENCE) -> bool:
    """Return whether a text contains this word, not as part of another."""
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def calls(folder: str = "bench") -> Iterator[ast.Call]:
    """Yield every call in the sources."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield from (
            node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
        )


def called_name(call: ast.Call) -> str:
    """Return the name of the function that is called, without its module or object."""
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def literals(function: str, keyword: str, position: int = 0) -> set[str]:
    """Return the string literals that calls of a function pass for one of its arguments."""
    strings = set()
    for call in calls():
        if called_name(call) == function:
            values = [argument.value for argument in call.keywords if argument.arg == keyword] or call.args[
                position : position + 1
            ]
            strings |= {
                value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)
            }
    return strings


def options(command: Any) -> set[str]:
    """Return all spellings of a command's options."""
    return {
        name
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("-")
    }


def test_the_generated_parts_of_all_pages_are_up_to_date() -> None:
    assert main(check=True) == 0, "run: python -m docs"


def test_every_generated_part_and_the_example_are_on_a_page() -> None:
    text = "".join(DOCS.values())
    assert [name for name, part in PARTS.items() if part() not in text] == []
    assert (ROOT / "examples" / "mine.py").read_text(encoding="utf-8") in text


def test_an_outdated_part_is_reported_or_rewritten_and_the_rest_of_the_page_is_unchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, program = tmp_path / "page.md", tmp_path / "program.py"
    program.write_text("x = 1\n")
    outdated = (
        "Before\n<!-- generated: settings -->\nold\n<!-- end -->\n<!-- generated: program.py -->\n<!-- end -->\nAfter\n"
    )
    page.write_text(outdated)
    assert main(check=True, pages=[page]) == 1
    assert "Run: python -m docs" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == outdated
    assert main(pages=[page]) == 0
    settings = f"<!-- generated: settings -->\n{settings_tables()}<!-- end -->\n"
    code = "<!-- generated: program.py -->\n```python\nx = 1\n```\n<!-- end -->\n"
    assert page.read_text(encoding="utf-8") == f"Before\n{settings}{code}After\n"
    assert main(check=True, pages=[page]) == 0


@pytest.mark.parametrize("name", RunSettings.model_fields)
def test_the_row_of_a_setting_has_its_option_variable_key_default_and_meaning(name: str) -> None:
    field = RunSettings.model_fields[name]
    (row,) = (row for row in rows(section(REFERENCE, "Settings")) if len(row) == 5 and spans(row[2]) == [name])
    assert option(name) in spans(row[0])
    assert spans(row[1]) == [RunSettings.variable(name)]
    assert field.description is not None
    assert row[4].startswith(field.description)
    (help_text,) = (parameter.help for parameter in load("run").params if parameter.name == name)
    assert (f"Default: {row[3]}." if row[3] != "–" else "") in help_text
    assert ("Default:" in help_text) == (row[3] != "–" or "Default:" in row[4])
    assert row[3] == (default(field) or "–")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_section_with_all_its_options(name: str) -> None:
    (text,) = re.findall(rf"^### devbench {name}\n(.*?)(?=^#|\Z)", section(REFERENCE, "Commands"), re.M | re.S)
    names = {spelling for spelling in options(load(name)) if not spelling.startswith("--no-")}
    settings = {option(field) for field in RunSettings.model_fields}
    if "every [setting](#settings)" in text:
        assert settings <= names
        names -= settings
    elif "[settings of the hub]" in text:
        text += DOCS["hub"]
    assert {spelling for spelling in names if not mentions(spelling, text)} == set()


def test_the_options_of_devbench_itself_are_documented() -> None:
    assert {name for name in {*options(COMMAND), "-h", "--help"} if not mentions(name)} == set()


def test_every_environment_variable_is_documented() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "bench").rglob("*.py")]
    strings = {node.value for text in sources for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}
    variables = {text for text in strings if isinstance(text, str) and re.fullmatch(r"DEVBENCH_[A-Z_]*[A-Z]", text)}
    assert {"DEVBENCH_DATA_URL", "DEVBENCH_TRACEBACK"} <= variables
    assert {name for name in variables | {FILE_VARIABLE} if not mentions(name)} == set()


def test_every_exit_code_of_an_error_is_documented() -> None:
    def subclasses(kind: type[errors.DevbenchError]) -> Iterator[type[errors.DevbenchError]]:
        yield kind
        for subclass in kind.__subclasses__():
            yield from subclasses(subclass)

    codes = {kind.exit_code for kind in subclasses(errors.DevbenchError)} | {0}
    codes |= {errors.Interrupted(signum).exit_code for signum in (signal.SIGINT, signal.SIGTERM)}
    documented = {int(code) for row in rows(section(REFERENCE, "Exit codes")) for code in row[0].split(", ")}
    assert documented == codes


def test_every_loop_is_documented_in_order() -> None:
    assert [spans(row[0]) for row in rows(section(MEASURING, "Loops"))] == [[loop] for loop in LOOPS]


def test_every_phase_that_a_worker_reports_is_documented_in_order() -> None:
    assert [spans(row[0]) for row in rows(section(MEASURING, "Phases"))] == [[phase] for phase in PHASES]
    reported = literals("PhaseEnded", "phase") | literals("timed", "phase")
    assert reported == {*PHASES} - {"warm_up"}, "the warm-up is the sum of its blocks"


def test_every_warning_of_a_result_is_documented() -> None:
    keys = literals("add_warning", "key", 1) | literals("ResultWarning", "key")
    assert first_column(section(REFERENCE, "Warnings")) == keys


@pytest.mark.parametrize(
    ("key", "field", "total"),
    [
        ("throttled", "throttled_seconds", 20.0),
        ("stolen", "stolen_seconds", 10.0),
        ("load", "load_before", 2.0),
        ("gpu-busy", "gpu_utilization_before", 1.0),
        ("clocks", "gpu_sm_clock_spread", 1.0),
    ],
)
def test_a_warning_appears_only_above_its_documented_limit(key: str, field: str, total: float) -> None:
    (row,) = (row for row in rows(section(REFERENCE, "Warnings")) if spans(row[0]) == [key])
    documented = re.search(r"more than (\d+)%", row[1])
    assert documented
    limit = int(documented[1]) / 100 * total

    def has_warning(value: float) -> bool:
        measured = result()  # its spec has two threads
        measured.samples[0].telemetry = Telemetry.model_validate({"wall_seconds": 10.0, field: value})
        add_warnings(measured)
        return key in {warning.key for warning in measured.warnings}

    assert (has_warning(limit * 0.99), has_warning(limit * 1.01)) == (False, True)


def test_every_kind_of_failure_is_documented() -> None:
    documented = first_column(section(REFERENCE, "Failures"))
    assert {kind for kind in get_args(Failure.model_fields["kind"].annotation) if kind not in documented} == set()


def test_every_reason_to_stop_is_documented() -> None:
    documented = re.search(r"`stop\.reason` in the result is (.*?)\.\n", MEASURING, re.DOTALL)
    assert documented
    assert set(spans(documented[1])) == set(get_args(Stop.model_fields["reason"].annotation))


def test_every_function_and_constant_of_the_workload_protocol_is_documented() -> None:
    documented = DOCS["workloads"]
    assert first_column(section(documented, "Functions")) == set(FUNCTIONS)
    constants = set(re.findall(r"^`([A-Z_]+) =", workloads.__doc__ or "", re.MULTILINE))
    assert {"DATA", "CASES"} <= constants
    assert constants == first_column(section(documented, "Parameters and constants"))


def test_every_kind_of_data_and_every_file_of_a_data_set_is_documented() -> None:
    documented = section(MEASURING, "Data")
    assert first_column(documented) == set(get_args(RunSettings.model_fields["data"].annotation))
    files = {name for data_set in SETS.values() for name in (data_set.name, *data_set.forms)}
    assert files <= set(spans(documented))


@pytest.mark.parametrize(
    ("page", "title", "text"),
    [
        ("measuring", "Loops", f"up to {batches.POOL} batches"),
        ("measuring", "Loops", f"up to {loops.FUSED_STEPS} steps in one graph"),
        ("measuring", "Phases", f"median of {timing.REPEATS}"),
        ("measuring", "Blocks", f"at least {protocol.BLOCK_SECONDS * 1000:.0f} ms"),
        (
            "measuring",
            "Blocks",
            f"{interleave.BLOCKS} blocks in each process. It stops earlier if {interleave.MEASURE_SECONDS:g} s",
        ),
        ("measuring", "Blocks", f"at least {interleave.FEWEST_BLOCKS} blocks are timed"),
        (
            "measuring",
            "Warm-up",
            f"the last {steady_state.WINDOW} blocks with the median of the {steady_state.WINDOW} blocks before them. "
            f"The process has settled when the two agree within {steady_state.TOLERANCE:.0%}",
        ),
        ("measuring", "Warm-up", f"{warm_up.WARMUP_BLOCKS} blocks or {warm_up.WARMUP_SECONDS:g} s"),
        ("measuring", "Warm-up", f"fewer than {2 * steady_state.WINDOW} blocks"),
        (
            "measuring",
            "Latency",
            f"up to {worker_sample.LATENCY_STEPS} steps or {worker_sample.LATENCY_SECONDS:g} s",
        ),
        ("measuring", "Stopping", f"a pilot of {design.PILOT} trials"),
        (
            "measuring",
            "Stopping",
            f"if even an interval of {stopping.CLEAR:.1%} decides, for example if one side is twice as fast. "
            f"It stops after {stopping.CLEAR_TRIALS} trials",
        ),
        ("measuring", "Same-answer check", f"the first {losses.LOSSES} steps"),
        ("measuring", "Same-answer check", f"| `exact` | {same_answer.TOLERANCES['exact']:.1%} |"),
        ("measuring", "Same-answer check", f"| `reduced` | {same_answer.TOLERANCES['reduced']:.0%} |"),
        (
            "measuring",
            "Data",
            f"{download.CONNECT_SECONDS:g} s without a connection, or after {download.READ_SECONDS:g} s without data",
        ),
        (
            "report",
            "Chapters",
            f"at most {selection.CHAPTERS} chapters. A chapter of a sweep or a scaling study has all of its results. "
            f"Any other chapter has at most {selection.MEMBERS}.",
        ),
        ("report", "Chapters", f"up to the {compose.MAX_ROWS:,} newest"),
        ("report", "Sections", f"at most {steps.TICKS} blocks"),
        ("report", "Formats", f"{markdown.LONGEST:,} characters"),
    ],
)
def test_the_numbers_on_the_pages_are_those_of_the_code(page: str, title: str, text: str) -> None:
    assert text in " ".join(section(DOCS[page], title).split())


def test_the_page_about_workloads_shows_the_commands_that_run_its_examples() -> None:
    lines = command_lines(DOCS["workloads"])
    assert all(any(name in line for line in lines) for name in ("examples/mine.py", "examples/own_step.py"))


def test_every_field_of_a_result_has_a_meaning() -> None:
    missing = [
        f"{model.__name__}.{name}"
        for model in models(Result)
        for name, field in model.model_fields.items()
        if meaning(field) == NONE
    ]
    assert missing == []
