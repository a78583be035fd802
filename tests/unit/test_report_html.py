"""The HTML of the report, parsed as text. tests/browser opens it in a browser."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from synthetic import busy_machine, explanation, folder, killed, ladder_results, measured, misplaced, sweep_results

from bench import api
from bench.errors import UsageError
from bench.model.failure import Failure
from bench.model.result import Result, Summary
from bench.render.charts import curves, phases, ratios, steps, vega
from bench.render.charts.phases import Segment
from bench.render.charts.ratios import Ratio
from bench.render.charts.steps import Spread
from bench.render.report import compose as compose_module
from bench.render.report import html
from bench.render.report.compose import compose
from bench.render.report.document import Table
from bench.store import files

pytestmark = pytest.mark.once


class Outline(HTMLParser):
    """The tags of a page, their attributes and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page(path: Path, *results: Result) -> str:
    return html.render(compose(*api.report(folder(path, *results), 0.02)), "1.2.3")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> str:
    warned = measured("2", [0.05, 0.051, 0.049], loop="fit", warnings=busy_machine())
    return page(tmp_path_factory.mktemp("pair"), measured("1", [0.1, 0.101, 0.099]), warned)


def test_the_page_has_no_script_and_no_external_address(pair: str) -> None:
    outline = Outline(pair)
    assert outline.all("script") == []
    addresses = [
        value for _, attributes in outline.tags for key, value in attributes.items() if key in ("src", "href", "srcset")
    ]
    assert addresses
    assert [value for value in addresses if not (value or "").startswith(("#", "data:,"))] == []
    assert re.findall(r"url\(|@import", pair) == []
    urls = set(re.findall(r"https?://[^\"' ]+", pair))
    assert urls <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_every_chart_is_one_image_with_its_figures_as_text(pair: str) -> None:
    drawings = Outline(pair).all("svg")
    assert len(drawings) == 3
    assert {drawing["role"] for drawing in drawings} == {"img"}
    texts = " ".join(drawing["aria-label"] or "" for drawing in drawings)
    assert "Points with intervals: time relative to 'as-written'. fit 0.5, faster." in texts
    assert "as-written 4.72 s, longest phase import with 3.20 s" in texts
    assert "Medians: as-written 100 ms; fit 50.0 ms" in texts


def test_every_section_with_a_chart_has_a_table(pair: str) -> None:
    sections = [part for part in pair.split("<h3>")[1:] if "<figure>" in part]
    assert len(sections) == 3
    assert [part for part in sections if "<table>" not in part] == []


def test_tables_name_their_rows_and_columns(pair: str) -> None:
    headers = Outline(pair).all("th")
    assert {header.get("scope") for header in headers} == {"col", "row", "colgroup"}
    assert pair.count("<caption>") == pair.count("<table>")


def test_differences_and_problems_have_a_mark_beside_their_colour(pair: str) -> None:
    for row in re.findall(r'<tr class="(?:differs|alarm)">.*?</tr>', pair):
        assert 'class="mark"' in row
    assert re.search(r'<tr class="differs"><th scope="row"><span class="mark" title="differs">≠</span> loop</th>', pair)


def test_verdicts_with_several_baselines_name_the_baseline_in_each_row(tmp_path: Path) -> None:
    cases = [
        measured(f"{n}", [step, step * 1.01], case=case, backend=backend)
        for n, (backend, case, step) in enumerate(
            [("cpu", "large", 0.1), ("cpu", "small", 0.01), ("cuda", "large", 0.05), ("cuda", "small", 0.02)]
        )
    ]
    (chapter,) = compose(*api.report(folder(tmp_path, *cases), 0.02)).chapters
    (section,) = [part for part in chapter.sections if part.title == "Verdicts"]
    (table,) = [part for part in section.content if isinstance(part, Table)]
    assert table.head[:3] == ("", "baseline", "verdict")
    assert [(row.label, *row.cells[:2]) for row in table.rows] == [
        ("small, cpu", "large, cpu", "faster"),
        ("large, cuda", "large, cpu", "faster"),
        ("small, cuda", "small, cpu", "slower"),
    ]


def test_the_output_of_a_program_is_text_and_never_markup(tmp_path: Path) -> None:
    failure = Failure(kind="error", message="<script>alert(1)</script>", last_lines=["<b>x</b>", "\x1b[31mred"])
    fields = {"status": "failed", "failure": failure, "summary": Summary(), "samples": []}
    text = page(tmp_path, measured("1", [], workload='<img src="x">"', **fields))
    outline = Outline(text)
    assert outline.all("script") == outline.all("img") == outline.all("b") == []
    assert "<script>alert(1)</script>" in " ".join(outline.texts)
    assert "\x1b" not in text


