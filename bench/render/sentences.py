"""Verdicts and levels as sentences, with the digits that their intervals bear."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bench.analyse import stats
from bench.model.comparison import Comparison
from bench.model.result import Result
from bench.render import numbers
from bench.render.terminal.verdicts import by_the_mean


def level(result: Result) -> str:
    """What came out of one result by itself, as the end of a sentence."""
    failed = failure(result)
    step, projection = result.summary.step_seconds, result.projection
    if step is None:
        series = len(result.summary.series)
        return failed or (f"{series} things were timed one by one" if series else "no step was measured")
    told = f"a step takes {numbers.interval(step)}"
    if step.low is None:
        told += ", as one process has it, so nobody knows how sure that is"
    if projection is not None:
        told += f"; the whole training {numbers.interval(projection.build_and_fit_seconds)}, projected"
    return f"{failed}; until then {told}" if failed else told


def failure(result: Result) -> str:
    """How it failed; empty where it did not."""
    if result.status != "failed":
        return ""
    why = f": {result.failure.message.rstrip('.')}" if result.failure else ""
    return f"failed{why}"


def verdicts(
    comparisons: Sequence[Comparison], results: Mapping[str, Result], names: Mapping[str, str]
) -> Iterator[str]:
    """What comparisons say, a sentence each; what holds for several alike of one base in one sentence.

    Args:
        comparisons: at least one.
        results: by id.
        names: short names by id.
    """
    yield from _failures(results.values(), names)
    for base, found in _by_base(comparisons).items():
        yield from _against(base, found, results, names)


def _by_base(comparisons: Iterable[Comparison]) -> dict[str, list[Comparison]]:
    """Comparisons by the id of what they are with, in their order."""
    found: dict[str, list[Comparison]] = {}
    for each in comparisons:
        found.setdefault(each.base.id, []).append(each)
    return found


def _against(
    base: str, comparisons: Sequence[Comparison], results: Mapping[str, Result], names: Mapping[str, str]
) -> Iterator[str]:
    """What those with one base say."""
    alive = [each for each in comparisons if results[each.other.id].status != "failed"]
    if results[base].status == "failed":
        if alive:
            yield f"so there is nothing to compare {listed([names[each.other.id] for each in alive])} with"
        return
    fair = [each for each in alive if not each.unfair]
    yield from (_verdict(each, names) for each in fair if each.verdict != "not enough data")
    yield from _seldom([each for each in fair if each.verdict == "not enough data"], names)
    unfair: dict[str, list[str]] = {}
    for each in alive:
        if each.unfair:
            unfair.setdefault(each.unfair[0].reason.rstrip("."), []).append(names[each.other.id])
    for why, whose in unfair.items():
        yield f"no fair comparison of {listed(whose)} with {names[base]}: {why}"


def _failures(results: Iterable[Result], names: Mapping[str, str]) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for each in results:
        if failed := failure(each):
            found.setdefault(failed, []).append(names[each.id])
    for failed, whose in found.items():
        yield f"{listed(whose)} {failed}"


def _verdict(found: Comparison, names: Mapping[str, str]) -> str:
    base, other, ratio = names[found.base.id], names[found.other.id], found.ratio
    assert ratio is not None
    takes = f"{other} takes {numbers.times(ratio)} as long as {base} per {found.unit}"
    within = f"the difference is within {numbers.percent(found.threshold)}"
    units = "trials" if found.paired else "processes a side"
    more = f"; about {found.needed_units} {units} would settle it" if found.needed_units else ""
    seldom = f"; {told}" if (told := by_the_mean(found)) else ""
    said = {
        "faster": f"{other} is {numbers.times(stats.inverse(ratio))} as fast as {base} per {found.unit}",
        "slower": takes,
        "same": f"{other} is as fast as {base} per {found.unit}, {within} ({numbers.factor(ratio)})",
        "undecided": f"undecided: {takes}{more}",
    }
    return said[found.verdict] + seldom


def _seldom(found: Sequence[Comparison], names: Mapping[str, str]) -> Iterator[str]:
    """Those without a verdict, with what was seen once."""
    nothing = [names[each.other.id] for each in found if each.ratio is None]
    once = [each for each in found if each.ratio is not None]
    if once:
        base = names[once[0].base.id]
        seen = [f"{names[each.other.id]} {numbers.factor(each.ratio)}" for each in once if each.ratio]
        one = "one trial" if all(each.paired for each in once) else "fewer than two processes a side"
        yield f"no verdict from {one}; seen was, as time per {once[0].unit} over that of {base}: {'; '.join(seen)}"
    if nothing:
        yield f"{listed(nothing)} and {names[found[0].base.id]} have no step time to compare"


def listed(words: Sequence[str]) -> str:
    """Words as a sentence has them: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
