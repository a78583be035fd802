"""What draws the charts is a process of its own that comes, goes, and is never missed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from bench.render.charts.engine import Engine

pytestmark = pytest.mark.once

CHART: dict[str, Any] = {
    "data": {"values": [{"a": 1}]},
    "mark": "point",
    "encoding": {"x": {"field": "a", "type": "quantitative"}},
}

ASKS = """
import sys, time
from bench.render.charts.engine import ENGINE
ENGINE.draw({"data": {"values": [{"a": 1}]}, "mark": "point"})
print("drawn", flush=True)
time.sleep(60)
"""


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(charts=3)
    yield made
    made.close()


def children() -> set[psutil.Process]:
    return set(psutil.Process().children())


def ended(process: psutil.Process) -> bool:
    try:
        process.wait(20)
    except psutil.TimeoutExpired:
        return False
    return True


def test_a_chart_is_drawn_again_after_the_engine_was_killed(engine: Engine) -> None:
    before = children()
    first = engine.draw(CHART)
    (own,) = children() - before
    own.kill()
    assert engine.draw(CHART) == first
    assert first.startswith("<svg")


def test_the_engine_is_another_one_after_so_many_charts(engine: Engine) -> None:
    before = children()
    engine.draw(CHART)
    (first,) = children() - before
    for _ in range(2):
        engine.draw(CHART)
    assert ended(first)
    engine.draw(CHART)
    (second,) = children() - before
    assert second != first


def test_an_idle_engine_ends_and_the_next_chart_starts_another() -> None:
    engine, before = Engine(idle=0.2), children()
    first = engine.draw(CHART)
    (own,) = children() - before
    assert ended(own)
    assert engine.draw(CHART) == first
    engine.close()


def test_what_is_no_chart_is_an_error_and_the_next_chart_is_drawn(engine: Engine) -> None:
    with pytest.raises(ValueError, match="Vega-Lite"):
        engine.draw({"mark": 3})
    assert engine.draw(CHART).startswith("<svg")


def test_the_engine_ends_with_whoever_asked_even_if_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", ASKS], stdout=subprocess.PIPE) as asker:
        assert asker.stdout
        assert asker.stdout.readline() == b"drawn\n"
        (own,) = psutil.Process(asker.pid).children()
        asker.kill()
    end = time.monotonic() + 20
    while own.is_running() and own.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end
        time.sleep(0.05)