def test_words_between_backticks_are_code_and_markup_in_them_stays_text(tmp_path: Path) -> None:
    failure = Failure(kind="error", message="it broke", hint="Run `a <b>x</b>`.")
    fields = {"status": "failed", "failure": failure, "summary": Summary(), "samples": []}
    assert "Run <code>a &lt;b&gt;x&lt;/b&gt;</code>." in page(tmp_path, measured("1", [], **fields))


def test_markup_in_a_label_stays_text_in_a_chart(tmp_path: Path) -> None:
    results = [measured(str(n), [0.1, 0.1], params={"x": f'</svg><i title="{n}">&amp;'}) for n in (1, 2)]
    assert Outline(page(tmp_path, *results)).all("i") == []


def test_a_single_process_a_nan_loss_and_failures_are_shown(tmp_path: Path) -> None:
    nan = Failure(kind="nan", message="the loss became NaN")
    diverged = measured("2", [0.1, 0.1], loop="fit", status="failed", failure=nan)
    diverged.samples[0].first_losses = [float("nan")]
    killed_run = measured("3", [], loop="step", status="failed", failure=killed(), summary=Summary(), samples=[])
    text = page(tmp_path, measured("1", [0.1]), diverged, killed_run)
    texts = "\n".join(Outline(text).texts)
    assert "'fit' failed: the loss became NaN." in texts
    assert "'step' failed: the worker was killed by SIGKILL, as by the system when memory ends." in texts
    assert "FAILED: nan" in texts
    assert "FAILED: killed" in texts
    steps = re.findall(r'<tr><th scope="row">step</th><td class="n f">([^<]*)</td>', text)
    assert steps[0] == "100 ms", "one process gives no error"


def test_only_the_cell_with_the_problem_is_marked(tmp_path: Path) -> None:
    text = page(tmp_path, measured("1", [0.1]), measured("2", [0.1], loop="fit", placement=misplaced()))
    (row,) = re.findall(r'<tr class="alarm">.*?where it ran.*?</tr>', text)
    assert re.findall(r'<td class="([\w ]*)">(\w+)', row) == [("n", "CPU"), ("n wrong", "NOT")]


def test_a_report_on_10_000_results_stays_under_10_megabytes_and_lists_them_all(tmp_path: Path) -> None:
    template = measured("ID", [0.1, 0.11, 0.12], group="GROUP", params={"batch": 32}).model_dump_json()
    for n in range(10_000):
        text = template.replace('"ID"', f'"20260102T030405{n % 1000:03d}-{n:08x}"').replace('"GROUP"', f'"g{n // 24}"')
        text = re.sub(r'"key":"\w+"', f'"key":"{n:016x}"', text).replace('"batch":32', f'"batch":{n}')
        (tmp_path / f"{n}.json").write_text(text, encoding="utf-8")
    rendered = html.render(compose(*api.report(tmp_path, 0.02)), "1.2.3")
    assert len(rendered.encode()) < 10_000_000
    assert rendered.count("<svg ") == 20 * 3
    assert rendered.partition('id="all-results"')[2].count('<th scope="row">') == 10_000
    assert "9,520 further results have no chapter" in rendered


def test_a_failed_chapter_begins_with_the_cause_and_the_list_names_what_was_varied(tmp_path: Path) -> None:
    failed = measured("1", [], status="failed", failure=killed(), summary=Summary(), samples=[], params={"batch": 64})
    again = [measured(str(n), [0.1], params={"batch": 16}, group=str(n)) for n in (2, 3)]
    text = page(tmp_path, failed, *again)
    assert text.index("about to allocate") < text.index("Side by side")
    assert "cifar on cpu, as-written, batch 64" in text
    assert "cifar on cpu, as-written, batch 16" in text


def test_repeated_runs_are_listed_and_the_newest_has_the_chapter(tmp_path: Path) -> None:
    runs = [measured(str(n), [0.1 + n / 100], group=str(n)) for n in range(3)]
    text = page(tmp_path, *runs)
    assert "The newest of 3 runs." in text
    all_results = text.partition('id="all-results"')[2]
    assert re.findall(r"<td[^>]*>(1\d0 ms)", all_results) == ["120 ms", "110 ms", "100 ms"]


def test_the_list_of_all_results_says_how_many_it_omits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose_module, "MAX_ROWS", 2)
    text = page(tmp_path, *(measured(str(n), [0.1], group=str(n)) for n in range(3)))
    assert "The newest 2 of 3 results" in text


