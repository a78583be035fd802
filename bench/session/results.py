"""The results of a session: empty at its start, completed by its workers and at its end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from bench.analyse.same_answer import check_same_answer
from bench.analyse.samples import has_measurements
from bench.analyse.summary import summarize
from bench.analyse.warnings import add_warnings
from bench.backends import recorded_prefixes
from bench.config.settings import RunSettings
from bench.machine.environment import host
from bench.machine.installed import TENSORFLOWS
from bench.model.environment import Environment
from bench.model.failure import Failure
from bench.model.plan import Group, Planned
from bench.model.result import Price, Result, Stop
from bench.publish.recorder import Recorder
from bench.session.design import Design
from bench.session.worker_sample import WorkerSample
from bench.version import __version__


def new_results(group: Group, settings: RunSettings, design: Design, recorder: Recorder) -> list[Result]:
    """Return an empty result for each spec of a group. Their creation times are in the order of the specs."""
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


def copy_common(worker: WorkerSample, result: Result) -> None:
    """Copy from a worker to its result what holds for all processes.

    The result fails if the step ran on another device, or if the worker imported another TensorFlow.
    """
    sample = worker.sample
    if worker.events.framework is not None:
        result.environment.framework, result.environment.device = worker.events.framework, worker.events.device
        result.fingerprint = result.environment.fingerprint()
        result.failure = result.failure or _other_tensorflow(result)
    if result.placement is None and sample.placement is not None:
        result.placement = sample.placement
        if not sample.placement.on_device:
            message = f"no evidence that the step ran on {sample.placement.requested_device}: {sample.placement.reason}"
            hint = "The result keeps its times, but they say nothing about that device."
            result.failure = Failure(kind="placement", message=message, hint=hint)


def summarize_planned(result: Result, planned: Planned) -> None:
    """Compute a result's summary and projection anew, for the steps that its workload or its script has."""
    recognized = result.recognition.total_steps if result.recognition else None
    summarize(result, planned.total_steps or recognized, planned.examples)


def conclude(results: Sequence[Result], stop: Stop) -> None:
    """Complete the results of a session: their status, the same-answer check and warnings.

    Args:
        results: All results of the session, summarized.
        stop: Why the session stopped. A failed result stopped because it failed.
    """
    for result in results:
        result.stop = stop.model_copy(update={"reason": "failed"} if result.failure else {})
        is_partial = stop.reason == "interrupted" or not (result.failure or has_measurements(result))
        result.status = "failed" if result.failure else "partial" if is_partial else "complete"
    check_same_answer(results)
    for result in results:
        add_warnings(result)


def _other_tensorflow(result: Result) -> Failure | None:
    """Return a failure if the worker did not import the TensorFlow of its environment. None if it did."""
    env, imported = result.spec.env, result.environment.tensorflow
    installed = [env.packages[name] for name in TENSORFLOWS if name in env.packages] if env else []
    if env is None or imported is None or not installed or _release(imported) in map(_release, installed):
        return None
    return Failure(
        kind="error",
        message=f"the environment {env.name} has TensorFlow {installed[0]}, but its worker imported {imported}",
        hint="Another TensorFlow comes first on its import path. Check PYTHONPATH and the folder of the program.",
    )


def _release(version: str) -> list[str]:
    """Return major, minor and patch. The rest of a version is written in several ways."""
    return re.findall(r"\d+", version)[:3]
