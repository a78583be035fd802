"""The table: every figure, nothing wider than 80 columns, no control codes in plain text."""

from __future__ import annotations

import io
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import doubtful, interval, killed, misplaced, result
from test_analyse_compare import measured

from bench.analyse.compare import compare
from bench.analyse.outcome import comparisons_of, matrices_of
from bench.model.result import Interval, Price, Result, Stop, Summary
from bench.render import numbers
from bench.render.fields import FIELDS
from bench.render.terminal import table


def rows(shown: str) -> dict[str, str]:
    """Label: cell, of a table with one result; a continued cell is joined to its first line."""
    found: dict[str, str] = {}
    label = ""
    for each in shown.splitlines():
        head, cell = each[:26].strip(), each[26:].strip()
        label = head or label
        found[label] = f"{found[label]} {cell}".rstrip() if not head and label in found else cell
    return found


def test_every_figure_of_a_complete_result_is_shown() -> None:
    shown = rows(table.text([result()], []))
    assert shown["status"] == "complete"
    assert shown["where it ran"] == "CPU:0, 37 of 37 operations proved"
    assert shown["data"] == "cifar10, sample, repeated"
    assert shown["XLA"] == "off, as the program decided"
    assert shown["processes"] == "7: target of ±3% met, ±2.1%"
    assert shown["device init"] == "35.00 ± 0.70 ms"
    assert shown["step"] == "18.40 ± 0.37 ms"
    assert shown["step, mean"] == "18.70 ± 0.37 ms"
    assert [shown[f"step alone, p{p}"] for p in (50, 90, 99)] == ["18.2 ms", "19.6 ms", "25.1 ms"]
    assert shown["throughput"] == "1.74 k examples/s"
    assert shown["compute"] == "129 GFLOP/s"


def test_projection_and_truth_stand_beside_each_other_in_both_brackets() -> None:
    projected, measured = map(rows, table.text([result()], []).split("whole training, measured"))
    assert (projected["steps"], measured["loss"]) == ("15,630", "1.234")
    assert projected["build and fit"] == "4 min 48 s ± 6 s"
    assert projected["from a cold start"] == "4 min 55 s ± 6 s"
    assert measured["build and fit"] == "4 min 51 s (projected -1%)"
    assert measured["from a cold start"] == "4 min 59 s (projected -1.3%)"


def test_an_operation_elsewhere_is_seen() -> None:
    shown = rows(table.text([result(placement=misplaced())], []))
    assert shown["where it ran"] == "NOT PROVED on CPU:0: 2 operations on CPU:1"
    assert shown["misplaced operations"] == "2"


def test_a_failure_says_how_what_to_do_and_the_last_lines_without_their_colours() -> None:
    shown = table.text([result(status="failed", failure=killed(), summary=Summary(), projection=None)], [])
    assert rows(shown)["status"] == "FAILED: killed"
    assert "killed by SIGKILL" in shown
    assert "while in first_step" in shown
    assert "Give it more memory" in shown
    assert "| about to allocate" in shown
    assert "[31m" not in shown


def test_an_interrupted_result_is_marked_partial() -> None:
    shown = rows(table.text([result(status="partial", stop=Stop(reason="interrupted", trials=3))], []))
    assert shown["status"] == "PARTIAL: interrupted"
    assert shown["processes"] == "3: interrupted"


@pytest.mark.parametrize("reason", ["target", "max-time", "max-processes", "failed", "interrupted"])
def test_every_reason_to_stop_is_worded(reason: str) -> None:
    stop = Stop.model_validate({"reason": reason, "trials": 5, "error": 0.05, "target": 0.03})
    assert rows(table.text([result(stop=stop)], []))["processes"].startswith("5: ")


def test_what_interleaved_stands_side_by_side_with_the_verdict_below() -> None:
    pair = [result("a"), result("b", loop="fit", summary=Summary(step_seconds=interval(0.02)))]
    ratio = Interval(value=1.087, low=1.08, high=1.094, n=7)
    verdict = compare(pair[0], pair[1]).model_copy(update={"ratio": ratio, "verdict": "slower", "paired": True})
    shown = table.text(pair, [verdict])
    assert shown.count("where it ran") == 1
    assert next(line for line in shown.splitlines() if line.startswith("  step  ")).split() == [
        *("step", "18.40", "±", "0.37", "ms", "20.00", "±", "0.40", "ms"),
    ]
    assert (
        "slower: cifar on cpu, fit takes 1.087 times [1.080, 1.094] as long as cifar on cpu, as-written per step "
        "(7 trials)" in " ".join(shown.split())
    )
    assert "–" in next(line for line in shown.splitlines() if "throughput" in line)


def test_groups_have_tables_of_their_own() -> None:
    assert table.text([result("a", "g"), result("b", "h", workload="mnist")], []).count("where it ran") == 2


def test_too_many_results_for_the_width_are_stacked_evenly() -> None:
    shown = table.text([result(str(number)) for number in range(4)], [])
    heads = [line.split() for line in shown.splitlines() if line.split() and set(line.split()) == {"cifar"}]
    assert heads == [["cifar", "cifar"], ["cifar", "cifar"]]


def test_a_note_of_several_is_told_once_and_one_of_a_few_with_whose_it_is() -> None:
    group = [
        result("a", notes=["the article errs", "this loop differs"]),
        result("b", loop="fit", notes=["the article errs"], warnings=doubtful()),
    ]
    shown = " ".join(table.text(group, []).split())
    assert shown.count("the article errs") == 1
    assert "note: cifar on cpu, as-written: this loop differs" in shown
    assert "warning: cifar on cpu, fit: the machine was busy: load 1.7 on 2 CPUs Close what else runs." in shown


