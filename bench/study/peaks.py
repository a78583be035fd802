"""The machine's peaks, measured once for each machine, device and TensorFlow, and kept in the user's cache."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from bench.analyse.roofline import fingerprint, peaks_of
from bench.config.settings import RunSettings
from bench.model.result import Result
from bench.model.roofline import Peaks
from bench.model.run_state import Listener
from bench.session.session import Save, Session
from bench.study.plan import plan

TRIALS = 3

KEPT_SECONDS = 7 * 24 * 3600.0
"""After which they are measured again: the week they were measured in may have been a bad one."""

GPU_PARAMS = {"n": "8192", "memory_bytes": str(2**30)}
"""Matrices and arrays that are large enough to keep a GPU busy."""


def peaks_for(
    result: Result, settings: RunSettings, save: Save, listener: Listener, new_id: Callable[[], str]
) -> Peaks | None:
    """The peaks of the machine that a result comes from, which must be this one; none where they can't be measured.

    Args:
        result: whose machine, device, threads and TensorFlow are meant.
        settings: of the run; the workload's own parameters are left out.
        save: writes the peaks' own result.
        listener: told of progress.
        new_id: makes its id.
    """
    kept = cache() / f"peaks-{fingerprint(result)}.json"
    with suppress(OSError, ValidationError):
        if time.time() - kept.stat().st_mtime < KEPT_SECONDS:
            return Peaks.model_validate_json(kept.read_bytes())
    spec = result.spec
    changed = {
        "param": {} if spec.backend == "cpu" else GPU_PARAMS,
        "case": (), "loop": (), "xla": "auto", "dtype": "float32", "compare": False, "change": (),
        "full": False, "profile": None,
        "threads": spec.threads.intra, "backend": (spec.backend,), "max_processes": TRIALS,
    }  # fmt: skip
    asked = settings.model_copy(update=changed)
    (group,) = plan(["peaks"], asked)
    session = Session(group, asked, save, listener, new_id, ("peaks", result.part_of), TRIALS)
    session.run()
    found = peaks_of(session.results[0])
    if found is not None:
        with suppress(OSError):  # a home that can't be written costs a measurement the next time
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(found.model_dump_json(indent=1), encoding="utf-8")
    return found


def cache() -> Path:
    """Where what is measured once a machine is kept."""
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(home) if home else Path.home() / ".cache") / "devbench"
