"""The study behind an explanation: the ladder, the roofline, the what-ifs, and the what-ifs that help combined."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from bench import registry
from bench.analyse.explain import shares
from bench.analyse.explain.answer import conclude
from bench.analyse.explain.suspects import suspects
from bench.analyse.explain.utilization import bound
from bench.analyse.roofline import roofline
from bench.config.settings import RunSettings
from bench.errors import Interrupted, NotApplicable, RunFailed, SettingsError
from bench.model.explanation import Explanation
from bench.model.plan import Planned
from bench.model.result import Result
from bench.model.spec import Loop
from bench.publish.recorder import Recorder
from bench.session.worker_servers import WorkerServers
from bench.study.explain_levels import LADDER, largest_so_far, levels_of, not_measured, read_ladder
from bench.study.explain_sessions import ExplainSessions
from bench.study.explain_what_ifs import WHAT_IF, WhatIfStudy
from bench.study.peaks import PEAKS, peaks_for
from bench.study.plan import plan
from bench.study.recommend import Tried, fastest
from bench.whatif import WhatIf

PEAKS_SHARE = 0.3
"""Share of the time left that measuring the peaks of the machine may take."""


class ExplainStudy:
    """Measures what an explanation of one workload needs.

    Args:
        workload: Name or file.
        settings: The settings of every session. `max_time` limits all of them together.
        recorder: Saves results and hears of progress.
        servers: The worker servers from which workers are forked. None if all workers are fresh.

    Attributes:
        sessions: The sessions, their results and their time limit.
        explanation: The explanation so far. None until a trial of the ladder is measured.
    """

    def __init__(
        self, workload: str, settings: RunSettings, recorder: Recorder, servers: WorkerServers | None = None
    ) -> None:
        self.workload = workload
        self.settings = settings
        self.recorder = recorder
        self.explanation: Explanation | None = None
        self.sessions = ExplainSessions(workload, settings, recorder, servers)
        self._what_ifs: WhatIfStudy | None = None
        self._suspects_told = False

    @property
    def results(self) -> list[Result]:
        """All results so far."""
        return self.sessions.results

    @property
    def what_ifs(self) -> list[WhatIf]:
        """The what-ifs that are worth trying."""
        return self._what_ifs.what_ifs if self._what_ifs is not None else []

    @property
    def tried(self) -> list[Tried]:
        """The what-ifs that were measured, with their results."""
        return self._what_ifs.tried if self._what_ifs is not None else []

    def run(self, with_what_ifs: bool = True) -> Explanation:
        """Measure the ladder, the roofline, the what-ifs, and the what-ifs that help combined.

        Args:
            with_what_ifs: Whether what-ifs are tried.

        Raises:
            UsageError: A name, parameter, loop or device is wrong.
            RunFailed: The program as written could not be measured.
            Interrupted: A signal. What was measured is on disk and in `explanation`.
        """
        program = self._program()
        resolved = registry.resolve(self.workload, program.spec.params, self.settings.worker_timeout)
        if "probes" in resolved.offers:
            raise NotApplicable(
                f"{program.spec.title} has no steps to explain: it times single operations",
                "Use `devbench run` to measure them.",
            )
        compiled = self._is_compiled(program)
        levels, missing = levels_of(program, resolved, compiled)
        budget = self.sessions.budget
        ladder_plan = budget.ladder(levels, with_what_ifs)
        levels = list(ladder_plan.levels)
        missing |= {level.spec.loop: "there was no time for it (--max-time)" for level in ladder_plan.left_out}
        if budget.worker_seconds:
            self.recorder.tell(budget.estimate(len(levels)))
        try:
            results = self.sessions.measure(levels, replace(LADDER, after_trial=self._tell), ladder_plan.share)
        except Interrupted:
            with suppress(RunFailed):
                explanation, _ = self._read_ladder(program, self.results[-len(levels) :], missing)
                conclude(explanation)
                self._add_interruption(explanation, with_what_ifs)
            raise
        explanation, measured = self._read_ladder(program, results, missing)
        try:
            self._add_roofline(explanation, measured[-1])
            if with_what_ifs:
                self._what_ifs = WhatIfStudy(self.sessions, explanation, program, resolved, measured, compiled)
                self._what_ifs.run()
        except Interrupted:
            self._add_interruption(explanation, with_what_ifs)
            raise
        finally:
            shares.from_what_ifs(explanation)
            conclude(explanation)
            explanation.fastest = fastest(self.workload, self.settings, measured, self.tried)
        return explanation

    def _tell(self, results: Sequence[Result]) -> None:
        """Tell what a trial of the ladder shows: suspects once, and the largest part so far."""
        if not self._suspects_told:
            self._suspects_told = True
            for suspect in suspects(results[0]):
                self.recorder.tell(f"suspect: {suspect}")
        self.recorder.largest_part = largest_so_far(results)

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
        (result,) = self.sessions.measure([program], WHAT_IF, update={"max_processes": 1})
        if result.failure is not None:  # the ladder would only fail again, in each of its levels
            raise not_measured(program, result)
        return any(sample.facts.jit_compile for sample in result.samples)

    def _read_ladder(
        self, program: Planned, results: Sequence[Result], missing: dict[Loop, str]
    ) -> tuple[Explanation, list[Result]]:
        """Read the ladder into the explanation. Return it with the levels that were measured.

        Raises:
            RunFailed: The program as written was not measured, or no trial holds all levels.
        """
        explanation, measured = read_ladder(self.sessions.id, program, results, missing)
        if self.settings.full:
            explanation.caveats.append("--full has no effect on explain. Use `devbench run --full`.")
        self.explanation = explanation
        return explanation, measured

    def _add_roofline(self, explanation: Explanation, lowest: Result) -> None:
        budget = self.sessions.budget
        settings = self.settings.model_copy(update={"max_time": budget.part(PEAKS_SHARE)})
        design = self.sessions.timed(PEAKS) if budget.fits(1, share=PEAKS_SHARE) else None
        peaks = peaks_for(lowest, settings, self.recorder, design, self.sessions.servers)
        explanation.roofline = roofline(lowest, peaks) if peaks else None
        if explanation.roofline is None:
            unknown = "the operations or bytes of a step are" if peaks else "the peaks of this machine are"
            explanation.caveats.append(f"There is no roofline: {unknown} unknown.")
        else:
            explanation.findings += bound(explanation.roofline, explanation.rest_share.value)

    def _add_interruption(self, explanation: Explanation, with_what_ifs: bool) -> None:
        """Add the caveat that the explanation was interrupted, and what is missing."""
        if self._what_ifs is None:
            missing = "the roofline was not measured" + (", and no what-if was tried" if with_what_ifs else "")
        elif len(explanation.gains) < len(self.what_ifs):
            missing = f"{len(explanation.gains)} of {len(self.what_ifs)} what-ifs were tried"
        else:
            missing = "the what-ifs that help were not measured together"
        explanation.caveats.insert(0, f"The explanation was interrupted: {missing}.")
