"""The what-ifs of an explanation: which are worth trying, in which order, on which loop, and combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bench.analyse.explain import bounds
from bench.analyse.explain.answer import concluded
from bench.analyse.explain.antipatterns import retraced
from bench.analyse.explain.fixed_cost import fixed_cost
from bench.analyse.explain.gains import gains, sort_by_gain
from bench.analyse.explain.growth import growing_steps
from bench.analyse.explain.ladder import simultaneous_confidence
from bench.analyse.samples import merged_facts, usable_samples
from bench.model.explanation import USEFUL_GAIN, Explanation, Gain, Untried
from bench.model.plan import Planned
from bench.model.result import Result
from bench.registry.description import Resolved
from bench.render.sentences.explanation import tried
from bench.session.design import Design, with_first
from bench.study.budget import FEWEST_TRIALS
from bench.study.explain_sessions import ExplainSessions
from bench.study.recommend import Tried
from bench.whatif import Program, WhatIf, candidates, combine

WHAT_IF = Design(
    purpose="what-if",
    pairs=with_first,
    pilot=3,
    separate_starts=0,  # only the time of a step counts
    cold_starts="none",
    full=False,
    profiled="none",
    drop_decided=True,
)
"""The design of what-ifs. Each is compared with the baseline, until its verdict is clear."""

COMBINED = 2
"""Number of workers that measure the best what-ifs combined: the baseline's and theirs."""

CONFOUNDING = 0.3
"""If the growth of the steps takes this share of a step, the effects of what-ifs cannot be told from it."""

TOGETHER = 4
"""Number of what-ifs in one trial with the baseline. More workers take more memory and longer rounds."""


