"""A session measures one group, trial after trial, until the results are as accurate as requested.

The parent works between blocks only: it reports progress, writes results, and sleeps while a block is timed. Every
result is on disk before the next trial starts.
"""

from __future__ import annotations

import random
import secrets
import time

from bench.config.settings import RunSettings
from bench.errors import DevbenchError, Interrupted, OutputError, UsageError
from bench.model.facts import Facts
from bench.model.failure import Failure
from bench.model.plan import Group
from bench.model.result import Result, StopReason
from bench.publish.recorder import Recorder
from bench.session import one_off, rounds, stopping
from bench.session.design import Design
from bench.session.interleave import Interleaving
from bench.session.launch import ClusterLost, Launcher, TrialMember
from bench.session.progress import ProgressReporter
from bench.session.recognize import recognize
from bench.session.results import conclude, copy_common, new_results, summarize_planned
from bench.session.script_folder import ScriptFolder, script_folders
from bench.session.stop_decision import StopDecision
from bench.session.worker_process import OutOfTime
from bench.session.worker_servers import WorkerServers


class Session:
    """Measures one group of specs.

    Args:
        group: The specs. Their workers are interleaved.
        settings: Targets and limits.
        design: What is compared, how many trials there are, and what is diagnosed.
        recorder: Saves results and receives the progress.
        servers: The worker servers from which workers are forked. None if all workers are fresh.
        folders: What `script_folders` returns for the group. Default: the session calls it.

    Attributes:
        results: One for each spec. They grow while the session runs.
    """

    def __init__(
        self,
        group: Group,
        settings: RunSettings,
        design: Design,
        recorder: Recorder,
        servers: WorkerServers | None = None,
        folders: dict[str, ScriptFolder] | None = None,
    ) -> None:
        self.settings = settings
        if design.default_max_time is not None:
            self.settings = stopping.with_time_limit(settings, design.default_max_time)
        self.design = design
        self.recorder = recorder
        self._plan = {planned.spec.key: planned for planned in group.planned}
        self._rng = random.Random(secrets.randbits(64))
        self._start_order: list[Result] = []
        self._trial_start = 0.0
        self._first_trial_seconds = 0.0
        self._trials_seconds: float | None = None
        self._scouted: dict[str, Facts] = {}  # facts from the recognition of scripts, by the keys of results
        self.results = new_results(group, settings, design, recorder)
        self._progress = ProgressReporter(self.results, self._plan, recorder.progress)
        self._stop = StopDecision(self.results, self.settings, design, self._progress)
        self._folders = script_folders(group, settings) if folders is None else folders
        self.launcher = Launcher(
            settings.worker_timeout,
            self._progress,
            recorder.save,
            design.last_moment,
            servers,
            self._folders,
            self._is_cold,
            design.cluster,
            design.inspect,
        )

    def run(self) -> list[Result]:
        """Run trials until a target or a limit is reached, then the full training and the profile if asked for.

        Raises:
            Interrupted: SIGINT or SIGTERM. The results hold what was measured and are saved as partial.
            OutputError: The disk is full, or the folder for results can no longer be written.
        """
        new = [result.key for result in self.results if result.recognition is None]
        for announcement in dict.fromkeys(self._folders[key].announcement for key in new if key in self._folders):
            self.recorder.tell(announcement)
        try:
            self._recognize()
            self._progress.begin()  # the time limit is for the trials
            self._stop.limit_to_deadline()
            reason = self._run_trials() if self._stop.working() else "failed"
            self._trials_seconds = self._progress.elapsed
            self._run_one_offs()
        except OutOfTime:
            self.launcher.abandon("the time limit was reached")
            reason = "max-time"
        except ClusterLost as lost:
            self.launcher.abandon(lost.failure.message)
            reason = "failed"
        except Interrupted:
            self.launcher.abandon()
            self._conclude("interrupted")
            raise
        except OutputError:  # there is no place for results
            raise
        except DevbenchError as error:  # such as a limit of processes
            self.launcher.abandon(error.message)
            kind = "workload" if isinstance(error, UsageError) else "error"
            for result in self._stop.working():
                result.failure = Failure(kind=kind, message=error.message, hint=error.hint)
            reason = "failed"
        finally:
            self.launcher.abandon()
        self._conclude(reason)
        return self.results

    def _recognize(self) -> None:
        """Find the steps of scripts."""
        self._scouted = recognize(self.launcher, self.results)
        for result in self._stop.working():
            if self.design.after_recognition is not None and result.key in self._scouted:
                self.design.after_recognition(result, self._scouted[result.key])

    def refuse(self, failure: Failure) -> None:
        """Fail all results before anything is measured."""
        for result in self.results:
            result.failure = failure
        self._conclude("failed")

    def _run_trials(self) -> StopReason:
        while True:
            self._trial_start = time.monotonic()
            self._progress.begin_trial()
            self._progress.budget = self._stop.time_limit()
            self._run_trial()
            for result in self.results:
                self._summarize(result)
                self.recorder.save(result)
            if self.design.after_trial is not None:
                self.design.after_trial(self.results)
            seconds = time.monotonic() - self._trial_start
            self._first_trial_seconds = self._first_trial_seconds or seconds
            reason = self._stop.reason(seconds)
            if reason:
                return reason

    def _run_trial(self) -> None:
        """Start one worker for each spec, interleave their blocks, and diagnose."""
        together = self._progress.trial > self._stop.separate_starts(self._first_trial_seconds)
        for members in self.launcher.trial(self._in_start_order(), together):
            if members:
                self._measure(members)

    def _is_cold(self, alone: bool) -> bool:
        """Return whether a worker, which starts alone or not, must be fresh."""
        return alone and self.design.cold_starts == "alone"

    def _measure(self, members: list[TrialMember]) -> None:
        start_seconds = time.monotonic() - self._trial_start
        timing = Interleaving(members, self._rng, self.launcher, self._progress)
        timing.run_minimum()
        measured = set(map(id, timing.results))  # which are in the order of their starts
        results = [result for result in self.results if id(result) in measured]
        accuracy = self._stop.accuracy(results) if len(members) > 1 else None
        if len(members) > 1 and timing.rounds and not (accuracy and accuracy.clear):  # no rounds if all scripts ended
            budget = self._stop.trial_limit(start_seconds, timing.seconds)
            compared = self.design.pairs(results)
            timing.run_until(rounds.best_rounds(compared, timing.rounds, timing.seconds, start_seconds, budget))
        self._finish(members)

    def _finish(self, members: list[TrialMember]) -> None:
        """Run the latency pass and the diagnosis of each worker, the baseline's first, and end the worker."""
        baseline, diagnosed = self.results[0], self.design.diagnosed is not None
        for result, worker in sorted(members, key=lambda member: member[0] is not baseline):
            if worker.sample.failure is not None:
                continue
            known = diagnosed and result is baseline
            inspect = self.design.inspect and len(result.samples) == 1 and not known
            with self.launcher.guard(result, worker, timed=True):
                worker.resume()
                worker.finish(
                    check_placement=result.placement is None and not known,
                    latency=len(worker.sample.series) == 1 and result.spec.loop != "fused" and not diagnosed,
                    inspect=inspect,
                    stages=inspect and (result is baseline or not self._has_pipeline()),
                    waits=not diagnosed and self._stop.has_time_for_pilot(time.monotonic() - self._trial_start),
                    brief=known,
                )
            if inspect and result.key in self._scouted:
                worker.sample.facts = worker.sample.facts.completed(self._scouted[result.key])
            if result.failure is None:
                copy_common(worker, result)

    def _has_pipeline(self) -> bool:
        """Whether a result has timed the stages of its pipeline, which are the same in all levels of a ladder."""
        results = [*self.results, *filter(None, [self.design.diagnosed])]
        return any(sample.facts.pipeline is not None for result in results for sample in result.samples)

    def _in_start_order(self) -> list[Result]:
        """Return the open results in the order in which their workers start.

        The order is random and then rotates, so that each result starts in each position equally often. The worker
        that starts first is slower for that reason alone (`bench.analyse.stats.Contrast.adjusted`).
        """
        results = self._stop.open_results()
        shift = (self._progress.trial - 1) % len(results)
        if shift == 0 or len(self._start_order) != len(results):
            self._start_order = self._rng.sample(results, len(results))
        return self._start_order[shift:] + self._start_order[:shift]

    def _run_one_offs(self) -> None:
        for result in self._stop.working():
            if self.settings.full and self.design.full:
                one_off.train(self.launcher, result)
            if self.settings.profile is not None and self._is_profiled(result) and result.failure is None:
                one_off.profile(self.launcher, result, self.settings.profile)

    def _is_profiled(self, result: Result) -> bool:
        return self.design.profiled == "all" or (self.design.profiled == "first" and result is self.results[0])

    def _summarize(self, result: Result) -> None:
        summarize_planned(result, self._plan[result.key])

    def _conclude(self, reason: StopReason) -> None:
        stop = self._stop.stop(reason, self._trials_seconds or self._progress.elapsed)
        for result in self.results:
            self._summarize(result)
        conclude(self.results, stop)
        for result in self.results:
            self.recorder.save(result)
