"""A run's metrics: served while it runs and for a last scrape after it, and pushed when a result is done.

Without `--metrics-port` and `--pushgateway` no Prometheus library is loaded.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from bench.config.settings import RunSettings
from bench.errors import DeviceAbsent, Interrupted
from bench.model.result import Result
from bench.model.run_state import LiveProgress
from bench.signals import interruptible

POLL_SECONDS = 0.1
"""Time between two looks for a scrape. `time.sleep` can be interrupted on all systems."""


class RunMetrics:
    """The metrics of a run.

    Args:
        settings: The settings of the run.
        say: Shows the user one line.
    """

    def __init__(self, settings: RunSettings, say: Callable[[str], None]) -> None:
        from bench.publish.prometheus.collector import Metrics

        self.settings = settings
        self.collector = Metrics()
        self.may_linger = True
        self._say = say
        self._began = time.monotonic()
        self._last_scrape: float | None = None

    def progress(self, progress: LiveProgress) -> None:
        """Count what is new of all results under way."""
        self.collector(progress)

    def saved(self, result: Result) -> None:
        """Count what is new of a saved result, and push it if it is done."""
        self.collector.refresh(result)
        if result.stop is not None and result.purpose == "run" and self.settings.pushgateway is not None:
            self._push(result, self.settings.pushgateway)

    def _push(self, result: Result, url: str) -> None:
        from http.client import HTTPException

        from bench.publish.prometheus.exporter import push

        run = self.collector.single(result)
        try:
            push(run, url, run.group)
        except (OSError, HTTPException) as error:
            self._say(f"warning: cannot push the metrics of {result.spec.label}: {error}. The result is kept.")

    def scraped(self, began: float) -> None:
        """Note that a scrape has been answered.

        Args:
            began: When it began, as a value of the monotonic clock.
        """
        self._last_scrape = max(began, self._last_scrape or began)

    def linger(self) -> None:
        """Keep serving if a run has ended: for `--linger`, or until the next scrape. SIGINT or SIGTERM ends the wait.

        Without `--linger`, wait for at most two scrape intervals. A run that lasted for as long and was not scraped
        does not wait, because nothing scrapes it. A failed run waits for the whole time, because an alert needs its
        state for longer than one scrape.
        """
        ended = time.monotonic()
        chosen = self.settings.linger
        seconds = 2 * self.settings.scrape_interval if chosen is None else chosen
        if not self.may_linger or not self.collector.all_ended or not seconds or self.settings.metrics_port is None:
            return
        if chosen is None and self._last_scrape is None and ended - self._began >= seconds:
            return
        until_scraped = chosen is None and not self.collector.any_failed
        sys.stdout.flush()
        extent = f"at most {seconds:g} s" if until_scraped else f"another {seconds:g} s"
        with suppress(Interrupted), interruptible():
            self._say(f"metrics: served for {extent}, for a last scrape. Ctrl-C or SIGTERM ends this.")
            while (left := ended + seconds - time.monotonic()) > 0:
                if until_scraped and self._last_scrape is not None and self._last_scrape >= ended:
                    break
                time.sleep(min(left, POLL_SECONDS))


@contextmanager
def serving(settings: RunSettings, say: Callable[[str], None]) -> Iterator[RunMetrics | None]:
    """Serve the metrics that the settings ask for during the block, and linger after it. Yield None if there are none.

    Raises:
        SettingsError: The port is not free.
    """
    if settings.metrics_port is None and settings.pushgateway is None:
        yield None
        return
    from bench.publish.prometheus.exporter import serve

    metrics = RunMetrics(settings, say)
    with ExitStack() as stack:
        if settings.metrics_port is not None:
            url = stack.enter_context(
                serve(metrics.collector, settings.metrics_host, settings.metrics_port, metrics.scraped)
            )
            say(f"metrics: {url}")
        try:
            yield metrics
        except DeviceAbsent as error:
            say(f"error: {error.message}")  # the full message follows after the wait
            metrics.linger()
            raise
        metrics.linger()
