"""The content of a chapter: an outcome, an explanation or a sweep as text, tables and charts.

The hub's pages show the same content.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.analyse.outcome import Outcome
from bench.analyse.sweep import first_points
from bench.model.explanation import Explanation
from bench.model.result import Result
from bench.model.sweep import Sweep
from bench.render.labels import common_label
from bench.render.report.document import Section
from bench.render.report.result_set import ResultSet
from bench.render.report.sections import SECTIONS, environments, explanation, messages, sweep
from bench.render.sentences import result as result_sentences
from bench.render.sentences.comparison import summary
from bench.render.text import plain

LABELS = 6
"""Labels of results in a chapter's title."""


@dataclass(frozen=True)
class Content:
    """The content of a chapter: its title, the outcome in sentences, and the figures."""

    title: str
    sentences: tuple[str, ...]
    sections: tuple[Section, ...]


def of_outcome(outcome: Outcome) -> Content:
    """Show results and their comparisons. There is at least one result."""
    results = ResultSet.of(outcome.results, outcome.comparisons)
    return _content(_title(results), _sentences(results), [section(results) for section in SECTIONS])


def of_explanation(shown: Explanation, levels: Sequence[Result], threshold: float) -> Content:
    """Show an explanation.

    Args:
        shown: the explanation.
        levels: the results of its levels; none if they have been removed.
        threshold: smallest relative difference that matters, as a share.
    """
    results = ResultSet.of(levels)
    sections = [section(results) for section in SECTIONS] if levels else []
    return _content(
        explanation.title(shown), explanation.sentences(shown), [*explanation.sections(shown, threshold), *sections]
    )


def of_sweep(shown: Sweep, results: Sequence[Result]) -> Content:
    """Show a sweep.

    Args:
        shown: its curves.
        results: all of its points.
    """
    first = ResultSet.of(first_points(results))  # where it ran is the same for all points of a curve
    sections = [
        *sweep.sections(shown),
        environments.section(first, shown.axes),
        messages.section(ResultSet.of(results)),
    ]
    return _content(sweep.title(shown), sweep.sentences(shown), sections)


def _content(title: str, sentences: Iterable[str], sections: Iterable[Section | None]) -> Content:
    present = tuple(section for section in sections if section is not None)
    return Content(plain(title), tuple(map(plain, sentences)), present)


def _title(results: ResultSet) -> str:
    title = common_label(results.members)
    if len(results.members) == 1:
        return title
    return f"{title}: {'; '.join(results.labels[:LABELS])}" + ("; …" if len(results.labels) > LABELS else "")


def _sentences(results: ResultSet) -> list[str]:
    if not results.comparisons:
        return [result_sentences.outcome(result) for result in results.members]
    return list(summary(results.comparisons, {result.id: result for result in results.members}, results.label_of))
