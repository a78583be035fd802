"""A run's report to the hub that its settings name, from its start to its end, however it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone

from bench.config.settings import RunSettings
from bench.errors import DevbenchError, Interrupted
from bench.machine.environment import deployment
from bench.model.run_state import TITLE, RunState, State
from bench.publish.hub import reporter
from bench.publish.hub.client import connect
from bench.publish.hub.outbox import Outbox
from bench.publish.hub.reporter import Reporter
from bench.version import __version__


@contextmanager
def reporting(
    settings: RunSettings, title: str, new_id: Callable[[], str], warn: Callable[[str], None]
) -> Iterator[Reporter]:
    """Report a run to the hub that the settings name, from its start to its end.

    Args:
        settings: The settings of the run.
        title: A short description of the request.
        new_id: Makes the run's id if the settings name none.
        warn: Shows the user a message about the hub.

    Raises:
        SettingsError: The hub's token cannot be read.
        OutputError: The outbox cannot be written.
    """
    report = _reporter(settings, title, new_id, warn)
    state: State = "failed"
    reason = "internal error of devbench"
    try:
        report.start()
        yield report
        state, reason = report.conclusion
    except Interrupted as error:
        state, reason = "interrupted", error.message
        raise
    except DevbenchError as error:
        reason = error.message
        raise
    finally:
        with suppress(DevbenchError):  # the outcome of the run matters more than its report
            report.end(state, reason)


def _reporter(settings: RunSettings, title: str, new_id: Callable[[], str], warn: Callable[[str], None]) -> Reporter:
    assert settings.hub is not None
    place = deployment()
    run = RunState(
        id=settings.run_id or new_id(),
        attempt=settings.attempt,
        state="running",
        title=title[:TITLE],
        started=datetime.now(timezone.utc),
        devbench=__version__,
        pool=place.pool,
        node=place.node,
    )
    client = connect(settings.hub, settings.hub_token_file)
    wait_end = reporter.WAIT_END
    if "max_time" in settings.model_fields_set:  # a run that should be short should not wait for long
        wait_end = min(wait_end, max(reporter.LEAST_WAIT_END, settings.max_time))
    outbox = Outbox(settings.output, settings.hub)
    return Reporter(client, outbox, run, warn, reporter.HEARTBEAT, settings.hub_wait, wait_end)
