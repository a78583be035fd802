"""The content of a chapter: an outcome, an explanation, a sweep or a scaling study as text, tables and charts.

The hub's pages show the same content.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.analyse.analysis import Analysis, Explained, Scaled, Swept
from bench.analyse.outcome import Outcome
from bench.model.result import Result
from bench.render.labels import common_label
from bench.render.report.document import Section
from bench.render.report.result_set import ResultSet
from bench.render.report.sections import SECTIONS, environments, explanation, failures, messages, scaling, sweep
from bench.render.sentences import result as result_sentences
from bench.render.sentences.comparison import summary
from bench.render.text import plain

LABELS = 6
"""Maximum number of labels in a chapter's title."""


@dataclass(frozen=True)
class Content:
    """The content of a chapter: its title, the outcome in sentences, and the figures."""

    title: str
    sentences: tuple[str, ...]
    sections: tuple[Section, ...]


def of(analysis: Analysis) -> Content:
    """Return the content of the chapter for an analysis."""
    if isinstance(analysis, Swept):
        return _of_sweep(analysis)
    if isinstance(analysis, Scaled):
        return _of_scaling(analysis)
    if isinstance(analysis, Explained):
        return _of_explanation(analysis)
    return _of_outcome(analysis)


def _of_outcome(outcome: Outcome) -> Content:
    """Return the content for results and their comparisons. There is at least one result."""
    results = ResultSet.of(outcome.results, outcome.comparisons)
    return _content(_title(results), _sentences(results), [section(results) for section in SECTIONS])


def _of_explanation(explained: Explained) -> Content:
    """Return the content for an explanation, followed by the sections on its levels."""
    shown, results = explained.explanation, ResultSet.of(explained.results)
    own = explanation.sections(shown, explained.threshold)
    sections = [section(results) for section in SECTIONS] if results.members else []
    title = explanation.title(f"{shown.label}{_batch(results.members)}")
    return _content(title, explanation.sentences(shown), [*own, *sections])


def _of_sweep(swept: Swept) -> Content:
    """Return the content for a sweep, with where its curves ran."""
    shown = swept.sweep
    results = ResultSet.of(swept.results)
    sections = [
        failures.section(results),
        *sweep.sections(shown),
        environments.section(ResultSet.of(swept.first_points), shown.axes),
        messages.section(results),
    ]
    return _content(sweep.title(shown), sweep.sentences(shown), sections)


def _of_scaling(scaled: Scaled) -> Content:
    """Return the content for a scaling study, with where its sizes ran."""
    shown = scaled.study
    results = ResultSet.of(scaled.results)
    sections = [
        failures.section(results),
        *scaling.sections(shown),
        environments.section(ResultSet.of(scaled.sizes), ("workers",)),
        messages.section(results),
    ]
    return _content(scaling.title(shown), scaling.sentences(shown), sections)


def _content(title: str, sentences: Iterable[str], sections: Iterable[Section | None]) -> Content:
    present = tuple(section for section in sections if section is not None)
    return Content(plain(title), tuple(map(plain, sentences)), present)


def _title(results: ResultSet) -> str:
    title = common_label(results.members)
    if len(results.members) == 1:
        return title
    return f"{title}: {'; '.join(results.labels[:LABELS])}" + ("; …" if len(results.labels) > LABELS else "")


def _batch(results: Sequence[Result]) -> str:
    """Return ", batch 64" if all results have this batch, else an empty text."""
    batches = {str(result.spec.params.get("batch", "")) for result in results}
    batch = batches.pop() if len(batches) == 1 else ""
    return f", batch {batch}" if batch else ""


def _sentences(results: ResultSet) -> list[str]:
    if not results.comparisons:
        return [result_sentences.outcome(result) for result in results.members]
    return list(summary(results.comparisons, {result.id: result for result in results.members}, results.label_of))
