"""Pages whose charts cannot be drawn, or not in time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hubs import RunningHub
from synthetic import measured

from bench.hub.web import page_routes
from bench.hub.web.serve import CHARTS
from bench.hub.web.threads import THREADS
from bench.render.charts.vega_process import VEGA, Limits

pytestmark = [pytest.mark.once, pytest.mark.essential]


def page_of_a_result(hub: RunningHub) -> str:
    response = hub.request("GET", "/results/1")
    assert response.status == 200
    return response.data.decode()


def test_a_page_without_its_charts_has_its_tables_and_says_why(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.send(measured("1", [0.1, 0.11]))
    monkeypatch.setattr(VEGA, "limits", CHARTS)
    with VEGA._lock:
        page = page_of_a_result(hub)
    assert "The hub did not draw this chart: other charts are being drawn. See the table." in page
    assert "<svg" not in page
    assert "<table" in page


def test_a_page_says_that_a_chart_took_too_long_or_that_its_process_ended(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.send(measured("1", [0.1, 0.11]))
    VEGA.close()
    monkeypatch.setattr(VEGA, "limits", Limits(seconds=0.001))
    assert "The hub did not draw this chart: a chart took more than 0.001 s. See the table." in page_of_a_result(hub)
    monkeypatch.setattr(VEGA, "limits", CHARTS)
    monkeypatch.setattr(VEGA, "_ask", lambda _: b"")
    assert "The hub did not draw this chart: the process that draws charts ended. See" in page_of_a_result(hub)


def test_a_page_that_waited_for_the_charts_of_others_has_its_tables(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.send(measured("1", [0.1, 0.11]))
    monkeypatch.setattr(page_routes, "CHART_SECONDS", 2.0)
    drawing = threading.Semaphore(0)

    def draw_slowly(chart: Any) -> str:
        drawing.release()
        time.sleep(3)
        return "<svg></svg>"

    monkeypatch.setattr(VEGA, "draw", draw_slowly)
    with ThreadPoolExecutor() as pool:
        first = [pool.submit(page_of_a_result, hub) for _ in range(THREADS["chart"])]
        for _ in first:
            assert drawing.acquire(timeout=60)
        late = pool.submit(page_of_a_result, hub).result()
        assert [page.result().count("<svg") for page in first] == [1] * THREADS["chart"]
    assert "The hub did not draw this chart: the time for the charts of this page was over. See the table." in late
    assert "<svg" not in late
    assert "<table" in late


def test_a_hub_limits_the_time_of_its_charts(tmp_path: Path) -> None:
    """This needs a process of its own, because `serve` changes this one."""
    program = """
import sys
import uvicorn
from bench.config.hub_settings import load
from bench.hub.web.serve import CHARTS, serve
from bench.render.charts.vega_process import VEGA
uvicorn.Server.run = lambda server, sockets: print(VEGA.limits == CHARTS, CHARTS.seconds, CHARTS.wait)
serve(load(database=sys.argv[1], port=0))
"""
    words = [sys.executable, "-c", program, str(tmp_path / "hub.db")]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "True 10 2\n"
