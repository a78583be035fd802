"""The study behind an explanation: the ladder, single what-ifs, and the what-ifs that help combined."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from bench import registry
from bench.analyse import stats
from bench.analyse.explain import shares
from bench.analyse.explain.antipatterns import retraced
from bench.analyse.explain.findings import findings
from bench.analyse.explain.fixed_cost import fixed_cost
from bench.analyse.explain.gains import gains, sort_by_gain
from bench.analyse.explain.ladder import caveats, ladder, simultaneous_confidence
from bench.analyse.explain.profile_check import disagreements
from bench.analyse.explain.utilization import bound
from bench.analyse.roofline import roofline
from bench.analyse.samples import merged_facts, process_values, usable_samples
from bench.config.settings import RunSettings
from bench.errors import Interrupted, NotApplicable, RunFailed, SettingsError
from bench.model.explanation import Explanation, Gain
from bench.model.plan import Group, Planned
from bench.model.result import Result
from bench.model.spec import LOOPS, Loop
from bench.publish.recorder import Recorder
from bench.registry.description import Resolved
from bench.session.design import Design, neighbours, with_first
from bench.session.session import Session
from bench.study.budget import FEWEST_TRIALS, TimeBudget
from bench.study.peaks import PEAKS, peaks_for
from bench.study.plan import plan
from bench.study.recommend import Tried, fastest
from bench.whatif import Program, WhatIf, candidates, combine

LADDER = Design(purpose="level", pairs=neighbours, inspect=True, full=False, profiled="first")
"""The design of the ladder. Each level is compared with the levels next to it."""

WHAT_IF = Design(purpose="what-if", pairs=with_first, pilot=3, full=False, profiled="none")
"""The design of what-ifs. Each is compared with the baseline."""

TOGETHER = 4
"""Number of what-ifs in one trial with the baseline. More workers take more memory and longer rounds."""

PEAKS_SHARE = 0.3
"""Share of the time left that measuring the peaks of the machine may take."""


@dataclass
class ExplainStudy:
    """Measures what an explanation of one workload needs.

    Args:
        workload: Name or file.
        settings: The settings of every session. `max_time` limits all of them together.
        recorder: Saves results and hears of progress.

    Attributes:
        results: All results so far.
        explanation: The explanation so far. None until a trial of the ladder is measured.
        what_ifs: The what-ifs that apply.
        tried: The what-ifs that were measured, with their results.
    """

    workload: str
    settings: RunSettings
    recorder: Recorder
    results: list[Result] = field(default_factory=list)
    explanation: Explanation | None = None
    what_ifs: list[WhatIf] = field(default_factory=list)
    tried: list[Tried] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.budget = TimeBudget(self.settings)

    def run(self, with_what_ifs: bool = True) -> Explanation:
        """Measure the ladder, the roofline, the what-ifs, and the what-ifs that help combined.

        Args:
            with_what_ifs: Whether what-ifs are tried.

        Raises:
            UsageError: A name, parameter, loop or device is wrong.
            RunFailed: The program as written could not be measured.
            Interrupted: A signal. What was measured is on disk and in `explanation`.
        """
        self.id = self.recorder.new_id()
        program = self._program()
        resolved = registry.resolve(self.workload, program.spec.params, self.settings.worker_timeout)
        if "probes" in resolved.offers:
            raise NotApplicable(
                f"{program.spec.title} has no steps to explain: it times single operations",
                "Use `devbench run` to measure them.",
            )
        compiled = self._is_compiled(program)
        levels, missing = self._levels(program, resolved, compiled)
        ladder_plan = self.budget.ladder(levels, with_what_ifs)
        levels = list(ladder_plan.levels)
        missing |= {level.spec.loop: "there was no time for it (--max-time)" for level in ladder_plan.left_out}
        if self.budget.worker_seconds:
            self.recorder.tell(self.budget.estimate(len(levels)))
        try:
            results = self._measure(levels, LADDER, ladder_plan.share)
        except Interrupted:
            with suppress(RunFailed):
                self._read_ladder(program, self.results[-len(levels) :], missing)
                self._add_interruption(with_what_ifs)
            raise
        explanation, measured = self._read_ladder(program, results, missing)
        try:
            self._add_roofline(explanation, measured[-1])
            if with_what_ifs:
                self._try_what_ifs(explanation, program, resolved, measured, compiled)
        except Interrupted:
            self._add_interruption(with_what_ifs)
            raise
        finally:
            shares.from_what_ifs(explanation)
            explanation.fastest = fastest(self.workload, self.settings, measured, self.tried)
        return explanation

    def _program(self) -> Planned:
        """Return the program to explain.

        Raises:
            NotApplicable: The settings name more than one.
            SettingsError: The settings vary something.
        """
        if self.settings.vary:
            raise SettingsError(
                "explain does not take --vary", "It tries what-ifs by itself. To compare values, use `devbench run`."
            )
        (group,) = plan([self.workload], self.settings)
        if len(self.settings.backend) > 1 or len(self.settings.loop) > 1:
            raise NotApplicable(
                "explain takes one program on one backend", "Name one --backend, and at most one --loop."
            )
        if len(group.planned) > 1:
            cases = [str(planned.spec.case) for planned in group.planned]
            raise NotApplicable(
                f"{self.workload} has several cases: {', '.join(cases)}", f"Name one, for example --case {cases[0]}."
            )
        return group.planned[0]

    def _is_compiled(self, program: Planned) -> bool:
        """Return whether XLA compiles the program. If the program itself decides, start it once to find out."""
        if program.spec.xla is not None:
            return program.spec.xla
        (result,) = self._measure([program], WHAT_IF, update={"max_processes": 1})
        if result.failure is not None:  # the ladder would only fail again, in each of its levels
            raise _not_measured(program, result)
        return any(sample.facts.jit_compile for sample in result.samples)

    def _levels(self, program: Planned, resolved: Resolved, compiled: bool) -> tuple[list[Planned], dict[Loop, str]]:
        """Return the levels from the program's own loop downwards, and why other loops do not apply."""
        levels: list[Planned] = [program]
        missing: dict[Loop, str] = {}
        for loop in LOOPS[LOOPS.index(program.spec.loop) + 1 :]:
            reason = registry.obstacle(resolved.offers, resolved.not_loops, loop)
            if loop == "fit" and "step" in resolved.offers:
                reason = "the program brings its own step"
            if reason:
                missing[loop] = reason
            else:
                spec = program.spec.model_copy(update={"loop": loop, "xla": compiled})
                levels.append(replace(program, spec=spec))
        return levels, missing

    def _measure(
        self,
        planned: Sequence[Planned],
        design: Design,
        share: float = 1.0,
        update: Mapping[str, Any] = MappingProxyType({}),
    ) -> list[Result]:
        """Measure specs as a group.

        Args:
            planned: The specs, the baseline first.
            design: How they are measured.
            share: The share of the time left that they may take.
            update: Settings that differ from the explanation's own.
        """
        settings = self.settings.model_copy(update={"max_time": self.budget.part(share), **update})
        group = Group(self.workload, tuple(planned))
        session = Session(group, settings, self._timed(design), self.recorder)
        self.results += session.results
        session.run()
        self.budget.observe(session.results)
        return session.results

    def _timed(self, design: Design) -> Design:
        """Return a design of this explanation, with its time limit."""
        return replace(design, parent=self.id, deadline=self.budget.deadline, last_moment=self.budget.last_moment)

    def _read_ladder(
        self, program: Planned, results: Sequence[Result], missing: Mapping[Loop, str]
    ) -> tuple[Explanation, list[Result]]:
        """Read the ladder into an explanation. Return it with the levels that were measured.

        Raises:
            RunFailed: The program as written was not measured, or no trial holds all levels.
        """
        measured = [result for result in results if result.failure is None]
        failed = {result.spec.loop: f"failed: {result.failure.brief}" for result in results[1:] if result.failure}
        if not measured or measured[0] is not results[0]:
            raise _not_measured(program, results[0])
        try:
            parts, rest, trials = ladder(measured)
        except ValueError:
            hint = "Increase --max-time, or leave out what-ifs: --no-changes."
            raise RunFailed(f"no trial of {program.spec.label} holds all levels", hint) from None
        typical = [stats.interval(list(process_values(result).values())).value for result in measured]
        explanation = Explanation(
            id=self.id,
            label=program.spec.label,
            step_seconds=typical[0],
            trials=trials,
            parts=parts,
            rest_seconds=typical[-1],
            rest_share=rest,
            lowest_level=measured[-1].spec.loop,
            gains=[],
            findings=findings(measured, parts),
            missing_levels={**missing, **failed},
            profile=measured[0].profile,
            caveats=caveats(measured),
        )
        if self.settings.full:
            explanation.caveats.append("--full has no effect on explain. Use `devbench run --full`.")
        if explanation.profile is not None:
            explanation.disagreements = disagreements(explanation.profile, parts, rest, explanation.step_seconds)
        self.explanation = explanation
        return explanation, measured

    def _add_roofline(self, explanation: Explanation, lowest: Result) -> None:
        settings = self.settings.model_copy(update={"max_time": self.budget.part(PEAKS_SHARE)})
        design = self._timed(PEAKS) if self.budget.fits(1, share=PEAKS_SHARE) else None
        peaks = peaks_for(lowest, settings, self.recorder, design)
        explanation.roofline = roofline(lowest, peaks) if peaks else None
        if explanation.roofline is None:
            unknown = "the operations or bytes of a step are" if peaks else "the peaks of this machine are"
            explanation.caveats.append(f"There is no roofline: {unknown} unknown.")
        else:
            explanation.findings += bound(explanation.roofline, explanation.rest_share.value)

    def _try_what_ifs(
        self,
        explanation: Explanation,
        program: Planned,
        resolved: Resolved,
        measured: Sequence[Result],
        compiled: bool,
    ) -> None:
        """Measure each what-if, then those that help combined. Each is added to the explanation once it is measured."""
        baseline = self._what_if_baseline(program, resolved, measured)
        loop = baseline.spec.loop
        level = next((result for result in measured if result.spec.loop == loop), measured[0])
        is_own_loop = loop == "as-written" and "as_written" in resolved.offers
        facts = merged_facts(level.samples)
        self.what_ifs = candidates(Program(baseline.spec, facts, compiled, resolved.not_dtypes, is_own_loop))
        if retraced(usable_samples(level)) and any(what_if.grows_batch for what_if in self.what_ifs):
            self.what_ifs = [what_if for what_if in self.what_ifs if not what_if.grows_batch]
            explanation.caveats.append(
                "Larger batches were not tried: while the program traces new graphs, another batch also changes how "
                "often it does. Fix the retracing first."
            )
        explanation.what_if_loop = loop
        for start in range(0, len(self.what_ifs), TOGETHER):
            what_ifs = self.what_ifs[start : start + TOGETHER]
            if not self.budget.fits(1 + len(what_ifs), FEWEST_TRIALS):
                break
            sets_left = math.ceil((len(self.what_ifs) - start) / TOGETHER)
            self._try(explanation, baseline, what_ifs, 1 / (sets_left + 1))
        if len(explanation.gains) < len(self.what_ifs):
            tried = f"{len(explanation.gains)} of {len(self.what_ifs)} what-ifs were tried"
            explanation.caveats.append(f"--max-time ended the explanation: {tried}.")
        elif self.budget.fits(2, FEWEST_TRIALS):
            explanation.combined = self._try_combined(baseline, explanation.gains)

    def _what_if_baseline(self, program: Planned, resolved: Resolved, measured: Sequence[Result]) -> Planned:
        """Return what the what-ifs are tried on: a level that devbench drives, if there is one.

        In the program's own loop, devbench can change only little from outside.
        """
        if "as_written" not in resolved.offers or program.spec.loop != "as-written":
            return program
        by_loop = {result.spec.loop: result.spec for result in measured}
        driven = [loop for loop in ("fit", "step", "host-batches") if loop in by_loop]
        return replace(program, spec=by_loop[driven[0]]) if driven else program

    def _try(self, explanation: Explanation, baseline: Planned, what_ifs: Sequence[WhatIf], share: float) -> None:
        """Measure some what-ifs, interleaved with the baseline, in a share of the time left."""
        specs = [baseline, *(what_if.apply(baseline) for what_if in what_ifs)]
        base, *results = self._measure(specs, self._what_if_design(), share)
        result_of = dict(zip(what_ifs, results, strict=True))
        self.tried += [Tried(what_if, base, result) for what_if, result in result_of.items()]
        new_gains = gains(base, result_of, self.settings.threshold, len(self.what_ifs))
        explanation.gains = sort_by_gain([*explanation.gains, *new_gains])
        larger = [result for what_if, result in result_of.items() if what_if.grows_batch and result.failure is None]
        explanation.findings += fixed_cost(base, larger)

    def _try_combined(self, baseline: Planned, gains_so_far: Sequence[Gain]) -> Gain | None:
        """Measure the best what-if of each kind that is faster, all at once. None if fewer than two are faster."""
        by_option = {what_if.option: what_if for what_if in self.what_ifs}
        best: dict[str, WhatIf] = {}
        for gain in gains_so_far:
            if gain.verdict == "faster":
                what_if = by_option[gain.option]
                best.setdefault(what_if.name, what_if)
        if len(best) < 2:
            return None
        combination = combine(list(best.values()))
        base, result = self._measure([baseline, combination.apply(baseline)], self._what_if_design())
        self.tried.append(Tried(combination, base, result))
        return gains(base, {combination: result}, self.settings.threshold)[0]

    def _what_if_design(self) -> Design:
        """Return the design of what-ifs, at the confidence at which all their intervals hold together."""
        return replace(WHAT_IF, confidence=simultaneous_confidence(len(self.what_ifs)))

    def _add_interruption(self, with_what_ifs: bool) -> None:
        """Add the caveat that the explanation was interrupted, and what is missing."""
        explanation = self.explanation
        assert explanation is not None
        if not self.what_ifs:
            missing = "the roofline was not measured" + (", and no what-if was tried" if with_what_ifs else "")
        elif len(explanation.gains) < len(self.what_ifs):
            missing = f"{len(explanation.gains)} of {len(self.what_ifs)} what-ifs were tried"
        else:
            missing = "the what-ifs that help were not measured together"
        explanation.caveats.insert(0, f"The explanation was interrupted: {missing}.")


def _not_measured(program: Planned, result: Result) -> RunFailed:
    """Return the error that says why the program as written could not be measured."""
    failure = result.failure
    reason = f": {failure.message}" if failure else ""
    return RunFailed(f"cannot measure {program.spec.label}{reason}", failure.hint if failure else "")
