"""The ladder of an explanation: which levels a program has, and what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench import registry
from bench.analyse import stats
from bench.analyse.explain import own_time, utilization
from bench.analyse.explain.caveats import caveats
from bench.analyse.explain.findings import findings
from bench.analyse.explain.ladder import ladder
from bench.analyse.explain.profile_check import disagreements
from bench.analyse.explain.wall_time import wall_time
from bench.analyse.samples import merged_facts, process_values, usable_samples
from bench.backends import capabilities
from bench.errors import RunFailed
from bench.model.explanation import Explanation
from bench.model.loops import BARE
from bench.model.plan import Planned
from bench.model.recognition import WORDS, StepKind
from bench.model.result import Result
from bench.model.run_state import LargestPart
from bench.model.spec import LOOPS, Loop
from bench.registry.description import Resolved
from bench.render import numbers
from bench.session.design import Design, neighbours
from bench.session.results import summarize_planned

LADDER = Design(purpose="level", pairs=neighbours, cold_starts="none", inspect=True, full=False, profiled="first")
"""The design of the ladder. Each level is compared with the levels next to it."""

PRECISE = 0.05
"""A part is known well enough if half the width of its interval is at most this share of the step."""

REPLAYED: tuple[StepKind, ...] = ("fit", "updates", "function")
"""Steps of a script that devbench may be able to run in its own loops."""

FIRST_TRIAL = 0
"""Number of the trial of the program alone, which comes before the ladder's first one."""


def levels_of(program: Planned, resolved: Resolved, compiled: bool) -> tuple[list[Planned], dict[Loop, str]]:
    """Return the levels from the program's own loop downwards, and why other loops do not apply.

    Args:
        program: The program as written.
        resolved: What its workload offers.
        compiled: Whether XLA compiles it.
    """
    levels: list[Planned] = [program]
    missing: dict[Loop, str] = {}
    for loop in LOOPS[LOOPS.index(program.spec.loop) + 1 :]:
        reason = registry.obstacle(resolved.offers, resolved.not_loops, loop)
        if loop == "fit" and "step" in resolved.offers:
            reason = "the program brings its own step"
        if reason:
            missing[loop] = f"not applicable, because {reason}"
        else:
            spec = program.spec.model_copy(update={"loop": loop, "xla": compiled})
            levels.append(replace(program, spec=spec))
    return levels, missing


def with_script(resolved: Resolved, first: Result) -> Resolved:
    """Return what a program offers, once its first trial has shown what a script trains. Others are unchanged.

    Args:
        resolved: What it offers by its source.
        first: The result of the program as written.
    """
    if first.recognition is None:
        return resolved
    chosen = first.recognition.chosen
    reason = merged_facts(first.samples).replay_obstacle
    if chosen.kind not in REPLAYED:
        reason = f"devbench cannot run the {WORDS[chosen.kind][1]} outside the script"
    if reason is not None:
        obstacles = {loop: f"{reason} ({chosen.place})" for loop in LOOPS if loop != "as-written"}
        return resolved.model_copy(update={"offers": ["script", "as_written"], "not_loops": obstacles})
    if chosen.kind == "fit":
        return resolved.model_copy(update={"offers": ["script", "as_written", "model", "data"], "not_loops": {}})
    not_loops = {"step": "the script's input cannot be read outside its loop"}
    return resolved.model_copy(update={"offers": ["script", "as_written", "step", "inputs"], "not_loops": not_loops})


def read_ladder(
    id_: str, program: Planned, results: Sequence[Result], missing: Mapping[Loop, str]
) -> tuple[Explanation, list[Result]]:
    """Read the ladder into an explanation. Return it with the levels that were measured.

    Args:
        id_: Id of the explanation.
        program: The program as written.
        results: The results of the levels, the program as written first.
        missing: Why other loops are not on the ladder.

    Raises:
        RunFailed: The program as written was not measured, or no trial holds all levels.
    """
    measured = [result for result in results if result.failure is None]
    failed = {result.spec.loop: f"failed: {result.failure.brief}" for result in results[1:] if result.failure}
    if not measured or measured[0] is not results[0]:
        raise not_measured(program, results[0])
    try:
        parts, rest, trials = ladder(measured)
    except ValueError:
        hint = "Increase --max-time, or leave out what-ifs: --no-changes."
        raise RunFailed(f"no trial of {program.spec.label} holds all levels", hint) from None
    typical = [stats.interval(list(process_values(result).values())).value for result in measured]
    explanation = Explanation(
        id=id_,
        label=program.spec.label,
        step_seconds=typical[0],
        trials=trials,
        parts=parts,
        wall_time=wall_time(measured[0]),
        own_step=own_time.division(measured[0], usable_samples(measured[0])),
        rest_seconds=typical[-1],
        rest_share=rest,
        lowest_level=measured[-1].spec.loop,
        gains=[],
        findings=findings(measured, parts),
        missing_levels={**missing, **failed},
        profile=measured[0].profile,
        caveats=caveats(measured),
    )
    if capabilities(program.spec.backend).gpu:
        explanation.findings += utilization.idle_gpu(explanation)
    if explanation.profile is not None:
        explanation.disagreements = disagreements(explanation.profile, parts, rest, explanation.step_seconds)
    return explanation, measured


