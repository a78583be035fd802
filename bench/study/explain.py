"""The study behind an explanation: the ladder, the roofline, the what-ifs, and the what-ifs that help combined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from bench import registry, whatif
from bench.analyse.explain import shares
from bench.analyse.explain.answer import conclude
from bench.analyse.explain.suspects import suspects, suspects_in
from bench.analyse.explain.utilization import bound
from bench.analyse.roofline import has_known_work, roofline
from bench.analyse.samples import usable_samples
from bench.config.settings import RunSettings
from bench.errors import DevbenchError, Interrupted, OutputError, RunFailed
from bench.model.explanation import CauseKind, Explanation
from bench.model.plan import Planned
from bench.model.result import Result
from bench.model.spec import Loop
from bench.publish.recorder import Recorder
from bench.render.sentences.explanation import so_far
from bench.session.starting import may_fork, prepare_server
from bench.session.worker_servers import WorkerServers
from bench.study.explain_levels import (
    LADDER,
    is_known,
    largest_so_far,
    levels_of,
    not_in_time,
    not_measured,
    read_ladder,
    read_levels,
    with_first_trial,
    with_script,
)
from bench.study.explain_program import offers_of, program_of
from bench.study.explain_sessions import ExplainSessions
from bench.study.explain_what_ifs import WHAT_IF, WhatIfStudy
from bench.study.peaks import PEAKS, peaks_for
from bench.study.plan import spec_of_settings
from bench.study.recommend import Tried, fastest
from bench.study.recorded import keeping, recorded, title_of
from bench.whatif import WhatIf

FIRST = replace(WHAT_IF, separate_starts=1, cold_starts="alone", inspect=True, enough=lambda results: True)
"""The design of the first trial, of the program alone."""

PEAKS_SHARE = 0.3
"""Share of the time left that measuring the peaks of the machine may take."""


def explain(
    workload: str, settings: RunSettings, recorder: Recorder | None = None, *, what_ifs: bool = True
) -> Explanation:
    """Explain a workload. The arguments, results and errors are those of `bench.api.explain`."""
    title = f"explain {title_of([workload], settings)}"
    study: ExplainStudy | None = None

    def kept() -> tuple[Sequence[Result], Explanation | None]:
        return (study.results, study.explanation) if study is not None else ((), None)

    with recorded(settings, title, recorder) as record, keeping(kept), WorkerServers() as servers:
        study = ExplainStudy(workload, settings, record, servers)
        try:
            explanation = study.run(what_ifs)
        except Interrupted:
            if study.explanation is not None:
                record.save_explanation(study.explanation)
            raise
        record.save_explanation(explanation)
    return explanation


class ExplainStudy:
    """Measures what an explanation of one workload needs.

    Args:
        workload: Name or file.
        settings: The settings of every session. `max_time` limits all of them together.
        recorder: Saves results and receives the progress.
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
        self._told: list[tuple[CauseKind, str]] | None = None

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
        servers, is_script = self.sessions.servers, registry.is_script(self.workload)
        if servers is not None and not is_script:  # while another process reads the program
            prepare_server(servers, spec_of_settings(self.workload, self.settings))
        program = program_of(self.workload, self.settings)
        if servers is not None and is_script:  # while another process finds its steps
            prepare_server(servers, program.spec)
        resolved = offers_of(program, self.workload, self.settings)
        self.recorder.tell(self.sessions.budget.announcement())
        try:
            first = self._first_trial(program)
            compiled = program.spec.xla
            if compiled is None:  # the program itself decides
                compiled = any(sample.facts.jit_compile for sample in first.samples)
            resolved = with_script(resolved, first)
            levels, missing = levels_of(program, resolved, compiled)
            results = self._measure_ladder(program, first, levels, missing, with_what_ifs)
        except Interrupted:
            if self.explanation is not None:
                self._add_interruption(self.explanation, with_what_ifs)
            raise
        explanation, measured = read_levels(self.sessions.id, program, first, results, missing)
        self._keep(explanation)
        what_ifs = partial(WhatIfStudy, self.sessions, explanation, program, resolved, measured, compiled)
        self._complete(explanation, measured, what_ifs if with_what_ifs else None)
        return explanation

    def _complete(
        self, explanation: Explanation, measured: Sequence[Result], what_ifs: Callable[[], WhatIfStudy] | None
    ) -> None:
        """Add the roofline and the what-ifs. What was measured before still counts if they fail.

        Args:
            explanation: What the ladder shows.
            measured: The levels that were measured.
            what_ifs: Makes the study of the what-ifs. None if none is to be tried.

        Raises:
            OutputError: There is no place for results.
            Interrupted: A signal.
        """
        try:
            self._add_roofline(explanation, measured[-1])
            if what_ifs is not None:
                self._what_ifs = what_ifs()
                self._what_ifs.run()
        except Interrupted:
            self._add_interruption(explanation, what_ifs is not None)
            raise
        except OutputError:
            raise
        except DevbenchError as error:
            explanation.caveats.insert(0, f"The explanation is incomplete: {error.message.rstrip('.')}.")
        finally:
            shares.from_what_ifs(explanation)
            conclude(explanation)
            explanation.fastest = fastest(self.workload, self.settings, measured, self.tried)

    def _first_trial(self, program: Planned) -> Result:
        """Measure and inspect the program alone, in a fresh process. Report what that shows.

        Raises:
            RunFailed: It could not be measured, or not in time. The ladder would fail too, in each of its levels.
        """
        told: set[str] = set()

        def tell(sentences: Iterable[str]) -> None:
            for sentence in sentences:
                if sentence.partition(":")[0] not in told:
                    self.recorder.tell(f"suspect: {sentence}")
                    told.add(sentence.partition(":")[0])

        design = replace(FIRST, after_recognition=lambda script, facts: tell(suspects_in(script, facts)))
        (first,) = self.sessions.measure([program], design)
        if first.failure is not None:
            raise not_measured(program, first)
        if not usable_samples(first):
            raise not_in_time(program, first, self.sessions.budget.limit)
        if self.sessions.servers is not None and may_fork(first):
            self.sessions.budget.expect_forked(first.samples[0])
        tell(suspects(first))
        self._tell(program, [first], {})
        return first

    def _measure_ladder(
        self, program: Planned, first: Result, levels: list[Planned], missing: dict[Loop, str], with_what_ifs: bool
    ) -> list[Result]:
        """Measure the levels that there is time for. Levels that are left out are added to the missing ones."""
        budget = self.sessions.budget
        findings = self.explanation.findings if self.explanation is not None else []
        proposed = {name for finding in findings for name in finding.what_ifs}
        ladder_plan = budget.ladder(levels, with_what_ifs, suspects=sum(map(whatif.tests_suspect, proposed)))
        no_time = f"there was no time for it. Use --max-time {budget.limit_for(len(levels))}"
        missing |= {level.spec.loop: no_time for level in ladder_plan.left_out}
        if not budget.fits(1):
            return [first]
        if budget.worker_seconds:
            self.recorder.tell(budget.estimate(len(ladder_plan.levels)))

        def joined(results: Sequence[Result]) -> list[Result]:
            return [with_first_trial(program, first, results[0]), *results[1:]]

        def tell(results: Sequence[Result]) -> None:
            self._tell(program, joined(results), missing)

        is_minor = self.explanation is not None and self.explanation.steps_are_minor
        enough = (lambda results: True) if is_minor else is_known
        design = replace(LADDER, after_trial=tell, enough=enough, diagnosed=first)
        before = len(self.results)
        try:
            return joined(self.sessions.measure(ladder_plan.levels, design, ladder_plan.share))
        except Interrupted:
            results = self.results[before:]
            with suppress(RunFailed):
                self._read(program, joined(results) if results else [first], missing)
            raise

    def _tell(self, program: Planned, results: Sequence[Result], missing: dict[Loop, str]) -> None:
        """Report what the trials so far show: the largest part, and the first cause if it has changed."""
        with suppress(RunFailed):
            explanation = self._read(program, results, missing)
            self.recorder.explanation = explanation
            causes = [(change.kind, change.name) for change in explanation.answer[:1]]
            if causes != self._told:
                self.recorder.tell(so_far(explanation))
            self._told = causes
        self.recorder.largest_part = largest_so_far(results)

    def _read(self, program: Planned, results: Sequence[Result], missing: dict[Loop, str]) -> Explanation:
        """Conclude from the ladder so far.

        Raises:
            RunFailed: It shows nothing.
        """
        explanation, _ = read_ladder(self.sessions.id, program, results, missing)
        self._keep(explanation)
        conclude(explanation)
        return explanation

    def _keep(self, explanation: Explanation) -> None:
        """Keep an explanation as the one so far."""
        if self.settings.full:
            explanation.caveats.append("--full has no effect on explain. Use `devbench run --full`.")
        self.explanation = explanation

    def _add_roofline(self, explanation: Explanation, lowest: Result) -> None:
        if not has_known_work(lowest):
            explanation.caveats.append("There is no roofline: the operations or bytes of a step are unknown.")
            return
        budget = self.sessions.budget
        settings = self.settings.model_copy(update={"max_time": budget.part(PEAKS_SHARE)})
        design = self.sessions.timed(PEAKS) if budget.fits(1, share=PEAKS_SHARE) else None
        try:
            peaks = peaks_for(lowest, settings, self.recorder, design, self.sessions.servers)
        except Interrupted:
            raise
        except DevbenchError as error:
            explanation.caveats.append(f"There is no roofline: {error.message.rstrip('.')}.")
            return
        explanation.roofline = roofline(lowest, peaks) if peaks else None
        if explanation.roofline is None:
            explanation.caveats.append("There is no roofline: the peaks of this machine are unknown.")
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