def test_an_error_says_how_to_install_a_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = compose(*api.report(folder(tmp_path, measured("1", [0.1])), 0.02))
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(UsageError, match="an HTML report needs vl_convert") as raised:
        html.render(report, "1.2.3")
    assert "pip install '.[report]'" in raised.value.hint


def test_charts_accept_distant_ratios_single_values_and_zero_seconds() -> None:
    chart = ratios.draw([Ratio("a", 0.001, 0.0009, 0.0011, "faster"), Ratio("b", 900.0, None, None, "?")], 0.02)
    assert chart.count("<text") >= 6
    assert "NaN" not in chart
    assert "NaN" not in phases.draw([Segment("a", 1, 0.0, phases.colour("import"))])
    assert "NaN" not in steps.draw([Spread("a", [0.1], 0.1, 0.1, 0.1)])


def test_the_page_replaces_every_colour_of_a_chart_except_those_of_phases(pair: str) -> None:
    drawings = "".join(re.findall(r"<svg.*?</svg>", pair, re.DOTALL))
    used = set(re.findall(r'(?:fill|stroke)="(#\w+|\w+)"', drawings))
    replaced = {vega.INK, vega.MUTED, vega.GRID, vega.ACCENT, vega.BAND, vega.ON_COLOUR}
    assert used - replaced - set(phases.PALETTE.values()) <= {"none", "transparent"}
    assert replaced <= used


@pytest.fixture(scope="module")
def analyses(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a page with an explanation and a sweep."""
    path = tmp_path_factory.mktemp("analyses")
    results = ladder_results()
    files.write_explanation(explanation(results), folder(path, *results, *sweep_results()))
    return html.render(compose(*api.report(path, 0.02)), "1.2.3")


def test_an_explanation_shows_waterfall_findings_what_ifs_roofline_and_trace(analyses: str) -> None:
    for title in (
        "What to change first",
        "Where the time of a step goes",
        "Findings",
        "What-ifs",
        "Roofline",
        "Profiler trace",
    ):
        assert f"<h3>{title}</h3>" in analyses
    assert "40% of it is the program&#39;s own loop" in analyses
    assert "Slowest stage: &lt;map&gt; (mine.py line 12)" in analyses
    assert "Slow input: &lt;map&gt; (mine.py line 12)." in analyses
    assert "Fastest configuration measured: devbench run cifar --xla on" in analyses
    assert "missing fusion" in analyses
    assert "the lowest level of the ladder takes 20%" in analyses
    assert "55% of the compute peak" in analyses
    labels = re.findall(r'aria-label="(Waterfall[^"]*)"', analyses)
    assert len(labels) == 1
    assert "input 20%" in labels[0]
    assert "copies at most" in labels[0] or "copies −1%" in labels[0]


def test_a_sweep_has_a_chart_with_the_crossing_and_a_table(analyses: str) -> None:
    assert "dense-inference over batch 1 to 256" in analyses
    assert "cuda, as-written overtakes cpu, as-written at batch 16" in analyses
    (label,) = re.findall(r'aria-label="(Step time over batch[^"]*)"', analyses)
    assert "crossing at batch 16" in label
    assert analyses.count(">batch 256<") == 1


def test_charts_of_analyses_have_marks_and_only_colours_that_suit_a_dark_page(analyses: str) -> None:
    drawings = re.findall(r"<svg.*?</svg>", analyses, re.DOTALL)
    assert len(drawings) >= 5
    assert all("NaN" not in drawing and drawing.count("<path") > 3 for drawing in drawings)
    used = set(re.findall(r'(?:fill|stroke)="(#\w+)"', "".join(drawings)))
    replaced = {vega.INK, vega.MUTED, vega.GRID, vega.ACCENT, vega.BAND, vega.ON_COLOUR}
    assert used - replaced - set(phases.PALETTE.values()) <= set(curves.COLOURS)


def test_a_grid_or_an_axis_of_words_has_only_a_table(tmp_path: Path) -> None:
    points = [
        measured(str(n), [0.01 * (n + 1)], params={"place": place, "batch": batch}, purpose="sweep", parent="grid",
                 group=str(n))
        for n, (place, batch) in enumerate((p, b) for p in ("serial", "model") for b in (8, 16))
    ]  # fmt: skip
    (chapter,) = compose(*api.report(folder(tmp_path, *points), 0.02)).chapters
    assert [type(part).__name__ for part in chapter.sections[0].content] == ["Table"]
    assert "place serial, batch 8" in html.render(compose(*api.report(tmp_path, 0.02)), "1.2.3")
