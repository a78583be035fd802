"""The chart of a history, as text."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

import pytest

from bench.render.charts.timeline import Moment, history

pytestmark = pytest.mark.once


@pytest.mark.parametrize("apart", [timedelta(minutes=5), timedelta(hours=5)])
def test_times_of_the_day_are_those_of_a_clock_of_24_hours_in_utc(apart: timedelta) -> None:
    begun = datetime(2026, 1, 1, 13, 0, tzinfo=timezone.utc)
    drawn = history([Moment(begun + apart * n, 1.0, 0.9, 1.1) for n in range(4)], [])
    hours = {int(found) for found in re.findall(r">(\d\d):\d\d<", drawn)}
    assert hours
    assert max(hours) >= 13
    assert not re.search(r">\d\d [AP]M<", drawn)
