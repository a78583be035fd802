"""From a folder to a report, as plain data: chapter by chapter, so that only one chapter's results are held whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from bench.analyse.sweep import firsts, sweep_of
from bench.model.explanation import Explanation
from bench.model.result import Result
from bench.render import numbers
from bench.render import sentences as words
from bench.render.report.chapters import Gathered, Listed, Set, gather
from bench.render.report.names import heading
from bench.render.report.parts import Chapter, Report, Row, Section, Table
from bench.render.report.sections import SECTIONS, environments, remarks, verdicts
from bench.render.report.sections import explanation as explained
from bench.render.report.sections import sweep as swept
from bench.render.report.subject import Subject
from bench.render.text import plain

LISTED = 10_000
"""Results in the table of all; of more, the newest."""

HEAD = ("result", "status", "step", "processes", "begun (UTC)", "id")


def compose(folder: Path, threshold: float) -> Report:
    """The report of a folder.

    Args:
        folder: holds results, as `devbench run` writes them.
        threshold: relative difference that matters.

    Raises:
        DataError: the folder is not there, holds no result, or a file in it is none.
    """
    found = gather(folder)
    chapters = [_chapter(each, number, threshold) for number, each in enumerate(found.sets, 1)]
    titles = [each.title for each in chapters]
    chapters = [  # titles that are the same would be links that are the same
        replace(each, title=f"{each.title} ({_moment(chosen.newest)})") if titles.count(each.title) > 1 else each
        for each, chosen in zip(chapters, found.sets, strict=True)
    ]
    name = plain(folder.resolve().name) or "results"
    return Report(f"devbench: {name}", _about(found), tuple(chapters), _everything(found))


@dataclass(frozen=True)
class Told:
    """What results that belong together tell: a title, what came out, and the figures."""

    title: str
    sentences: tuple[str, ...]
    sections: tuple[Section, ...]


def tell(results: list[Result], threshold: float, explanation: Explanation | None = None, sweep: bool = False) -> Told:
    """What a chapter tells.

    Args:
        results: in the order in which they are shown, at least one.
        threshold: relative difference that matters.
        explanation: what was found out by these levels, where they are such.
        sweep: whether they are the points of one.
    """
    made: list[Section | None]
    if sweep:  # of many points only the first of each curve are held against each other
        found, subject = sweep_of(results, threshold), Subject.of(firsts(results), threshold)
        title, sentences = swept.title(found), swept.sentences(found)
        every = remarks.section(replace(subject, results=results))
        made = [*swept.sections(found), environments.section(subject, found.axes), every]
    elif explanation is not None:
        subject = Subject.of(results, threshold)
        title, sentences = explained.title(explanation), explained.sentences(explanation)
        others = (section for make in SECTIONS if make is not verdicts.section and (section := make(subject)))
        made = [*explained.sections(explanation, threshold), *others]
    else:
        subject = Subject.of(results, threshold)
        title, sentences = _named(subject), _sentences(subject)
        made = [make(subject) for make in SECTIONS]
    return Told(plain(title), tuple(map(plain, sentences)), tuple(each for each in made if each is not None))


def _chapter(chosen: Set, number: int, threshold: float) -> Chapter:
    results = chosen.read()
    told = tell(results, threshold, chosen.explanation, chosen.sweep)
    about = _how(chosen, results)
    return Chapter(f"chapter-{number}", told.title, told.sentences, about, told.sections)


def _named(subject: Subject) -> str:
    title, results = heading(subject.results), subject.results
    if len(results) == 1:
        return title
    shown = "; ".join(subject.names[:6]) + ("; …" if len(results) > 6 else "")
    return f"{title}: {shown}"


def _sentences(subject: Subject) -> list[str]:
    results = {each.id: each for each in subject.results}
    if not subject.comparisons:
        return [words.level(each) for each in subject.results]
    return list(words.verdicts(subject.comparisons, results, subject.name_of))


def _how(chosen: Set, results: list[Result]) -> str:
    """How these results were measured and when, and how many are not shown."""
    trials = max((each.stop.trials for each in results if each.stop), default=0)
    if chosen.sweep:
        groups = len({each.group for each in results})
        turns = ", at each of which its curves took turns" if len(results) > groups else ""
        how = f"a sweep of {numbers.several(groups, 'point')}{turns}"
    elif chosen.together and len(results) + len(chosen.hidden) > 1:
        turns = "took turns" if all(each.interleaved for each in results) else "ran as whole processes in turn"
        how = f"{numbers.several(len(results), 'spec')} that {turns} in {numbers.several(trials, 'trial')}"
    elif len(results) > 1:
        how = f"{len(results)} results that were measured apart, so what the machine did meanwhile counts too"
    else:
        how = "measured by itself"
    told = [how, f"begun {_moment(results[0].created)} UTC"]
    if chosen.runs > 1:
        each = "each " if not chosen.together and len(results) > 1 else ""
        told.append(f"{each}the newest of {'as many as ' if each else ''}{chosen.runs} runs")
    if chosen.explanation is not None and chosen.hidden:
        hidden = numbers.several(len(chosen.hidden), "run")
        told.append(f"{hidden} of changes and peaks, in the list of all only")
    elif chosen.hidden:
        told.append(f"{numbers.several(len(chosen.hidden), 'more result')}, in the list of all only")
    return "; ".join(told) + "."


def _about(found: Gathered) -> tuple[str, ...]:
    first, last = (_moment(each.created) for each in (found.results[0], found.results[-1]))
    count = len(found.results)
    when = f"begun {first} UTC" if first == last else f"begun {first} to {last} UTC"
    told = [f"{numbers.several(count, 'result')}, {when}."]
    if found.repeated:
        older = "1 older one has" if found.repeated == 1 else f"{found.repeated:,} older ones have"
        told.append(f"Of repeated runs the newest has a chapter; {older} none.")
    if found.crowded:
        told.append(f"{found.crowded:,} further results have none, for a report holds a limited number, the newest.")
    return tuple(told)


def _everything(found: Gathered) -> Table | None:
    """All results in a line each, newest first; none where each has a chapter."""
    if not found.repeated and not found.crowded:
        return None
    newest = found.results[: -LISTED - 1 : -1]
    more = f", the newest {LISTED:,} of {len(found.results):,}" if len(found.results) > LISTED else ""
    return Table(f"Every result in the folder{more}", HEAD, tuple(map(_line, newest)))


def _line(each: Listed) -> Row:
    step = "–" if each.step is None else numbers.interval(each.step)
    cells = (each.status, step, str(each.processes), _moment(each.created), plain(each.id))
    return Row(plain(each.label), cells, "" if each.status == "complete" else "alarm")


def _moment(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M}"
