"""A run's metrics while it lives: served from its start, kept for a last scrape after its end, pushed when it is over.

Without `--metrics-port` and `--pushgateway` nothing of this is loaded.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bench.config.settings import RunSettings
from bench.errors import DeviceAbsent, Interrupted
from bench.model.result import Result
from bench.model.run_state import Listener, Progress

if TYPE_CHECKING:
    from bench.publish.prometheus.collector import Metrics

Save = Callable[[Result], Path]
Say = Callable[[str], None]


class Serving:
    """What a run's listener and its way to save go through, so that the metrics hear of both.

    Args:
        settings: of the run.
        metrics: what hears; none where no metrics are asked for.
        say: tells the user something.
    """

    def __init__(self, settings: RunSettings, metrics: Metrics | None, say: Say) -> None:
        self.settings = settings
        self.metrics = metrics
        self.say = say

    def listening(self, listener: Listener) -> Listener:
        """A listener that tells the metrics too."""
        metrics = self.metrics
        if metrics is None:
            return listener

        def both(progress: Progress) -> None:
            metrics(progress)
            listener(progress)

        return both

    def saving(self, save: Save) -> Save:
        """A way to save that tells the metrics too, and pushes a run that is over once it is on disk."""
        metrics = self.metrics
        if metrics is None:
            return save

        def saved(result: Result) -> Path:
            path = save(result)
            metrics.refresh(result)
            if result.stop is not None and result.purpose == "run" and self.settings.pushgateway is not None:
                self._push(metrics, result, self.settings.pushgateway)
            return path

        return saved

    def _push(self, metrics: Metrics, result: Result, url: str) -> None:
        from http.client import HTTPException

        from bench.publish.prometheus.exporter import push

        one = metrics.only(result)
        try:
            push(one, url, one.group)
        except (OSError, HTTPException) as error:
            self.say(f"warning: the metrics of {result.spec.label} could not be pushed: {error}; its result is kept")

    def linger(self) -> None:
        """Waits for a last scrape, where a run came to its end; a first SIGINT or SIGTERM ends that."""
        from bench.signals import interruptible

        seconds = lingering(self.settings)
        if self.metrics is None or not self.metrics.over or not seconds or self.settings.metrics_port is None:
            return
        sys.stdout.flush()
        with suppress(Interrupted), interruptible():
            self.say(f"metrics: served for another {seconds:g} s, for a last scrape; Ctrl-C or SIGTERM ends that")
            time.sleep(seconds)


def lingering(settings: RunSettings) -> float:
    """Seconds for which the metrics outlive the run: those asked for, or twice the scrape interval."""
    return 2 * settings.scrape_interval if settings.linger is None else settings.linger


@contextmanager
def serving(settings: RunSettings, say: Say = lambda line: None) -> Iterator[Serving]:
    """Serves the metrics that the settings ask for within, and for the time to linger after it.

    Raises:
        SettingsError: the port can't be had.
    """
    if settings.metrics_port is None and settings.pushgateway is None:
        yield Serving(settings, None, say)
        return
    import typer

    from bench.publish.prometheus.collector import Metrics
    from bench.publish.prometheus.exporter import served

    metrics = Metrics()
    with ExitStack() as stack:
        if settings.metrics_port is not None:
            url = stack.enter_context(served(metrics, settings.metrics_host, settings.metrics_port))
            say(f"metrics: {url}")
        made = Serving(settings, metrics, say)
        try:
            yield made
        except typer.Exit:  # a command's own end, after all that it had to show
            made.linger()
            raise
        except DeviceAbsent as error:
            say(f"error: {error.message}")  # in full at the end, which is far
            made.linger()
            raise
        made.linger()
