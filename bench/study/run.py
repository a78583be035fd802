"""The study behind `devbench run`: a session for each group, and the comparison of the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair_groups
from bench.config.settings import RunSettings
from bench.errors import DeviceAbsent
from bench.model.failure import Failure
from bench.model.plan import Group
from bench.model.result import Result
from bench.model.run_state import Listener
from bench.publish.recorder import Recorder
from bench.session import stopping
from bench.session.design import Design
from bench.session.script_folder import script_folders
from bench.session.session import Session
from bench.study import plan
from bench.study.recorded import keeping, recorded, title_of


def run(
    workloads: Sequence[str | Path],
    settings: RunSettings,
    recorder: Recorder | None = None,
    listener: Listener | None = None,
    warn: Callable[[str], None] | None = None,
    deadline: float | None = None,
    over_epochs: bool = True,
) -> Outcome:
    """Measure workloads. The arguments, results and errors are those of `bench.api.run`.

    `deadline` is the monotonic seconds by which the last trial should end. None if only the settings limit the time.
    `over_epochs` is `Design.over_epochs`. It does not apply if the user set a threshold, which asks for the verdict on
    the steps.
    """
    results: list[Result] = []
    over_epochs = over_epochs and "threshold" not in settings.model_fields_set

    def kept() -> tuple[list[Result], Outcome]:
        return results, Outcome.of(pair_groups(results), settings.threshold)

    title = title_of(workloads, settings)
    with recorded(settings, title, recorder, listener, warn) as record, keeping(kept):
        groups = plan.groups(workloads, settings)
        _require_devices(groups, settings, record)
        # A folder that cannot be used is an error before anything is measured.
        folders = [script_folders(group, settings) for group in groups]
        for group, group_folders in zip(groups, folders, strict=True):
            design = replace(run_design(group), deadline=deadline, over_epochs=over_epochs)
            session = Session(group, settings, design, record, folders=group_folders)
            results.extend(session.results)
            session.run()
        record.judge(results)
    return kept()[1]


def run_design(group: Group) -> Design:
    """Return the design of a run's group. The starts of three trials are measured. A comparison has more time."""
    compares = len(group.planned) > 1
    return Design(
        separate_starts=3,
        fit_pilot=True,
        default_max_time=stopping.COMPARING_SECONDS if compares else None,
        follow_projection=True,
    )


def _require_devices(groups: Sequence[Group], settings: RunSettings, recorder: Recorder) -> None:
    """Raise if a device is absent. If the run is watched at a hub or by its metrics, save failed results for it."""
    try:
        plan.require_devices(settings)
    except DeviceAbsent as error:
        if recorder.observed:
            failure = Failure(kind="device", message=error.message, hint=error.hint)
            for group in plan.without_device(groups, settings):
                Session(group, settings, run_design(group), recorder).refuse(failure)
        raise
