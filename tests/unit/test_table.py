"""The table of a run: short by default, complete with --verbose, and at most 80 columns wide."""

from __future__ import annotations

import io
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import busy_machine, interval, killed, misplaced, result
from synthetic import measured as processes
from test_analyse_compare import measured

from bench.analyse import stats
from bench.analyse.compare import compare
from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair_groups
from bench.analyse.summary import summarize
from bench.model.comparison import BreakEven
from bench.model.interval import Interval
from bench.model.result import Price, Result, Stop, Summary
from bench.render import numbers
from bench.render.fields import FIELDS
from bench.render.sentences import comparison
from bench.render.terminal import table


def verbose(*results: Result) -> str:
    return table.text(Outcome.of(pair_groups(results)), verbose=True)


def brief(*results: Result) -> str:
    return table.text(Outcome.of(pair_groups(results)))


def rows(text: str, label: int = table.LABELS) -> dict[str, str]:
    """Return the cell of each label in a table with one result. Continued lines of a cell are joined."""
    cells: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        head, cell = line[:label].strip(), line[label:].strip()
        key = head or key
        cells[key] = f"{cells[key]} {cell}".rstrip() if not head and key in cells else cell
    return cells


def test_the_short_table_has_only_the_main_figures() -> None:
    text = brief(result(notes=["the article errs"]))
    assert text.splitlines()[0].strip() == "cifar on cpu, as-written"
    cells = rows(text, table.BRIEF_LABELS)
    figures = {label: cell for label, cell in cells.items() if cell}
    assert figures["where it ran"] == "CPU:0, all 37 operations"
    assert figures["step time"] == "18.40 ± 0.37 ms"
    assert figures["throughput"] == "1.74 k examples/s"
    assert figures["projected training"] == "4 min 48 s ± 6 s"
    assert "status" not in cells
    assert "device init" not in cells
    assert "the article errs" not in text
    assert text.rstrip().splitlines()[-1] == "--verbose shows all figures and 1 note."


def test_the_short_table_shows_the_status_of_a_failed_result() -> None:
    text = brief(result(status="failed", failure=killed(), summary=Summary(), projection=None))
    assert rows(text, table.BRIEF_LABELS)["status"] == "FAILED: killed"


def test_the_cold_start_is_the_sum_of_the_phases_until_the_first_step() -> None:
    measured_twice = processes("1", [0.1, 0.1])
    measured_twice.samples[1].phases = {**measured_twice.samples[1].phases, "import": 3.4}
    summarize(measured_twice, None, None)
    assert rows(brief(measured_twice), table.BRIEF_LABELS)["cold start"] == "4.7 ± 1.3 s"
    cells = rows(verbose(measured_twice))
    assert cells["import"] == "3.3 ± 1.3 s"
    assert cells["cold start"] == "4.7 ± 1.3 s"


def test_a_short_comparison_has_at_most_12_lines_and_ends_with_the_verdict() -> None:
    pair = [processes("1", [0.1] * 6), processes("2", [0.0081] * 6, backend="cuda")]
    lines = brief(*pair).splitlines()
    verdict = next(n for n, line in enumerate(lines) if line.startswith("faster: cuda is 12.3"))
    assert verdict < 10
    assert len(lines) <= 13


def test_every_figure_of_a_complete_result_is_shown() -> None:
    cells = rows(verbose(result()))
    assert cells["status"] == "complete"
    assert cells["where it ran"] == "CPU:0, all 37 operations"
    assert cells["data"] == "cifar10, sample, repeated"
    assert cells["XLA"] == "off, chosen by the program"
    assert cells["processes"] == "7: target of ±3% met, known to ±2.1%"
    assert cells["device init"] == "35.00 ± 0.70 ms"
    assert cells["step"] == "18.40 ± 0.37 ms"
    assert cells["step, mean"] == "18.70 ± 0.37 ms"
    assert [cells[f"single step, p{p}"] for p in (50, 90, 99)] == ["18.2 ms", "19.6 ms", "25.1 ms"]
    assert cells["throughput"] == "1.74 k examples/s"
    assert cells["compute"] == "129 GFLOP/s"


