"""The peaks of the machine, measured once for each device and version of TensorFlow, and stored in the user's cache."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from pydantic import ValidationError

from bench.analyse.roofline import fingerprint, peaks_of
from bench.backends import capabilities
from bench.config.settings import RunSettings
from bench.machine import user_cache
from bench.model.result import Result
from bench.model.roofline import Peaks
from bench.model.spec import ROLES, Spec
from bench.publish.recorder import Recorder
from bench.session.design import Design
from bench.session.session import Session
from bench.session.worker_servers import WorkerServers
from bench.study.plan import plan

TRIALS = 3

PEAKS = Design(purpose="peaks", pilot=TRIALS, default_max_time=300.0, full=False, cold_starts="none", profiled="none")

CACHE_SECONDS = 7 * 24 * 3600.0
"""Age in seconds at which peaks are measured again, because the machine may have been busy."""


def peaks_for(
    result: Result,
    settings: RunSettings,
    recorder: Recorder,
    design: Design | None = PEAKS,
    servers: WorkerServers | None = None,
) -> Peaks | None:
    """Return the peaks of this machine for a result that was measured on it. None if they cannot be measured.

    Args:
        result: The peaks belong to its device, threads and TensorFlow.
        settings: The settings of the run, without the workload's own parameters.
        recorder: Saves the result of the peaks.
        design: How the peaks are measured. None to measure nothing and to use only peaks that are stored.
        servers: The worker servers from which workers are forked. None if all workers are fresh.
    """
    file = user_cache.folder() / f"peaks-{fingerprint(result)}.json"
    with suppress(OSError, ValidationError):
        if time.time() - file.stat().st_mtime < CACHE_SECONDS:
            return Peaks.model_validate_json(file.read_bytes())
    if design is None:
        return None
    own_settings = peaks_settings(result.spec, settings)
    (group,) = plan(["peaks"], own_settings)
    session = Session(group, own_settings, replace(design, parent=result.parent), recorder, servers)
    session.run()
    peaks = peaks_of(session.results[0])
    if peaks is not None:
        with suppress(OSError):  # if the cache cannot be written, the next explanation measures again
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(peaks.model_dump_json(indent=1), encoding="utf-8")
    return peaks


def peaks_settings(spec: Spec, settings: RunSettings) -> RunSettings:
    """Return the settings with which the peaks for a spec are measured.

    Options on which the peaks do not depend have their defaults.
    """
    defaults = {
        option: RunSettings.model_fields[option].get_default(call_default_factory=True)
        for role in ROLES.values()
        if not role.peaks
        for option in role.options
    }
    own = {
        "param": dict(capabilities(spec.backend).peaks),
        "backend": (spec.backend,),
        "threads": spec.threads.intra,
        "compare": False,
        "workdir": None,
        "max_processes": TRIALS,
    }
    return settings.model_copy(update=defaults | own)
