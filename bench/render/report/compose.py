"""Composes a report as plain data. Only the results of one chapter are in memory at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from bench.analyse.analysis import Analysis
from bench.model.result import Result
from bench.model.spec_labels import aspects
from bench.render import labels, numbers
from bench.render.report import content
from bench.render.report.document import Chapter, ReportDocument, Row, Table
from bench.render.text import plain
from bench.store.selection import ChapterEntries, Entry, Selection

MAX_ROWS = 10_000
"""Rows in the table of all results. The newest come first."""

COLUMN_HEADS = ("result", "step", "status", "processes", "started (UTC)", "id")


def compose(selection: Selection, analyses: Iterable[Analysis]) -> ReportDocument:
    """Compose the report of a folder.

    Args:
        selection: the results of the folder that get a chapter.
        analyses: the analysis of each chapter's results, in the order of the chapters.

    Raises:
        DataError: a file in the folder is not a result.
    """
    pairs = zip(selection.chapters, analyses, strict=True)
    chapters, columns = [], []
    for number, (entries, analysis) in enumerate(pairs, 1):
        chapters.append(_chapter(entries, analysis, number))
        columns.append(_common(analysis.results))
    dates = [numbers.timestamp(entries.newest) for entries in selection.chapters]
    titles = _distinct([chapter.title for chapter in chapters], columns, dates)
    chapters = [replace(chapter, title=title) for chapter, title in zip(chapters, titles, strict=True)]
    name = plain(selection.folder.resolve().name) or "results"
    return ReportDocument(f"devbench: {name}", _about(selection), tuple(chapters), _all_results(selection))


def _common(results: Sequence[Result]) -> dict[str, str]:
    """Return what the specs of a chapter's results have in common, in words, by the names of fields and parameters."""
    columns = [aspects(result.spec) for result in results]
    first = columns[0] if columns else {}
    return {name: text for name, text in first.items() if all(other.get(name) == text for other in columns)}


def _distinct(titles: Sequence[str], columns: Sequence[Mapping[str, str]], dates: Sequence[str]) -> list[str]:
    """Return titles of which none is repeated, because links with the same text should lead to the same place.

    Repeated titles get what differs between the specs of their chapters, and repetitions of a spec get the date.

    Args:
        titles: the titles of all chapters.
        columns: what the specs of each chapter have in common, in words.
        dates: when the newest result of each chapter started.
    """
    named = []
    for title, column in zip(titles, columns, strict=True):
        same = [other for other, other_title in zip(columns, titles, strict=True) if other_title == title]
        varying = [name for name in column if name != "file" and len({other.get(name) for other in same}) > 1]
        named.append((title, [text for name in varying if (text := column[name])]))
    shown = []
    for (title, texts), date in zip(named, dates, strict=True):
        details = [*texts, date] if named.count((title, texts)) > 1 else texts
        shown.append(plain(f"{title} ({', '.join(details)})") if details else title)
    return shown


def _chapter(entries: ChapterEntries, analysis: Analysis, number: int) -> Chapter:
    shown, provenance = content.of(analysis), _provenance(entries, analysis.results)
    return Chapter(f"chapter-{number}", shown.title, shown.sentences, provenance, shown.sections)


def _provenance(entries: ChapterEntries, results: Sequence[Result]) -> str:
    """Return sentences about how and when results were measured, and how many are not shown."""
    sentences = [_session(entries, results), f"Started {numbers.timestamp(results[0].created)} UTC."]
    if entries.runs > 1:
        if not entries.grouped and len(results) > 1:
            sentences.append(f"Each is the newest of up to {entries.runs} runs.")
        else:
            sentences.append(f"The newest of {entries.runs} runs.")
    if entries.explanation is not None and entries.hidden:
        hidden = numbers.count(
            len(entries.hidden), "result of what-ifs and peaks is", "results of what-ifs and peaks are"
        )
        sentences.append(f"{hidden} only in the list of all results.")
    elif entries.hidden:
        hidden = numbers.count(len(entries.hidden), "more result is", "more results are")
        sentences.append(f"{hidden} only in the list of all results.")
    return " ".join(sentences)


def _session(entries: ChapterEntries, results: Sequence[Result]) -> str:
    """Return a sentence about whether and how results were measured together."""
    if entries.sweep:
        points = len({result.group for result in results})
        interleaved = ", each with its curves interleaved" if len(results) > points else ""
        return f"A sweep of {numbers.count(points, 'point')}{interleaved}."
    if entries.grouped and len(results) + len(entries.hidden) > 1:
        trials = numbers.count(max((result.stop.trials for result in results if result.stop), default=0), "trial")
        specs = numbers.count(len(results), "spec")
        if all(result.interleaved for result in results):
            return f"{specs}, interleaved in {trials}."
        return f"{specs}, whole processes alternated in {trials}."
    if len(results) > 1:
        return f"{len(results)} results, measured separately. Changes of the machine in between affect their ratios."
    return "Measured alone."


def _about(selection: Selection) -> tuple[str, ...]:
    started = numbers.period(selection.entries[0].created, selection.entries[-1].created)
    sentences = [f"{numbers.count(len(selection.entries), 'result')}, started {started} UTC."]
    if selection.repeated:
        older = numbers.count(selection.repeated, "older result has", "older results have")
        sentences.append(f"If a run was repeated, only the newest has a chapter. {older} none.")
    if selection.omitted:
        omitted = numbers.count(selection.omitted, "further result has", "further results have")
        sentences.append(f"{omitted} no chapter, because a report holds a limited number. The newest are shown.")
    return tuple(sentences)


def _all_results(selection: Selection) -> Table | None:
    """Return a row for each result, newest first; None if each has a chapter."""
    if not selection.repeated and not selection.omitted and not any(entries.hidden for entries in selection.chapters):
        return None
    newest = selection.entries[: -MAX_ROWS - 1 : -1]
    total = len(selection.entries)
    caption = "All results" if total <= MAX_ROWS else f"The newest {MAX_ROWS:,} of {total:,} results"
    names = labels.names(
        [labels.Listed(entry.label, entry.purpose, *entry.identity) for entry in newest], selection.specs
    )
    return Table(caption, COLUMN_HEADS, tuple(map(_row, newest, names)))


def _row(entry: Entry, name: str) -> Row:
    step = "–" if entry.step is None else numbers.interval(entry.step)
    cells = (step, entry.status, str(entry.processes), numbers.timestamp(entry.created), plain(entry.id))
    return Row(name, cells, "" if entry.status == "complete" else "alarm")