def test_the_projection_and_the_measured_training_show_build_and_fit_and_the_total() -> None:
    projected, trained = map(rows, verbose(result()).split("whole training, measured"))
    assert (projected["steps"], trained["loss"]) == ("15,630", "1.234")
    assert projected["build and fit"] == "4 min 48 s ± 6 s"
    assert projected["from a cold start"] == "4 min 55 s ± 6 s"
    assert trained["build and fit"] == "4 min 51 s (projected -1%)"
    assert trained["from a cold start"] == "4 min 59 s (projected -1.3%)"


@pytest.mark.parametrize(("seconds", "shown"), [(90.0, "1 min 30 s"), (0.5, None), (0.0, None)])
def test_the_short_table_shows_waits_at_epoch_ends_that_are_much_of_the_training(
    seconds: float, shown: str | None
) -> None:
    projection = result().projection
    assert projection is not None
    waits = projection.model_copy(update={"epoch_end_wait_seconds": seconds})
    cells = rows(brief(result(projection=waits)), table.BRIEF_LABELS)
    assert cells.get("waits at epoch ends") == shown


def test_misplaced_operations_are_shown() -> None:
    cells = rows(verbose(result(placement=misplaced())))
    assert cells["where it ran"] == "NOT on CPU:0: 2 operations on CPU:1"
    assert cells["misplaced operations"] == "2"


def test_a_failure_shows_the_fix_and_the_last_lines_without_their_colours() -> None:
    text = brief(result(status="failed", failure=killed(), summary=Summary(), projection=None))
    assert "failed: the worker was killed by SIGKILL" in text
    assert "(in phase first step)" in " ".join(text.split())
    assert "Give it more memory" in text
    assert "| about to allocate" in text
    assert "[31m" not in text


def test_an_interrupted_result_is_marked_as_partial() -> None:
    cells = rows(verbose(result(status="partial", stop=Stop(reason="interrupted", trials=3))))
    assert cells["status"] == "PARTIAL: interrupted"
    assert cells["processes"] == "3: interrupted"


@pytest.mark.parametrize("reason", ["target", "max-time", "max-processes", "failed", "interrupted"])
def test_every_reason_to_stop_has_a_text(reason: str) -> None:
    stop = Stop.model_validate({"reason": reason, "trials": 5, "error": 0.05, "target": 0.03})
    assert rows(verbose(result(stop=stop)))["processes"].startswith("5: ")


def test_interleaved_results_stand_side_by_side_with_the_verdict_below() -> None:
    pair = [result("a"), result("b", loop="fit", summary=Summary(step_seconds=interval(0.02)))]
    ratio = Interval(value=1.087, low=1.08, high=1.094, n=7)
    verdict = compare(pair[0], pair[1]).model_copy(update={"ratio": ratio, "verdict": "slower", "paired": True})
    text = table.text(Outcome(pair, [verdict], []), verbose=True)
    assert text.count("where it ran") == 1
    assert next(line for line in text.splitlines() if line.startswith("  step  ")).split() == [
        *("step", "18.40", "±", "0.37", "ms", "20.00", "±", "0.40", "ms"),
    ]
    assert "slower: 'fit' takes 1.087 times [1.080, 1.094] as long as 'as-written' per step (7 trials)." in " ".join(
        text.split()
    )
    assert "–" in next(line for line in text.splitlines() if "throughput" in line)


def test_each_group_has_its_own_table() -> None:
    assert verbose(result("a", "g"), result("b", "h", workload="mnist")).count("where it ran") == 2


def test_more_results_than_fit_are_split_evenly_into_tables() -> None:
    text = verbose(*(result(str(number), backend=f"cpu{number}") for number in range(4)))
    headers = [line.split() for line in text.splitlines() if line.split() and line.split()[0].startswith("cpu")]
    assert headers == [["cpu0", "cpu1"], ["cpu2", "cpu3"]]


