"""The process that draws charts: it is replaced whenever it ends, without losing a chart."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from bench.render.charts.vega_process import VegaProcess

pytestmark = pytest.mark.once

CHART: dict[str, Any] = {
    "data": {"values": [{"a": 1}]},
    "mark": "point",
    "encoding": {"x": {"field": "a", "type": "quantitative"}},
}

PARENT = """
import sys, time
from bench.render.charts.vega_process import VEGA
VEGA.draw({"data": {"values": [{"a": 1}]}, "mark": "point"})
print("drawn", flush=True)
time.sleep(60)
"""


@pytest.fixture
def vega() -> Iterator[VegaProcess]:
    made = VegaProcess(charts=3)
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


def test_a_chart_is_drawn_again_after_the_process_was_killed(vega: VegaProcess) -> None:
    before = children()
    first = vega.draw(CHART)
    (own,) = children() - before
    own.kill()
    assert vega.draw(CHART) == first
    assert first.startswith("<svg")


def test_the_process_is_replaced_after_its_last_chart(vega: VegaProcess) -> None:
    before = children()
    vega.draw(CHART)
    (first,) = children() - before
    for _ in range(2):
        vega.draw(CHART)
    assert ended(first)
    vega.draw(CHART)
    (second,) = children() - before
    assert second != first


def test_an_idle_process_ends_and_the_next_chart_starts_another() -> None:
    vega, before = VegaProcess(idle=0.2), children()
    first = vega.draw(CHART)
    (own,) = children() - before
    assert ended(own)
    assert vega.draw(CHART) == first
    vega.close()


def test_an_invalid_chart_is_an_error_and_the_next_chart_is_drawn(vega: VegaProcess) -> None:
    with pytest.raises(ValueError, match="Vega-Lite"):
        vega.draw({"mark": 3})
    assert vega.draw(CHART).startswith("<svg")


def test_the_process_ends_with_its_parent_even_if_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == b"drawn\n"
        (own,) = psutil.Process(parent.pid).children()
        parent.kill()
    end = time.monotonic() + 20
    while own.is_running() and own.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end
        time.sleep(0.05)
