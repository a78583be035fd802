"""The process that draws charts. It is replaced whenever it ends, and no chart is lost."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest

from bench.render.charts.vega_process import ChartNotDrawn, Limits, VegaProcess

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
    process = VegaProcess(limits=Limits(charts=3))
    yield process
    process.close()


def children() -> set[psutil.Process]:
    return set(psutil.Process().children())


def has_ended(process: psutil.Process) -> bool:
    try:
        process.wait(20)
    except psutil.TimeoutExpired:
        return False
    return True


def test_a_chart_is_drawn_by_a_new_process_after_the_process_was_killed(vega: VegaProcess) -> None:
    earlier = children()
    first = vega.draw(CHART)
    (process,) = children() - earlier
    process.kill()
    assert vega.draw(CHART) == first
    assert first.startswith("<svg")


def test_the_process_is_replaced_after_its_last_chart(vega: VegaProcess) -> None:
    earlier = children()
    vega.draw(CHART)
    (first,) = children() - earlier
    for _ in range(2):
        vega.draw(CHART)
    assert has_ended(first)
    vega.draw(CHART)
    (second,) = children() - earlier
    assert second != first


def test_an_idle_process_ends_and_the_next_chart_starts_a_new_one() -> None:
    vega, earlier = VegaProcess(idle=0.2), children()
    first = vega.draw(CHART)
    (process,) = children() - earlier
    assert has_ended(process)
    assert vega.draw(CHART) == first
    vega.close()


def test_an_invalid_chart_is_an_error_and_the_next_chart_is_drawn(vega: VegaProcess) -> None:
    with pytest.raises(ValueError, match="Vega-Lite"):
        vega.draw({"mark": 3})
    assert vega.draw(CHART).startswith("<svg")


def test_the_process_ends_if_its_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == b"drawn\n"
        (process,) = psutil.Process(parent.pid).children()
        parent.kill()
    deadline = time.monotonic() + 20
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)


SLOW: dict[str, Any] = {
    "data": {"values": [{"a": "slow " * 40_000}]},
    "mark": "point",
    "encoding": {"y": {"field": "a", "type": "nominal"}},
}
"""A chart that takes minutes."""


def test_a_chart_that_takes_too_long_is_given_up_and_the_next_chart_is_drawn() -> None:
    vega = VegaProcess(limits=Limits(seconds=3))
    with pytest.raises(ChartNotDrawn, match="more than 3 s"):
        vega.draw(SLOW)
    vega.limits = Limits(seconds=60)
    assert vega.draw(CHART).startswith("<svg")
    vega.close()


def test_a_thread_waits_for_the_charts_of_others_for_a_limited_time() -> None:
    vega, earlier = VegaProcess(limits=Limits(seconds=5, wait=0.1)), children()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(vega.draw, SLOW)
        while not children() - earlier:
            pass
        with pytest.raises(ChartNotDrawn, match="other charts are being drawn"):
            vega.draw(CHART)
        with pytest.raises(ChartNotDrawn, match="more than 5 s"):
            slow.result()
    vega.close()


def test_a_limited_number_of_threads_waits_for_the_charts_of_others() -> None:
    vega, earlier = VegaProcess(limits=Limits(seconds=5, waiting=0)), children()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(vega.draw, SLOW)
        while not children() - earlier:
            pass
        with pytest.raises(ChartNotDrawn, match="too many other charts"):
            vega.draw(CHART)
        with pytest.raises(ChartNotDrawn, match="more than 5 s"):
            slow.result()
    vega.close()
