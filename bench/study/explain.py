"""The study behind an explanation: the ladder, single what-ifs, and all that helped at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from bench import registry
from bench.analyse import stats
from bench.analyse.explain import shares
from bench.analyse.explain.findings import findings
from bench.analyse.explain.fixed_cost import fixed_cost
from bench.analyse.explain.gains import gains, largest_first
from bench.analyse.explain.ladder import caveats, ladder, simultaneous
from bench.analyse.explain.profile_check import disagreements
from bench.analyse.explain.utilization import bound
from bench.analyse.roofline import roofline
from bench.config.settings import RunSettings
from bench.errors import Interrupted, NotApplicable, RunFailed, SettingsError
from bench.model.explanation import Explanation, Gain
from bench.model.plan import Group, Planned
from bench.model.result import Result
from bench.model.spec import LOOPS
from bench.publish.recorder import Recorder
from bench.registry.description import Resolved
from bench.session.design import Design, neighbours, with_first
from bench.session.session import Session
from bench.study.peaks import peaks_for
from bench.study.plan import plan
from bench.study.recommend import Tried, fastest
from bench.whatif import Program, WhatIf, candidates, combined

SECONDS = 300.0
"""Default time limit in seconds of each session of an explanation. Its trials are large."""

LADDER = Design(purpose="level", pairs=neighbours, default_max_time=SECONDS, inspect=True, baseline_only=True)
"""The design of the ladder. A level's share of the step is judged together with its neighbours'."""

WHAT_IF = Design(purpose="what-if", pairs=with_first, pilot=3, default_max_time=SECONDS)
"""The design of what-ifs. Each is judged by itself."""

TOGETHER = 4
"""What-ifs that are interleaved with the baseline in one trial. More workers take more memory and longer rounds."""


@dataclass
class ExplainStudy:
    """Measures what an explanation of one workload needs.

    Args:
        workload: Name or file.
        settings: The settings of every session. `max_time` limits each of them.
        recorder: Saves results and hears of progress.

    Attributes:
        results: All results so far.
        found: What is known so far. None until a trial of the ladder is measured.
    """

    workload: str
    settings: RunSettings
    recorder: Recorder
    results: list[Result] = field(default_factory=list)
    found: Explanation | None = None
    options: list[WhatIf] = field(default_factory=list)
    tried: list[Tried] = field(default_factory=list)

    def run(self, with_changes: bool = True) -> Explanation:
        """Ladder, changes, and the changes that help together.

        Args:
            with_changes: whether changes are tried, or the ladder is all.

        Raises:
            UsageError: a name, parameter, loop or device can't be.
            RunFailed: the program as it is could not be measured.
            Interrupted: by a signal; what was measured is on disk.
        """
        self.id = self.recorder.new_id()
        base = self._base()
        resolved = registry.resolve(self.workload, base.spec.params, self.settings.worker_timeout)
        if "probes" in resolved.offers:
            raise NotApplicable(
                f"{base.spec.title} has no steps: it times several things one by one", "`devbench run` shows them."
            )
        compiled = self._compiled(base)
        levels, missing = self._levels(base, resolved, compiled)
        try:
            results = self._session(levels, LADDER)
        except Interrupted:
            with suppress(RunFailed):
                self._climb(base, self.results[-len(levels) :], missing)
                self._cut_short(with_changes)
            raise
        found, measured = self._climb(base, results, missing)
        try:
            self._under_its_roofs(measured[-1], found)
            if with_changes:
                self._changes(found, base, resolved, measured, compiled)
        except Interrupted:
            self._cut_short(with_changes)
            raise
        finally:
            shares.from_what_ifs(found)
            found.fastest = fastest(self.workload, self.settings, measured, self.tried)
        return found

    def _climb(
        self, base: Planned, results: Sequence[Result], missing: Sequence[str]
    ) -> tuple[Explanation, list[Result]]:
        """What the levels say, and those of them that could be measured.

        Raises:
            RunFailed: the program as it is was not measured.
        """
        measured = [r for r in results if r.failure is None]
        failed = [f"{r.spec.loop}: failed: {r.failure.message}" for r in results[1:] if r.failure]
        if not measured or measured[0] is not results[0]:
            raise RunFailed(f"{base.spec.label} could not be measured", "Its result says why.")
        self.found = self._ladder(base, measured, [*missing, *failed])
        return self.found, measured

    def _under_its_roofs(self, lowest: Result, found: Explanation) -> None:
        peaks = peaks_for(lowest, self.settings, self.recorder)
        found.roofline = roofline(lowest, peaks) if peaks else None
        if found.roofline is None:
            unknown = "its operations or bytes per step" if peaks else "the peaks of the machine"
            found.caveats.append(f"there is no roofline: {unknown} are not known")
        if found.roofline is not None:
            found.findings += bound(found.roofline, found.rest_share.value)

    def _changes(
        self, found: Explanation, base: Planned, resolved: Resolved, measured: Sequence[Result], compiled: bool
    ) -> None:
        """Single changes, and those that help together; an explanation has each as soon as it is measured."""
        tried = self._changed_base(base, resolved, measured)
        driven = next((r for r in measured if r.spec.loop == tried.spec.loop), measured[0])
        own = tried.spec.loop == "as-written" and "as_written" in resolved.offers
        facts = stats.facts(driven.samples)
        self.options = candidates(Program(tried.spec, facts, compiled, resolved.not_dtypes, own))
        found.what_if_loop = tried.spec.loop
        self._gains(tried, found)
        found.combined = self._together(tried, found.gains)

    def _cut_short(self, with_changes: bool) -> None:
        """Says of an explanation that was interrupted what it lacks."""
        found = self.found
        assert found is not None
        if not self.options:
            lacks = "its roofline was not measured" + (" and no what-ifs were tried" if with_changes else "")
        elif len(found.gains) < len(self.options):
            lacks = f"{len(found.gains)} of {len(self.options)} what-ifs were tried"
        else:
            lacks = "the combined what-ifs were not measured"
        found.caveats.insert(0, f"the explanation was interrupted: {lacks}")

    def _compiled(self, base: Planned) -> bool:
        """Whether XLA compiles the program as it is; where it decides for itself one process is started to see."""
        if base.spec.xla is not None:
            return base.spec.xla
        (result,) = self._session([base], WHAT_IF, {"max_processes": 1})
        return any(sample.facts.jit_compile for sample in result.samples)

    def _ladder(self, base: Planned, measured: Sequence[Result], missing: list[str]) -> Explanation:
        try:
            parts, rest, trials = ladder(measured)
        except ValueError:
            raise RunFailed(
                f"{base.spec.label} could not be measured with all its levels", "Their results say why."
            ) from None
        found = Explanation(
            id=self.id,
            label=base.spec.label,
            step_seconds=stats.interval(list(stats.process_values(measured[0]).values())).value,
            trials=trials,
            parts=parts,
            rest_seconds=stats.interval(list(stats.process_values(measured[-1]).values())).value,
            rest_share=rest,
            lowest_level=measured[-1].spec.loop,
            gains=[],
            findings=findings(list(measured), parts),
            missing_levels=missing,
            profile=measured[0].profile,
            caveats=caveats(measured),
        )
        if self.settings.full:
            found.caveats.append(
                "--full was ignored: an explanation runs no whole training. Use `devbench run --full` for that"
            )
        if found.profile is not None:
            found.disagreements = disagreements(found.profile, parts, rest, found.step_seconds)
        return found

    def _base(self) -> Planned:
        """The program as it is: its first case, where it has several and none was asked for.

        Raises:
            NotApplicable: more than one thing is asked to be explained.
        """
        if self.settings.vary:
            raise SettingsError("an explanation has no --vary", "It tries single changes by itself; `run` has --vary.")
        (group,) = plan([self.workload], self.settings)
        specs = group.planned
        if len(self.settings.backend) > 1 or len(self.settings.loop) > 1:
            raise NotApplicable(
                "one program on one backend is explained at a time", "Name one --backend, and one --loop at most."
            )
        if len(specs) > 1:
            cases = ", ".join(str(p.spec.case) for p in specs)
            raise NotApplicable(f"{self.workload} has the cases {cases}", f"Name one: --case {specs[0].spec.case}")
        return specs[0]

    def _levels(self, base: Planned, resolved: Resolved, compiled: bool) -> tuple[list[Planned], list[str]]:
        """The loops from the base's own downwards that apply, compiled as it is, and why the others do not."""
        levels, missing = [base], []
        for loop in LOOPS[LOOPS.index(base.spec.loop) + 1 :]:
            reason = registry.applicable(resolved.offers, resolved.not_loops, loop)
            if loop == "fit" and "step" in resolved.offers:
                reason = "the program brings its own step"
            if reason:
                missing.append(f"{loop}: {reason}")
                continue
            levels.append(replace(base, spec=base.spec.model_copy(update={"loop": loop, "xla": compiled})))
        return levels, missing

    def _session(
        self, planned: Sequence[Planned], design: Design, update: Mapping[str, Any] = MappingProxyType({})
    ) -> list[Result]:
        """Measure specs as a group.

        Args:
            planned: The specs, the baseline first.
            design: How they are measured.
            update: Settings that differ from the explanation's own.
        """
        one_offs = {"full": False} if design is LADDER else {"full": False, "profile": None}
        settings = self.settings.model_copy(update={**one_offs, **update})
        design = replace(design, parent=self.id)
        session = Session(Group(self.workload, tuple(planned)), settings, design, self.recorder)
        self.results += session.results
        return session.run()

    def _what_if_design(self) -> Design:
        """Return the design of what-ifs, at the level at which all their intervals hold together."""
        return replace(WHAT_IF, confidence=simultaneous(len(self.options)))

    def _changed_base(self, base: Planned, resolved: Resolved, measured: Sequence[Result]) -> Planned:
        """What changes are tried on: a loop that devbench drives, since of a program's own it reaches little.

        A program that only trains by `fit` is reached as written; one that has no other loop than its own is what
        it is, and only what lies outside of it is changed.
        """
        if "as_written" not in resolved.offers or base.spec.loop != "as-written":
            return base
        loops = [r.spec.loop for r in measured]
        loop = next((each for each in ("fit", "step", "host-batches") if each in loops), None)
        spec = next((r.spec for r in measured if r.spec.loop == loop), None)
        return replace(base, spec=spec) if spec is not None else base

    def _gains(self, base: Planned, explanation: Explanation) -> None:
        """Each change by itself; from those of the batch follows, from which batch on a step's fixed cost is small."""
        for start in range(0, len(self.options), TOGETHER):
            chunk = self.options[start : start + TOGETHER]
            results = self._session([base, *(what_if.apply(base) for what_if in chunk)], self._what_if_design())
            tried = dict(zip(chunk, results[1:], strict=True))
            self.tried += [Tried(what_if, results[0], result) for what_if, result in tried.items()]
            found = gains(results[0], tried, self.settings.threshold, len(self.options))
            explanation.gains = largest_first([*explanation.gains, *found])
            larger = [r for what_if, r in tried.items() if what_if.name == "batch" and r.failure is None]
            explanation.findings += fixed_cost(results[0], larger)

    def _together(self, base: Planned, found: Sequence[Gain]) -> Gain | None:
        """The best change of each kind that is faster, all at once, as against the base."""
        known = {what_if.option: what_if for what_if in self.options}
        best: dict[str, WhatIf] = {}
        for gain in found:
            if gain.verdict == "faster":
                best.setdefault(known[gain.option].name, known[gain.option])
        if len(best) < 2:
            return None
        all_of_it = combined(list(best.values()))
        results = self._session([base, all_of_it.apply(base)], self._what_if_design())
        self.tried.append(Tried(all_of_it, results[0], results[1]))
        return gains(results[0], {all_of_it: results[1]}, self.settings.threshold)[0]
