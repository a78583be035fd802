"""A bisection as text: a line for each version or commit that was tested, with a bar, and what was found."""

from __future__ import annotations

from collections.abc import Iterator

from bench.model.bisection import Bisection, SlowDown
from bench.render import numbers
from bench.render.text import WIDTH, filled, plain

BAR = 30
"""Characters of the longest bar. A bar shows what a step takes more than that of the good one."""

SHORT = 12
"""Characters that are shown of a commit's hash."""


def text(bisection: Bisection, width: int = WIDTH) -> str:
    """Return the table and the sentences."""
    place = {name: number for number, name in enumerate(bisection.chain)}
    races = sorted(bisection.races, key=lambda race: (place[race.against], place[race.name]))
    most = max((race.ratio.value - 1 for race in races if race.ratio), default=0.0)
    column = max((len(_short(race.name)) for race in races), default=0)
    lines: list[str] = []
    against = None
    for race in races:
        if race.against != against:
            against = race.against
            lines.append(f"step time relative to {_short(against)}:")
        if race.ratio is None:
            lines.append(f"  {_short(race.name):<{column}}  skipped: {plain(race.reason)}")
        else:
            bar = "█" * round(BAR * max(0.0, race.ratio.value - 1) / most) if most > 0 else ""
            words = f"{numbers.factor(race.ratio)} {race.verdict}"
            lines.append(" ".join(filter(None, [f"  {_short(race.name):<{column}} ", bar, words])))
    lines.append("")
    for sentence in _sentences(bisection):
        lines += filled(sentence, width)
    seconds = sum(race.seconds for race in bisection.races)
    count = len(bisection.races)
    counted = f"{count} race{'s' * (count != 1)}"
    lines += filled(f"{counted} in {numbers.time(seconds)}, {len(bisection.chain)} versions or commits.", width)
    return "".join(f"{line}\n" for line in lines)


def _sentences(bisection: Bisection) -> Iterator[str]:
    """Yield what was found. A slow-down after the first one is relative to the one before it."""
    found = bisection.slow_downs
    if len(found) > 1:
        yield f"{len(found)} versions or commits each add a slow-down:"
    for slow_down, against in zip(found, [bisection.chain[0], *(each.first_bad for each in found)], strict=False):
        yield _sentence(slow_down, against)
    last = [race for race in bisection.races if found and race.against == found[-1].first_bad]
    if any(race.name == bisection.chain[-1] and race.verdict == "undecided" for race in last):
        end, first = _short(bisection.chain[-1]), _short(found[-1].first_bad)
        yield f"It is undecided whether {end} is slower than {first}, so there may be another slow-down."


def _sentence(slow_down: SlowDown, against: str) -> str:
    ratio = numbers.factor(slow_down.ratio)
    if slow_down.skipped:
        names = ", ".join(map(_short, slow_down.skipped))
        return (
            f"slower: {_short(slow_down.first_bad)} takes {ratio} times as long per step as {_short(against)}, and "
            f"{_short(slow_down.last_good)} is not slower. There is no verdict on what lies between them, so it may be "
            f"the first: {names}."
        )
    return f"First slower: {_short(slow_down.first_bad)}. A step takes {ratio} times as long as with {_short(against)}."


def _short(name: str) -> str:
    """Return the name, with commits shortened."""
    is_commit = len(name) == 40 and all(letter in "0123456789abcdef" for letter in name)
    return name[:SHORT] if is_commit else plain(name)
