"""The recorder: where a run's results and progress go.

Results go to the results' folder, then to a hub and to the metrics if the settings ask for them. Progress goes to the
metrics, the hub and the listeners. The recorder gets progress only between blocks, so it does not disturb the timing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from bench.config.settings import RunSettings
from bench.model.explanation import Explanation
from bench.model.result import Result
from bench.model.run_state import LargestPart, Listener, LiveProgress
from bench.publish.hub.reporter import Reporter
from bench.publish.hub.reporting import reporting
from bench.publish.prometheus.serving import RunMetrics, serving
from bench.store import files, ids


def silent(line: str) -> None:
    """Show the user nothing."""


class Recorder:
    """Saves and publishes the results of a run, and passes on its progress. Use `recording` to make one.

    Args:
        settings: The settings of the run.
        metrics: The metrics of the run. None if none are asked for.
        warn: Shows the user a message, such as that the hub is unavailable.

    Attributes:
        listeners: Functions that receive progress, in this order.
        explanation: What is explained so far. All further progress shows it.
        largest_part: The largest part so far, in an explanation. All further progress shows it.
        signum: Number of the signal that ended the last wait for the hub. None if none did.
        cut_short: The same, if the hub has not received everything.
    """

    def __init__(
        self, settings: RunSettings, metrics: RunMetrics | None = None, warn: Callable[[str], None] = silent
    ) -> None:
        self.settings = settings
        self.listeners: list[Listener] = []
        self.explanation: Explanation | None = None
        self.largest_part: LargestPart | None = None
        self.signum: int | None = None
        self.cut_short: int | None = None
        self.new_id = ids.namer(settings.run_id)
        self._metrics = metrics
        self._warn = warn
        self._reporter: Reporter | None = None

    @property
    def observed(self) -> bool:
        """Whether others watch this run at a hub or by its metrics, without the messages of the command."""
        return self._metrics is not None or self.settings.hub is not None

    def progress(self, progress: LiveProgress) -> None:
        """Pass progress on."""
        progress.explanation, progress.largest_part = self.explanation, self.largest_part
        if self._metrics is not None:
            self._metrics.progress(progress)
        if self._reporter is not None:
            self._reporter.progress(progress)
        for listener in self.listeners:
            listener(progress)

    def tell(self, line: str) -> None:
        """Show the user a message."""
        self._warn(line)

    def save(self, result: Result) -> Path:
        """Write a result to its file and publish it.

        Returns:
            The file.

        Raises:
            OutputError: The folder is full or cannot be written.
        """
        folder = self.settings.output
        with self._reporter.writing(folder / files.file_name(result)) if self._reporter else nullcontext():
            path = files.write(result, folder)
        if self._reporter is not None:
            self._reporter.saved(result)
        if self._metrics is not None:
            self._metrics.saved(result)
        return path

    def save_explanation(self, explanation: Explanation) -> Path:
        """Write an explanation to its file. The hub gets it when the run ends.

        Raises:
            OutputError: The folder is full or cannot be written.
        """
        folder = self.settings.output
        with self._reporter.writing(files.explanation_file(explanation, folder)) if self._reporter else nullcontext():
            return files.write_explanation(explanation, folder)

    @contextmanager
    def reporting(self, title: str) -> Iterator[None]:
        """Report a run to the hub, from its start to its end, if the settings name a hub.

        A part of a run that is being reported, such as the explanation of a gate, is no run of its own.

        Args:
            title: A short description of the request.

        Raises:
            SettingsError: The hub's token cannot be read.
            OutputError: The outbox cannot be written.
        """
        if self.settings.hub is None or self._reporter is not None:
            yield
            return
        with reporting(self.settings, title, self.new_id, self._warn) as reporter:
            self._reporter = reporter
            try:
                yield
            finally:
                self._reporter = None
        self.signum, self.cut_short = reporter.signum, reporter.cut_short

    def judge(self, results: Sequence[Result]) -> None:
        """Let the report of the run end as failed if one of the results failed."""
        if self._reporter is not None:
            self._reporter.judge(results)


@contextmanager
def recording(
    settings: RunSettings, announce: Callable[[str], None] = silent, warn: Callable[[str], None] = silent
) -> Iterator[Recorder]:
    """Make a recorder. Its metrics are served during the block, and after it for as long as the settings ask.

    Args:
        settings: The settings of the run.
        announce: Shows the user where metrics are served, and whether pushing them failed.
        warn: Shows the user a message about the hub.

    Raises:
        SettingsError: The port for metrics is not free.
    """
    with serving(settings, announce) as metrics:
        recorder = Recorder(settings, metrics, warn)
        yield recorder
        if metrics is not None and recorder.signum is not None:
            metrics.may_linger = False
