"""The fastest configuration that an explanation measured, and the command that runs it."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from bench.analyse import stats
from bench.analyse.explain.gains import gain_of
from bench.analyse.explain.ladder import simultaneous_confidence
from bench.analyse.samples import paired_contrast
from bench.analyse.verdict import verdict
from bench.config.settings import RunSettings, arguments
from bench.model.explanation import Fastest
from bench.model.result import Result
from bench.model.spec import ROLES, Spec
from bench.whatif import WhatIf

REPEATED = [option for role in ROLES.values() if role.several != "list" for option in role.options]
"""Settings that a recommended command repeats. The fastest configuration's own option comes last and overrides them."""


class Tried(NamedTuple):
    """A what-if with its result, and the result of the baseline that it was interleaved with."""

    what_if: WhatIf
    base: Result
    result: Result


def fastest(workload: str, settings: RunSettings, measured: Sequence[Result], tried: Sequence[Tried]) -> Fastest | None:
    """Return the fastest of the what-ifs and their combination. None if none is faster than the program.

    A lower level is not a change to the program, so it does not count. A what-if is tried on one level, so its ratio is
    multiplied by the ratio of that level. No option changes what a script's own loop does, so a what-if that was tried
    on a level of it does not count either.

    Args:
        workload: Name or file.
        settings: The settings of the explanation.
        measured: The levels, the program as written first.
        tried: All what-ifs.
    """
    base = measured[0]
    options: list[tuple[stats.Contrast, str, str, str, Spec]] = []
    ratios = {base.spec.loop: stats.Contrast(0.0, 0.0, math.inf, base.stop.trials if base.stop else 2)}
    for level in measured[1:]:
        contrast = paired_contrast(base, level)
        if contrast is not None:
            ratios[level.spec.loop] = contrast
    for what_if, without, result in tried:
        unit, contrast = gain_of(without, result)
        loop = without.spec.loop
        level_ratio = ratios.get(loop)
        if without.spec.script is not None and loop != base.spec.loop and not _trains_by_fit(base):
            continue
        if contrast is not None and level_ratio is not None and result.failure is None:
            words = what_if.words if loop == base.spec.loop else f"loop {loop} {what_if.words}"
            options.append((level_ratio.plus(contrast), words, unit, what_if.option, without.spec))
    confidence = simultaneous_confidence(len(options))  # the best of many may be faster by chance
    faster = [option for option in options if verdict(option[0].ratio(confidence), settings.threshold) == "faster"]
    if not faster:
        return None
    contrast, words, unit, option, spec = min(faster, key=lambda option: option[0].mean)
    command = _command(workload, settings, spec, option)
    return Fastest(words=words, unit=unit, speedup=contrast.ratio(confidence).inverse, command=command)


def _trains_by_fit(base: Result) -> bool:
    return base.recognition is not None and base.recognition.chosen.kind == "fit"


def repeated(settings: RunSettings) -> list[str]:
    """Return the arguments of the settings that differ from their defaults and change what a program computes."""
    words = []
    for name in REPEATED:
        value = getattr(settings, name)
        if value != RunSettings.model_fields[name].default:
            words += arguments(name, value)
    return words


def place_of(spec: Spec, settings: RunSettings) -> list[str]:
    """Return the arguments that name the Python environment and the folder in which a spec ran."""
    env = {}
    if spec.env and spec.env.name in settings.env:  # requirements, such as tensorflow==2.20.0, are no name of --env
        env = {re.sub(r"[=,]+", "-", spec.env.name): settings.env[spec.env.name]}
    return [*arguments("env", env), *(arguments("workdir", settings.workdir) if settings.workdir else [])]


def _command(workload: str, settings: RunSettings, spec: Spec, option: str) -> str:
    """Return the command that runs a spec with one more option."""
    program = ["-m", spec.script.module] if spec.script and spec.script.module else [workload]
    words = ["devbench", "run", *program, "--backend", spec.backend]
    if spec.case:
        words += ["--case", spec.case]
    if spec.loop != "as-written" and spec.script is None:
        words += ["--loop", spec.loop]
    words += [*repeated(settings), *place_of(spec, settings)]
    if spec.loop != "as-written" and spec.xla and settings.xla == "auto":
        words += ["--xla", "on"]
    return shlex.join(words) + (f" {option}" if option else "")
