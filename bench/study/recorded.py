"""What all studies share: the folders of their results, the handling of signals, and the report to the hub."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.config.notation import write
from bench.config.settings import RunSettings
from bench.errors import Interrupted
from bench.model.result import Result
from bench.model.run_state import Listener
from bench.model.spec import ROLES
from bench.publish.recorder import Recorder, recording, silent
from bench.signals import interruptible
from bench.store import files

NOT_IN_TITLE = ("args", "data_dir", "param")
"""Settings that define a spec and are not named in a title, or are shown in another way."""


def title_of(programs: Sequence[str | Path], settings: RunSettings) -> str:
    """Return what a study was asked for, such as "cifar, batch=32" or "train.py --lr 0.1, dtype=float64".

    This names the programs, the arguments of a script, and all settings that define a spec and are not the defaults.

    Args:
        programs: The programs, as the user named them.
        settings: The settings of the study.
    """
    names = ", ".join(Path(name).name if str(name).endswith((".py", ".ipynb")) else str(name) for name in programs)
    program = f"{names} {shlex.join(settings.args)}" if settings.args else names
    assigned = [f"{name}={value}" for name, value in {**settings.param, **settings.vary}.items()]
    for option in (option for role in ROLES.values() for option in role.options if option not in NOT_IN_TITLE):
        field, value = RunSettings.model_fields[option], getattr(settings, option)
        if value != field.default and option not in settings.vary:
            text = ",".join(value) if isinstance(value, dict) else write(field, value)
            assigned.append(f"{option}={text}")
    return ", ".join([program, *assigned])


@contextmanager
def keeping(kept: Callable[[], tuple[Sequence[Result], Any]]) -> Iterator[None]:
    """Add what was measured to an interruption that has no results yet, such as one between two sessions.

    Args:
        kept: Returns the results so far, and the document that they make. None if they make none.
    """
    try:
        yield
    except Interrupted as error:
        if error.results:
            raise
        raise Interrupted(error.signum, *kept()) from None


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
