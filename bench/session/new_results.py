"""The empty results with which a session starts."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from bench.backends import recorded_prefixes
from bench.config.settings import RunSettings
from bench.machine.environment import host
from bench.model.environment import Environment
from bench.model.plan import Group
from bench.model.result import Price, Result
from bench.publish.recorder import Recorder
from bench.session.design import Design
from bench.version import __version__


def new_results(group: Group, settings: RunSettings, design: Design, recorder: Recorder) -> list[Result]:
    """Return an empty result for each spec of a group. The times of their creation keep the order of the specs."""
    created = datetime.now(timezone.utc)
    environment = Environment(host=host(prefixes=recorded_prefixes()))
    group_id = recorder.new_id()
    price = None
    if settings.hourly_price is not None:
        price = Price(per_hour=settings.hourly_price, currency=settings.currency)
    return [
        Result(
            id=recorder.new_id(),
            attempt=settings.attempt,
            created=created + timedelta(microseconds=position),
            devbench=__version__,
            spec=planned.spec,
            key=planned.spec.key,
            fingerprint=environment.fingerprint(),
            group=group_id,
            purpose=design.purpose,
            parent=design.parent,
            environment=environment.model_copy(),
            price=price,
            notes=[*planned.notes, *group.not_applicable],
        )
        for position, planned in enumerate(group.planned)
    ]