@dataclass
class WhatIfStudy:
    """Tries what-ifs on a program whose ladder is known.

    Args:
        sessions: Measure specs.
        explanation: Receives each gain once it is measured.
        program: The program as written.
        resolved: What its workload offers.
        measured: The levels of the ladder, the program as written first.
        compiled: Whether XLA compiles the program.

    Attributes:
        baselines: Each what-if that is worth trying, in the order in which they are tried, with what it is tried on.
        tried: The what-ifs that were measured, with their results.
    """

    sessions: ExplainSessions
    explanation: Explanation
    program: Planned
    resolved: Resolved
    measured: Sequence[Result]
    compiled: bool
    baselines: dict[WhatIf, Planned] = field(default_factory=dict)
    tried: list[Tried] = field(default_factory=list)

    @property
    def what_ifs(self) -> list[WhatIf]:
        """The what-ifs that are worth trying."""
        return list(self.baselines)

    def run(self) -> None:
        """Measure each what-if, then those that help combined."""
        driven = self._driven()
        self.explanation.what_if_loop = driven.spec.loop
        self._choose(driven)
        sets = self._sets()
        budget = self.sessions.budget
        for number, what_ifs in enumerate(sets):
            helped = any(gain.verdict == "faster" for gain in self.explanation.gains)
            reserved = COMBINED if helped else 0  # the last what-ifs gain less than the best ones combined
            counts = range(len(what_ifs), 0, -1)  # as many as there is time for
            count = next((n for n in counts if budget.fits(1 + n + reserved, FEWEST_TRIALS)), 0)
            if count == 0:
                break
            least = budget.share_of(1 + count, WHAT_IF.pilot)
            self._try(what_ifs[:count], max(1 / (len(sets) - number + 1), least))
        measured = {tried.what_if.words for tried in self.tried}
        left_out = [what_if.words for what_if in self.baselines if what_if.words not in measured]
        if left_out:
            self.explanation.caveats.append(f"--max-time left no time for these what-ifs: {', '.join(left_out)}.")
        if budget.fits(COMBINED, FEWEST_TRIALS):
            self.explanation.combined = self._try_combined(driven)

    def _driven(self) -> Planned:
        """Return what most what-ifs are tried on: a level in one of devbench's own loops, if there is one.

        In the program's own loop, devbench can change only little from outside.
        """
        if "as_written" not in self.resolved.offers or self.program.spec.loop != "as-written":
            return self.program
        by_loop = {result.spec.loop: result.spec for result in self.measured}
        loops = [loop for loop in ("fit", "step", "host-batches") if loop in by_loop]
        return replace(self.program, spec=by_loop[loops[0]]) if loops else self.program

    def _choose(self, driven: Planned) -> None:
        """Choose the what-ifs that are worth trying. The others are added to the explanation as not tried."""
        applicable = dict.fromkeys(self._comparable(self._candidates(driven), driven), driven)
        if driven is not self.program:  # callbacks, metrics and eager execution are in the program's own call of fit
            own = [what_if for what_if in self._candidates(self.program) if what_if.tests_suspect]
            applicable |= dict.fromkeys(self._comparable(own, self.program), self.program)
        ordered = bounds.by_priority(self.explanation, list(applicable))
        for what_if in ordered:
            steps = self.explanation.steps_share
            at_most = steps * bounds.at_most(self.explanation, what_if.acts_on)
            if at_most >= USEFUL_GAIN or (what_if.tests_suspect and steps >= USEFUL_GAIN):
                self.baselines[what_if] = applicable[what_if]
            else:
                untried = Untried(name=what_if.name, what_if=what_if.words, option=what_if.option, at_most=at_most)
                self.explanation.untried.append(untried)

    def _candidates(self, planned: Planned) -> list[WhatIf]:
        """Return the what-ifs that apply to the program in the loop of a spec."""
        loop, level = planned.spec.loop, self._level(planned)
        is_own_loop = loop == "as-written" and "as_written" in self.resolved.offers
        facts = merged_facts(level.samples)
        device = level.environment.device
        program = Program(planned.spec, facts, self.compiled, self.resolved.not_dtypes, is_own_loop, device)
        return candidates(program)

    def _level(self, planned: Planned) -> Result:
        """Return the level in the loop of a spec. The program as written if it was not measured."""
        loop = planned.spec.loop
        return next((result for result in self.measured if result.spec.loop == loop), self.measured[0])

    def _comparable(self, what_ifs: list[WhatIf], planned: Planned) -> list[WhatIf]:
        """Return the what-ifs whose effect can be told from what else changes the time of a step of a spec's loop."""
        level = self._level(planned)
        samples = usable_samples(level)
        kept, caveat = what_ifs, ""
        if any((growth.share or 0.0) >= CONFOUNDING for growth in growing_steps(level, samples)):
            kept = []
            caveat = (
                f"No what-if was tried in the loop {planned.spec.loop}, because its steps take longer and longer: "
                "their time also depends on how many steps ran before. Fix the growth first."
            )
        elif retraced(samples):
            kept = [what_if for what_if in what_ifs if not what_if.grows_batch]
            caveat = (
                "Larger batches were not tried: while the program traces new graphs, another batch also changes how "
                "often it does. Fix the retracing first."
            )
        if len(kept) < len(what_ifs) and caveat not in self.explanation.caveats:
            self.explanation.caveats.append(caveat)
        return kept

    def _sets(self) -> list[list[WhatIf]]:
        """Return the what-ifs in sets that are measured together. All of a set have the same baseline."""
        of_loop: dict[str, list[WhatIf]] = {}
        for what_if, baseline in self.baselines.items():
            of_loop.setdefault(baseline.spec.loop, []).append(what_if)
        return [
            what_ifs[start : start + TOGETHER]
            for what_ifs in of_loop.values()
            for start in range(0, len(what_ifs), TOGETHER)
        ]

    def _try(self, what_ifs: Sequence[WhatIf], share: float) -> None:
        """Measure some what-ifs, interleaved with their baseline, in a share of the time left."""
        baseline = self.baselines[what_ifs[0]]
        specs = [baseline, *(what_if.apply(baseline) for what_if in what_ifs)]
        base, *results = self.sessions.measure(specs, self._design(), share)
        result_of = dict(zip(what_ifs, results, strict=True))
        self.tried += [Tried(what_if, base, result) for what_if, result in result_of.items()]
        new_gains = gains(base, result_of, self.sessions.settings.threshold, len(self.baselines))
        for gain in new_gains:
            self.sessions.recorder.tell(tried(gain))
        self.explanation.gains = sort_by_gain([*self.explanation.gains, *new_gains])
        larger = [result for what_if, result in result_of.items() if what_if.grows_batch and result.failure is None]
        self.explanation.findings += fixed_cost(base, larger)
        self.sessions.recorder.explanation = concluded(self.explanation)

    def _try_combined(self, driven: Planned) -> Gain | None:
        """Measure the best what-if of each kind that is faster, all at once. None if fewer than two are faster."""
        by_option = {what_if.option: what_if for what_if, planned in self.baselines.items() if planned is driven}
        best: dict[str, WhatIf] = {}
        for gain in self.explanation.gains:
            what_if = by_option.get(gain.option)
            if gain.verdict == "faster" and what_if is not None:
                best.setdefault(what_if.name, what_if)
        if len(best) < 2:
            return None
        combination = combine(list(best.values()))
        base, result = self.sessions.measure([driven, combination.apply(driven)], self._design())
        self.tried.append(Tried(combination, base, result))
        return gains(base, {combination: result}, self.sessions.settings.threshold)[0]

    def _design(self) -> Design:
        """Return the design of what-ifs, at the confidence at which all their intervals hold together."""
        return replace(WHAT_IF, confidence=simultaneous_confidence(len(self.baselines)))