def test_transfers_show_time_and_bandwidth_of_each_size() -> None:
    summary = Summary(
        series={"host to device, 256 MB": interval(0.0206), "device to host, 4 B": interval(1.4e-6, n=3)},
        bytes_per_second={"host to device, 256 MB": 12.4e9},
    )
    shown = rows(table.text([result(workload="transfer", summary=summary, projection=None)], []))
    assert shown["host to device, 256 MB"] == "20.60 ± 0.41 ms, 12.4 GB/s"
    assert shown["device to host, 4 B"] == "1.400 ± 0.028 µs"


WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=120)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 7), WORDS, WORDS, st.floats(1e-9, 1e6), st.booleans())
def test_nothing_is_wider_than_80_columns_or_has_codes_in_it(
    count: int, name: str, words: str, seconds: float, fails: bool
) -> None:
    from rich.cells import cell_len

    group: list[Result] = []
    for number in range(count):
        summary = Summary(step_seconds=interval(seconds), series={name: interval(seconds)}, phases={name: interval(1)})
        more = {"status": "failed", "failure": killed()} if fails else {}
        group.append(
            result(str(number), workload=name, summary=summary, notes=[words], placement=misplaced(), **more)  # type: ignore[arg-type]
        )
    shown = table.text(group, comparisons_of(group))
    assert [each for each in shown.splitlines() if cell_len(each) > 80] == []
    assert [each for each in shown if not each.isprintable() and each != "\n"] == []


def test_three_that_interleaved_make_a_matrix_without_what_is_not_fair() -> None:
    cpu, gpu = result("a", "g"), result("b", "g", backend="cuda")
    step = result("c", "g", loop="step")
    group = [cpu, gpu, step]
    shown = table.text(group, comparisons_of(group), matrices=matrices_of([group])).splitlines()
    begun = shown.index("time of the row over that of the column:")
    assert [line.split() for line in shown[begun + 4 : begun + 8]] == [
        ["A", "B", "C"],
        ["A", "–", "1", "too", "few", "1", "too", "few"],
        ["B", "1", "too", "few", "–", "–"],
        ["C", "1", "too", "few", "–", "–"],
    ]
    assert "time of the row" not in table.text(group[:2], comparisons_of(group[:2]), matrices=matrices_of([group[:2]]))


def test_columns_and_sentences_of_one_loop_are_told_apart_by_what_differs() -> None:
    group = [result(name, dtype=dtype) for name, dtype in (("a", "float32"), ("b", "float64"))]
    shown = table.text(group, comparisons_of(group))
    assert "  float32  " in shown
    assert "cifar on cpu, as-written, dtype float64" in " ".join(shown.split())
    again = [result("aaaaaaaa"), result("bbbbbbbb")]
    assert "cifar on cpu, as-written (bbbbbbbb)" in " ".join(table.text(again, comparisons_of(again)).split())


def test_a_stream_that_is_no_terminal_gets_plain_text_even_where_it_cannot_show_it_all() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="cp1252", errors="replace")
    table.show([result(warnings=doubtful())], [], stream)
    stream.flush()
    shown = raw.getvalue().decode("cp1252")
    assert "-" * 80 in shown
    assert "18.40 ± 0.37 ms" in shown
    assert "?" not in shown


def test_what_is_not_fair_is_no_verdict_and_says_why() -> None:
    first = measured([0.01, 0.011], name="a")
    other = measured([0.02, 0.022], name="b", backend="cuda", dtype="float64")
    shown = " ".join(table.text([first, other], comparisons_of([first, other])).split())
    assert "slower" not in shown
    assert "not compared: cifar on cuda, as-written and cifar on cpu, as-written" in shown
    assert "UNFAIR, backend" in shown


def test_money_stands_under_its_currency() -> None:
    found = result(price=Price(per_hour=3.6, currency="EUR"))
    found.summary.cost_per_1000_steps = 0.012345
    assert found.projection is not None
    found.projection.cost = 1234.5
    shown = " ".join(table.text([found], []).split())
    assert "1,000 steps, EUR 0.0123" in shown
    assert "cost, EUR 1,234.50" in shown
    assert "EUR" not in table.text([result()], [])


def test_keys_and_metrics_of_the_fields_are_their_own() -> None:
    keys = [field.key for field in FIELDS]
    gauges = [(field.metric, field.labels) for field in FIELDS if field.metric]
    assert len(set(keys)) == len(keys)
    assert len(set(gauges)) == len(gauges)


@pytest.mark.parametrize("high", [math.inf, 1e80, 4000.0])
def test_a_factor_whose_interval_bounds_nothing_says_so_in_place_of_its_digits(high: float) -> None:
    found = Interval(value=3.0, low=9.0 / high, high=high, n=2)
    assert numbers.times(found) == "3.00 times [too wide to tell]"
    assert numbers.factor(found) == "3.00 [too wide to tell]"


@pytest.mark.parametrize(
    ("value", "error", "shown"),
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
def test_times_are_shown_with_three_digits_or_as_exactly_as_they_are_known(
    value: float, error: float | None, shown: str
) -> None:
    assert numbers.time(value, error) == shown


@given(st.floats(1e-9, 9.99e17))
def test_a_quantity_keeps_three_digits_of_its_value(value: float) -> None:
    number, prefixed = numbers.quantity(value, "FLOP/s").split()
    scale = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}[prefixed.removesuffix("FLOP/s")]
    assert float(number) * scale == pytest.approx(value, rel=0.0051)


def test_a_unit_that_is_a_word_keeps_its_prefix_apart() -> None:
    assert numbers.quantity(1740, "examples/s") == "1.74 k examples/s"
    assert numbers.quantity(129e9, "FLOP/s") == "129 GFLOP/s"