def read_levels(
    id_: str, program: Planned, first: Result, results: Sequence[Result], missing: Mapping[Loop, str]
) -> tuple[Explanation, list[Result]]:
    """Read the ladder as `read_ladder` does. If it shows nothing, explain what the first trial shows.

    Args:
        id_: Id of the explanation.
        program: The program as written.
        first: The result of its first trial.
        results: The results of the levels, the program as written first.
        missing: Why other loops are not on the ladder.

    Raises:
        RunFailed: The first trial shows nothing either.
    """
    try:
        return read_ladder(id_, program, results, missing)
    except RunFailed:
        failure = results[0].failure
        reason = "no later trial was complete. Increase --max-time"
        if failure is not None:
            reason = f"the next ones failed: {failure.brief.rstrip('.')}"
        lower = {
            level.spec.loop: f"it failed: {level.failure.brief.rstrip('.')}"
            if level.failure
            else "it was not measured together with the program"
            for level in results[1:]
        }
        explanation, measured = read_ladder(id_, program, [first], {**missing, **lower})
        explanation.caveats.insert(0, f"Only the first process counts, because {reason}.")
        return explanation, measured


def with_first_trial(program: Planned, first: Result, base: Result) -> Result:
    """Return the program's result on the ladder with its first trial, in which it was alone and was diagnosed.

    Args:
        program: The program as written.
        first: The result of its first trial.
        base: Its result on the ladder.
    """
    samples = [sample.model_copy(update={"trial": FIRST_TRIAL}) for sample in first.samples]
    update = {"samples": [*samples, *base.samples], "placement": base.placement or first.placement}
    joined = base.model_copy(update=update)
    summarize_planned(joined, program)
    return joined


def is_known(results: Sequence[Result]) -> bool:
    """Return whether the trials so far show each part to within `PRECISE`, or show that it is at most `PRECISE`.

    A program without another loop is known after one trial.
    """
    measured = [result for result in results if result.failure is None]
    if len(measured) < 2:
        return True
    try:
        parts, _, _ = ladder(measured)
    except ValueError:
        return False
    bounds = [(part.share.low, part.share.high) for part in parts]
    return all(
        low is not None and high is not None and (high - low <= 2 * PRECISE or high <= PRECISE) for low, high in bounds
    )


def largest_so_far(results: Sequence[Result]) -> LargestPart | None:
    """Return the largest part of a step by the trials so far. None if they do not show that it takes time."""
    measured = [result for result in results if result.failure is None]
    if len(measured) < 2 or measured[0] is not results[0]:
        return None
    try:
        parts, rest, _ = ladder(measured)
    except ValueError:
        return None
    shares = {part.name: part.share for part in parts}
    if measured[-1].spec.loop in BARE:
        shares["computing"] = rest
    name = max(shares, key=lambda name: shares[name].value)
    return None if shares[name].may_be_zero else LargestPart(name=name, share=shares[name])


def not_measured(program: Planned, result: Result) -> RunFailed:
    """Return the error that says why the program as written could not be measured."""
    failure = result.failure
    reason = f": {failure.message}" if failure else ""
    return RunFailed(f"cannot measure {program.spec.label}{reason}", failure.hint if failure else "")


def not_in_time(program: Planned, first: Result, limit: float) -> RunFailed:
    """Return the error that says what the program did not reach within the time limit, in seconds."""
    seconds = numbers.whole_seconds(limit)
    if program.spec.script is not None and first.recognition is None:
        return RunFailed(
            f"no training step found in {program.spec.title} within {seconds}",
            "If it prepares for that long, use a longer --max-time. Otherwise, use the script on less data.",
        )
    return RunFailed(
        f"{seconds} is too short to explain {program.spec.label}: its first process was not ready",
        "Leave out --max-time, or use a longer one.",
    )