def test_a_note_on_all_results_appears_once_and_a_note_on_some_names_them() -> None:
    group = [
        result("a", notes=["the article errs", "this loop differs"]),
        result("b", loop="fit", notes=["the article errs"], warnings=busy_machine()),
    ]
    text = " ".join(verbose(*group).split())
    assert text.count("the article errs") == 1
    assert "note: as-written: this loop differs" in text
    assert "warning: fit: the machine was busy: load 1.7 on 2 CPUs Close what else runs." in text


def test_transfers_have_a_time_and_a_bandwidth_for_each_size() -> None:
    summary = Summary(
        series={"host to device, 256 MB": interval(0.0206), "device to host, 4 B": interval(1.4e-6, n=3)},
        bytes_per_second={"host to device, 256 MB": 12.4e9},
    )
    cells = rows(verbose(result(workload="transfer", summary=summary, projection=None)))
    assert cells["host to device, 256 MB"] == "20.60 ± 0.41 ms, 12.4 GB/s"
    assert cells["device to host, 4 B"] == "1.400 ± 0.028 µs"


WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=120)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 7), WORDS, WORDS, st.floats(1e-9, 1e6), st.booleans())
def test_no_line_exceeds_80_columns_or_contains_control_codes(
    count: int, name: str, words: str, seconds: float, fails: bool
) -> None:
    from rich.cells import cell_len

    group: list[Result] = []
    for number in range(count):
        summary = Summary(
            step_seconds=interval(seconds), series={name: interval(seconds)}, phases={"import": interval(1)}
        )
        more = {"status": "failed", "failure": killed()} if fails else {}
        group.append(
            result(str(number), workload=name, summary=summary, notes=[words], placement=misplaced(), **more)  # type: ignore[arg-type]
        )
    for text in (verbose(*group), brief(*group)):
        assert [line for line in text.splitlines() if cell_len(line) > 80] == []
        assert [character for character in text if not character.isprintable() and character != "\n"] == []


def test_three_interleaved_results_have_a_matrix_without_unfair_comparisons() -> None:
    cpu, gpu = result("a", "g"), result("b", "g", backend="cuda")
    step = result("c", "g", loop="step")
    group = [cpu, gpu, step]
    lines = verbose(*group).splitlines()
    start = lines.index("Ratios of times, row / column:")
    assert [line.split() for line in lines[start + 4 : start + 8]] == [
        ["A", "B", "C"],
        ["A", "–", "1", "too", "few", "1", "too", "few"],
        ["B", "1", "too", "few", "–", "–"],
        ["C", "1", "too", "few", "–", "–"],
    ]
    assert "row / column" not in verbose(*group[:2])


def test_columns_and_sentences_name_only_what_differs() -> None:
    group = [result(name, dtype=dtype) for name, dtype in (("a", "float32"), ("b", "float64"))]
    text = brief(*group)
    assert "  float32  " in text
    assert "Observed ratio, float64 / float32: 1.00." in " ".join(text.split())
    same_spec = [result("aaaaaaaa"), result("bbbbbbbb")]
    assert "cpu, as-written (bbbbbbbb)" in " ".join(brief(*same_spec).split())


