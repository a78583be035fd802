"""The chart of a history."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

import pytest

from bench.render.charts import timeline
from bench.render.charts.timeline import TimelinePoint

pytestmark = pytest.mark.once


def test_a_single_run_is_labelled_with_its_time() -> None:
    start = datetime(2026, 1, 1, 13, 4, 5, 457_000, tzinfo=timezone.utc)
    assert ">13:04:05<" in timeline.draw([TimelinePoint(start, 1.0, 0.9, 1.1)], [])


@pytest.mark.parametrize("interval", [timedelta(minutes=5), timedelta(hours=5)])
def test_times_of_day_are_in_utc_on_a_24_hour_clock(interval: timedelta) -> None:
    start = datetime(2026, 1, 1, 13, 0, tzinfo=timezone.utc)
    chart = timeline.draw([TimelinePoint(start + interval * n, 1.0, 0.9, 1.1) for n in range(4)], [])
    hours = {int(hour) for hour in re.findall(r">(\d\d):\d\d<", chart)}
    assert hours
    assert max(hours) >= 13
    assert not re.search(r">\d\d [AP]M<", chart)
