"""What `devbench bisect` shows."""

from __future__ import annotations

import pytest

from bench.model.bisection import Bisection, Found, Race, SlowDown
from bench.model.interval import Interval
from bench.render.terminal.bisection import BAR, text

pytestmark = pytest.mark.once


def ratio(value: float) -> Interval:
    return Interval(value=value, low=0.99 * value, high=1.01 * value)


def race(name: str, against: str, value: float, verdict: Found) -> Race:
    return Race(name=name, against=against, verdict=verdict, ratio=ratio(value), seconds=10.0)


def test_a_small_slow_down_is_visible_in_the_bars() -> None:
    races = [race("d", "a", 1.05, "bad"), race("b", "a", 1.001, "good"), race("c", "a", 1.05, "bad")]
    found = [SlowDown(first_bad="c", last_good="b", ratio=ratio(1.05))]
    lines = text(Bisection(chain=["a", "b", "c", "d"], races=races, slow_downs=found)).splitlines()
    assert lines[0] == "step time relative to a:"
    assert [line.count("█") for line in lines[1:4]] == [1, BAR, BAR]
    assert "First slower: c. A step takes 1.05 [1.04, 1.06] times as long as with a." in lines
    assert lines[-1] == "3 races in 30.0 s, 4 versions or commits."


def test_each_of_several_slow_downs_is_relative_to_the_one_before_it() -> None:
    races = [race("d", "a", 1.5, "bad"), race("b", "a", 1.2, "bad"), race("d", "b", 1.25, "bad")]
    found = [
        SlowDown(first_bad="b", last_good="a", ratio=ratio(1.2)),
        SlowDown(first_bad="d", last_good="c", ratio=ratio(1.25)),
    ]
    shown = text(Bisection(chain=["a", "b", "c", "d"], races=races, slow_downs=found))
    assert "2 versions or commits each add a slow-down:" in shown
    assert "First slower: d. A step takes 1.25 [1.24, 1.26] times as long as with b." in shown
    races[-1] = race("d", "b", 1.02, "undecided")
    shown = text(Bisection(chain=["a", "b", "c", "d"], races=races, slow_downs=found[:1]))
    assert "each add" not in shown
    assert "It is undecided whether d is slower than b, so there may be another slow-down." in shown
