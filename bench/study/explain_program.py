"""The program of an explanation: one program, one backend and one environment, with steps to explain."""

from __future__ import annotations

from bench import registry
from bench.config.settings import RunSettings
from bench.errors import NotApplicable, SettingsError
from bench.model.plan import Planned
from bench.registry.description import Resolved
from bench.study.plan import plan


def program_of(workload: str, settings: RunSettings) -> Planned:
    """Return the program to explain.

    Raises:
        NotApplicable: The settings name more than one.
        SettingsError: The settings vary something.
    """
    if settings.vary:
        raise SettingsError(
            "explain does not take --vary", "It tries what-ifs by itself. To compare values, use `devbench run`."
        )
    (group,) = plan([workload], settings)
    if max(len(settings.backend), len(settings.loop), len(settings.env)) > 1:
        raise NotApplicable(
            "explain takes one program, one backend and one environment",
            "Name one --backend, at most one --loop, and at most one --env.",
        )
    if len(group.planned) > 1:
        cases = [str(planned.spec.case) for planned in group.planned]
        raise NotApplicable(
            f"{workload} has several cases: {', '.join(cases)}", f"Name one, for example --case {cases[0]}."
        )
    return group.planned[0]


def offers_of(program: Planned, workload: str, settings: RunSettings) -> Resolved:
    """Return what the workload of a program offers.

    Raises:
        NotApplicable: It has no steps.
    """
    resolved = registry.resolve(workload, program.spec.params, settings.worker_timeout)
    if "probes" in resolved.offers:
        raise NotApplicable(
            f"{program.spec.title} has no steps to explain: it times single operations",
            "Use `devbench run` to measure them.",
        )
    return resolved
