"""What all studies share: the folders of their results, the handling of signals, and the report to the hub."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.config.settings import RunSettings
from bench.model.run_state import Listener
from bench.publish.recorder import Recorder, recording, silent
from bench.signals import interruptible
from bench.store import files


@contextmanager
def recorded(
    settings: RunSettings,
    title: str,
    recorder: Recorder | None = None,
    listener: Listener | None = None,
    warn: Callable[[str], None] | None = None,
) -> Iterator[Recorder]:
    """Prepare the folders, then handle signals and report to the hub during the block.

    Args:
        settings: The settings of the study.
        title: A short description of the request.
        recorder: Saves and publishes results. Default: one made from the settings.
        listener: Receives progress. Default: none.
        warn: Shows the user a message about the hub. Default: none is shown. Not used with `recorder`.

    Yields:
        The recorder.

    Raises:
        OutputError: A folder cannot be written.
        SettingsError: The port for metrics is not free, or the hub's token cannot be read.
        Interrupted: SIGINT or SIGTERM in the main thread.
    """
    if recorder is None:
        with (
            recording(settings, warn=warn or silent) as new_recorder,
            recorded(settings, title, new_recorder, listener) as record,
        ):
            yield record
        return
    if listener is not None:
        recorder.listeners.append(listener)
    with interruptible():
        files.prepare(settings.output)
        if settings.profile is not None:
            files.prepare(settings.profile, "--profile")
        with recorder.reporting(title):
            yield recorder