def test_a_stream_that_is_not_a_terminal_gets_plain_text_in_its_encoding() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="cp1252", errors="replace")
    table.show(Outcome.of(pair_groups([result(warnings=busy_machine())])), stream)
    stream.flush()
    text = raw.getvalue().decode("cp1252")
    assert "-" * 80 in text
    assert "18.40 ± 0.37 ms" in text
    assert "?" not in text


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_force_color_and_no_color_decide_whether_a_pipe_gets_colours(
    variables: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    table.show(Outcome.of(pair_groups([result(warnings=busy_machine())])), stream)
    assert ("\x1b[33m" in stream.getvalue()) == coloured


def test_an_unfair_comparison_has_no_verdict_but_its_reason() -> None:
    first = measured([0.01, 0.011], name="a")
    other = measured([0.02, 0.022], name="b", backend="cuda", dtype="float64")
    text = " ".join(brief(first, other).split())
    assert "slower" not in text
    assert "cuda, float64 cannot be compared fairly with cpu, float32." in text
    assert "unfair: backend: cpu vs. cuda" in text


def test_money_is_shown_with_its_currency() -> None:
    document = result(price=Price(per_hour=3.6, currency="EUR"))
    document.summary.cost_per_1000_steps = 0.012345
    assert document.projection is not None
    document.projection.cost = 1234.5
    text = " ".join(verbose(document).split())
    assert "1,000 steps, EUR 0.0123" in text
    assert "cost, EUR 1,234.50" in text
    assert "EUR" not in verbose(result())


def test_each_field_has_its_own_key_and_metric() -> None:
    keys = [field.key for field in FIELDS]
    gauges = [(field.metric, field.metric_labels) for field in FIELDS if field.metric]
    assert len(set(keys)) == len(keys)
    assert len(set(gauges)) == len(gauges)


@pytest.mark.parametrize("high", [math.inf, 1e80, 4000.0, 40.0])
def test_a_factor_with_an_extremely_wide_interval_has_no_bounds(high: float) -> None:
    interval = Interval(value=3.0, low=9.0 / high, high=high, n=2)
    assert numbers.times(interval) == "3.00 times [too wide to tell]"
    assert numbers.factor(interval) == "3.00 [too wide to tell]"
    assert numbers.rate(interval, "examples/s") == "3.00 examples/s [too wide to tell]"


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.0, None, "0 s"),
        (1.5e-9, None, "1.50 ns"),
        (0.0184, None, "18.4 ms"),
        (0.9999, None, "1.00 s"),
        (59.94, None, "59.9 s"),
        (485, None, "8 min 5 s"),
        (7500, None, "2 h 5 min"),
        (0.0184, 0.0003, "18.40 ± 0.30 ms"),
        (0.0184, 0.004, "18.4 ± 4.0 ms"),
        (0.9, 0.25, "900 ± 250 ms"),
        (485, 2.2, "8 min 5 s ± 3 s"),
        (485, 120, "8 min 5 s ± 2 min 0 s"),
        (math.inf, None, "inf s"),
    ],
)
def test_times_have_three_digits_or_the_digits_that_their_error_allows(
    value: float, error: float | None, text: str
) -> None:
    assert numbers.time(value, error) == text


@given(st.floats(1e-9, 9.99e17))
def test_a_quantity_keeps_three_digits(value: float) -> None:
    number, prefixed = numbers.quantity(value, "FLOP/s").split()
    scale = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}[prefixed.removesuffix("FLOP/s")]
    assert float(number) * scale == pytest.approx(value, rel=0.0051)


def test_a_unit_that_is_a_word_has_a_space_after_the_prefix() -> None:
    assert numbers.quantity(1740, "examples/s") == "1.74 k examples/s"
    assert numbers.quantity(129e9, "FLOP/s") == "129 GFLOP/s"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([0.6, 0.61, 0.62, 0.63], "615 ± 21 ms"),
        ([0.6, 0.7], "2 runs: 600–700 ms"),
        ([0.3, 0.4, 1.2], "3 runs: 0.300–1.20 s"),
        ([40.0, 400.0], "2 runs: 40.0 s – 6 min 40 s"),
        ([0.1, 0.1, 0.1, 3.0], "825 ms [50.3 ms, 13.5 s]"),
        ([0.6], "600 ms"),
    ],
)
def test_a_wide_interval_is_shown_by_its_values_or_bounds(values: list[float], text: str) -> None:
    assert numbers.interval(stats.arithmetic(values)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.68912, "0.689"), (150, "150"), (1.5, "1.5"), (15432, "15,400"), (0.00001, "0.00001"), (-2.0, "-2"), (0, "0")],
)
def test_a_rounded_number_has_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert numbers.rounded(value) == text


def test_epochs_and_single_steps_are_written_in_words() -> None:
    even = BreakEven(winner="base", steps=Interval(value=1.0, n=1))
    assert comparison.break_even(even) == "about 1 step (one start each)"
    assert comparison._epochs(Interval(value=152.3, low=1.5, high=1520.0, n=3)) == "150 [1.5, 1,500] epochs"
