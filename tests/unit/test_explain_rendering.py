"""How explanations of odd kinds are shown: negative parts, wide intervals, and what-ifs of several loops."""

from __future__ import annotations

import io
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from synthetic import result
from test_analyse_compare import sample
from test_explain import level
from test_explain_answer import concluded, gain, part, share

from bench.analyse.explain.caveats import caveats
from bench.analyse.explain.findings import findings
from bench.analyse.explain.ladder import ladder
from bench.analyse.explain.shares import from_what_ifs
from bench.cli import explain
from bench.config.settings import load
from bench.model.causes import BETWEEN_EPOCHS
from bench.model.explanation import Explanation, Finding, Part
from bench.model.facts import Facts, FitCall, Float64, LongSteps
from bench.model.failure import Failure
from bench.model.interval import Interval
from bench.render.report.document import Table
from bench.render.report.sections import explanation as section
from bench.render.sentences import explanation as sentences
from bench.render.terminal.explanation import text


def flat(explanation: Explanation) -> str:
    return " ".join(text(explanation, verbose=True).split())


def test_a_negative_part_says_which_loop_takes_longer() -> None:
    negative = part("input", "step", "host-batches", -0.2)
    negative.measurable = True
    document = concluded(parts=[negative], rest_share=share(1.2), lowest_level="host-batches")
    words = "negative, because the loop host-batches takes longer than the loop step"
    assert f"−20% [−22%, −18%] input: {words}" in flat(document)
    tables = [item for shown in section.sections(document, 0.02) for item in shown.content if isinstance(item, Table)]
    assert any(words in row.cells for table in tables for row in table.rows)


@pytest.mark.parametrize(
    ("interval", "shown"),
    [
        (Interval(value=0.8, low=0.2, high=1.4, n=3), "80% [20%, 100%]"),
        (Interval(value=1.1, low=1.05, high=1.15, n=3), "110% [105%, 115%]"),
        (Interval(value=-0.1, low=-0.196, high=-0.004, n=3), "−10% [−20%, 0%]"),
    ],
)
def test_the_bounds_of_a_share_end_where_a_share_can(interval: Interval, shown: str) -> None:
    assert sentences.share(interval) == shown


def test_an_infinite_interval_of_a_what_if_says_nothing_about_a_cause() -> None:
    tapes = Finding(cause="persistent tapes", sentence="x.", evidence="y", what_ifs=["single-use-tapes"])
    tried = gain("single-use-tapes", 0.9, "undecided")
    tried.ratio, tried.loop = Interval(value=0.9, low=0.0, high=math.inf, n=2), "as-written"
    document = concluded(parts=[])
    document.findings, document.gains = [tapes], [tried]
    from_what_ifs(document)
    assert (tapes.share, tapes.evidence) == (None, "y")


def test_the_report_names_the_loop_of_a_what_if_that_differs_from_the_usual_one() -> None:
    tried = [gain("cache", 0.5), gain("without-callbacks", 0.8)]
    tried[1].loop = "as-written"
    document = concluded(gains=tried)
    (table,) = [
        item
        for shown in section.sections(document, 0.02)
        if shown.title == "What-ifs"
        for item in shown.content
        if isinstance(item, Table)
    ]
    assert [row.cells[2] for row in table.rows] == ["step", "step, in the loop as-written"]


def test_one_long_step_is_singular() -> None:
    long = LongSteps(count=1, seconds=1.0, every=1.0, median=0.01, lines=[])
    found = findings([result(samples=[sample(1, 0.01, facts=Facts(long_steps=long))])])
    (finding,) = [finding for finding in found if finding.cause == "rare long steps"]
    assert finding.sentence.startswith("About every 1 step, a step takes 1 s longer.")
    assert finding.evidence == "samples of the stack in 1 long step"


def test_what_surrounds_the_computing_is_told_as_an_estimate_and_not_as_a_second_bound() -> None:
    unclear = part("Keras fit", "fit", "step", 0.9)
    unclear.share, unclear.measurable = Interval(value=0.9, low=-0.2, high=1.1, n=1), False
    document = concluded(trials=1, parts=[unclear], rest_share=share(0.07))
    assert "Time around the computing takes about 93% of it." in sentences.headline(document)
    assert "at most 93% of the step" not in document.answer[0].cause


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (Facts(float64=Float64(operations=1, arguments=1, lines=[])), "1 operation of the step computes in float64."),
        (Facts(float64=Float64(operations=2, arguments=1, lines=[])), "2 operations of the step compute in float64."),
    ],
)
def test_operations_are_counted_with_their_verb(facts: Facts, sentence: str) -> None:
    assert sentence in [finding.sentence for finding in findings([result(samples=[sample(1, 0.01, facts=facts)])])]


def test_the_part_above_fit_of_a_program_with_a_loop_of_its_own_is_not_called_its_callbacks() -> None:
    def read(**facts: Any) -> Part:
        levels = [level("as-written", 0.010), level("fit", 0.006)]
        for process in levels[0].samples:
            process.facts = Facts(retraced=[], **facts)
        (part,), _, _ = ladder(levels)
        return part

    own = read()
    assert own.what == "Python, conversions and reads between steps, less the work of fit"
    assert own.what_ifs == []
    without = read(fit=FitCall(callbacks=[], verbose=0, metrics=False))
    assert "callbacks" in without.what
    assert without.what_ifs == []  # there are none to leave out
    assert read(fit=FitCall(callbacks=["Saver"], verbose=0, metrics=False)).what_ifs == ["without-callbacks"]


def test_an_explanation_says_which_diagnosis_was_cut_off() -> None:
    levels = [level("as-written", 0.010), level("fit", 0.006)]
    levels[0].samples[0].facts = Facts(retraced=[])
    assert not any("cut off" in caveat for caveat in caveats(levels))
    levels[1].samples[-1].failure = Failure(kind="interrupted", message="--max-time ended it", phase="diagnosis")
    assert "The diagnosis was cut off in: fit. Causes or their shares may be missing." in caveats(levels)
    levels[1].samples[0].facts = Facts(retraced=[])
    assert not any("cut off" in caveat for caveat in caveats(levels))


def test_what_a_change_saves_of_a_step_is_not_taken_for_a_share_of_the_epoch() -> None:
    between = Finding(cause=BETWEEN_EPOCHS, sentence="", evidence="", share=0.4, fix="Validate less often.")
    slow = Finding(cause="slow input", sentence="", evidence="", share=0.8, fix="Use a cache.", parts=["input"])
    shown = flat(concluded(findings=[between, slow]))
    assert "(not tried, can save at most 40%)" in shown
    assert "(not tried, can save at most 80% of a step)" in shown
    assert "(not tried, can save at most 80%)" in flat(concluded(findings=[slow]))


def test_an_explanation_is_printed_into_a_file_whose_encoding_lacks_its_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    negative = part("input", "step", "host-batches", -0.2)
    negative.measurable = True
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="cp1252"))
    document = concluded(parts=[negative], gains=[gain("cache", 1.0)])
    assert explain._show(document, None, load()) == 0
    sys.stdout.flush()
    assert "-20% [-22%, -18%]" in raw.getvalue().decode("cp1252")


def test_the_names_of_causes_are_in_one_module() -> None:
    folder = Path(findings.__code__.co_filename).parent
    written = [file.name for file in folder.glob("*.py") if 'cause="' in file.read_text(encoding="utf-8")]
    assert written == []
