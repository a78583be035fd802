"""The search for the first version or commit that is slower.

Each version or commit races against a good one, so that the noise of the machine does not decide. What does not run is
skipped, as `git bisect skip` does. If the bad end is also slower than the first bad one, there is another slow-down
after it.

A race may end undecided, because its interval contains the threshold of `compare`. The slow-down of the bad end is
known by then. If the whole interval lies below or above half of that slow-down, on a logarithmic scale, this decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.errors import DevbenchError, UsageError
from bench.model.bisection import Bisection, Found, Race, SlowDown


class NotSlower(DevbenchError):
    """The bad end is not slower than the good end."""


@dataclass
class Search:
    """Searches a chain.

    Args:
        bisection: the chain, with the races that are known from an earlier, interrupted search.
        race: function that races two names of the chain.
        save: called after each race.
    """

    bisection: Bisection
    race: Callable[[str, str], Race]
    save: Callable[[], object]
    _known: dict[tuple[str, str], Race] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = {(race.name, race.against): race for race in self.bisection.races}
        self.bisection.slow_downs = []

    def run(self) -> None:
        """Find all slow-downs.

        Raises:
            UsageError: one of the ends does not run.
            NotSlower: the bad end is not slower than the good end.
        """
        chain = self.bisection.chain
        good, bad = 0, len(chain) - 1
        ends = self._race(bad, good)
        if ends.verdict == "skipped":
            raise UsageError(f"{ends.name} cannot race against {ends.against}: {ends.reason}", "Choose other ends.")
        if ends.verdict == "undecided":
            raise NotSlower(
                f"{ends.name} may be slower than {ends.against}: the race is undecided",
                "Give each race more time, such as --max-time 10m.",
            )
        if ends.verdict == "good":
            raise NotSlower(
                f"{ends.name} is not slower than {ends.against}", "Choose other ends, or a smaller --threshold."
            )
        while True:
            first = self._first_bad(good, bad)
            if first == bad or self._race(bad, first).verdict != "bad":
                return
            good = first

    def _first_bad(self, good: int, bad: int) -> int:
        """Add the first slow-down between a good and a bad place of the chain. Return its place."""
        chain, start = self.bisection.chain, good
        skipped: set[int] = set()
        while True:
            places = [place for place in range(good + 1, bad) if place not in skipped]
            if not places:
                break
            middle = min(places, key=lambda place: abs(2 * place - good - bad))
            verdict = self._verdict(self._race(middle, start), self._race(bad, start))
            if verdict in ("skipped", "undecided"):
                skipped.add(middle)
            elif verdict == "bad":
                bad = middle
            else:
                good = middle
        ratio = self._race(bad, start).ratio
        assert ratio is not None
        between = [chain[place] for place in range(good + 1, bad)]
        self.bisection.slow_downs.append(
            SlowDown(first_bad=chain[bad], last_good=chain[good], skipped=between, ratio=ratio)
        )
        return bad

    @staticmethod
    def _verdict(race: Race, slow: Race) -> Found:
        """Return the verdict of a race. If it is undecided, half of a known slow-down may decide."""
        ratio = race.ratio
        if race.verdict != "undecided" or ratio is None or ratio.low is None or ratio.high is None:
            return race.verdict
        half = math.sqrt(slow.ratio.value) if slow.ratio is not None else math.nan
        return "good" if ratio.high < half else "bad" if ratio.low > half else "undecided"

    def _race(self, place: int, against: int) -> Race:
        """Race two places of the chain, unless they have raced before."""
        pair = self.bisection.chain[place], self.bisection.chain[against]
        if pair not in self._known:
            race = self._known[pair] = self.race(*pair)
            self.bisection.races.append(race)
            self.save()
        return self._known[pair]
