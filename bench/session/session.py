"""The session: trials of workers that take turns, until the answer is as sure as asked for.

The parent conducts, and works only between blocks: it draws progress, writes results, and sleeps while a
block is timed. Where specs are compared, their workers are started one after another, so that each start
is measured alone, and at once when the starts are known; then they take turns block by block in random
order; whoever waits is suspended. Every result is on disk before the next trial starts.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench import registry
from bench.analyse import stats, summary
from bench.analyse.pairing import within_group
from bench.config.settings import RunSettings
from bench.errors import Interrupted
from bench.machine import environment
from bench.model.plan import Group
from bench.model.result import Failure, Price, Purpose, Result, Stop
from bench.model.run_state import Estimate, Listener, Measured, Progress
from bench.session import launch, one_off, rounds, stopping
from bench.session.interleave import interleave
from bench.session.worker_process import WorkerEnded
from bench.session.worker_sample import Sampling
from bench.signals import whole
from bench.version import __version__

Save = Callable[[Result], Path]

PHASED = 3
"""Trials of a run whose starts are measured, each alone; from then on workers start at once, which takes less time.

Where `--max-time` would not hold a pilot of such trials, only the first is.
"""


class Session:
    """Measures one group of specs.

    Args:
        group: specs whose workers take turns.
        settings: targets and caps.
        save: writes a result; called after each trial.
        listener: told of progress, only between blocks.
        new_id: makes the results' ids.
        purpose: what the results are for, and the id of what they belong to.
        pilot: trials that there are at least.
        confidence: level of the intervals that will be published.
    """

    def __init__(
        self,
        group: Group,
        settings: RunSettings,
        save: Save,
        listener: Listener,
        new_id: Callable[[], str],
        purpose: tuple[Purpose, str | None] = ("run", None),
        pilot: int = stopping.PILOT,
        confidence: float = stats.CONFIDENCE,
    ) -> None:
        compares = purpose[0] == "run" and len(group.planned) > 1
        self.settings = stopping.capped(settings, stopping.COMPARING_SECONDS) if compares else settings
        self.pilot = pilot
        self.save = save
        self.listener = listener
        self.planned = group.planned
        self.rng = random.Random(secrets.randbits(64))
        self.begun = time.monotonic()
        self.target = settings.threshold if len(group.planned) > 1 else settings.target_error
        self.pairs = {"level": stopping.neighbours, "what-if": stopping.with_the_first}.get(purpose[0], within_group)
        self.confidence = confidence
        self.answered = 0.0
        self.trial = 0
        self.trial_begun = self.begun
        self.first_seconds = 0.0
        self.needed: int | None = None
        self.workers: list[Sampling] = []
        self.order: list[Result] = []
        host = environment.host()
        self.load = environment.load()
        together = new_id()
        price = None
        if settings.hourly_price is not None:
            price = Price(per_hour=settings.hourly_price, currency=settings.currency)
        self.results = [
            Result(
                id=new_id(),
                attempt=settings.attempt,
                created=datetime.now(timezone.utc),
                devbench=__version__,
                spec=planned.spec,
                key=planned.spec.key,
                where=environment.where({"host": host}),
                group=together,
                purpose=purpose[0],
                part_of=purpose[1],
                environment={"host": host},
                price=price,
                notes=[*planned.notes, *group.not_applicable],
            )
            for planned in self.planned
        ]

    def run(self) -> list[Result]:
        """Trials until a target or a cap; then the whole training, where asked for.

        Raises:
            Interrupted: by SIGINT or SIGTERM; what was measured is in the results, which are saved as partial.
        """
        try:
            reason = self._trials()
            self.answered = time.monotonic() - self.begun
            self._extra()
        except Interrupted:
            self._abandon()
            self._conclude("interrupted")
            raise
        finally:
            self._abandon()
        self._conclude(reason)
        return self.results

    def refuse(self, failure: Failure) -> None:
        """Ends the results before anything is measured, all by this failure."""
        for result in self.results:
            result.failure = failure
        self._conclude("failed")

    def _trials(self) -> str:
        while True:
            self.trial_begun = time.monotonic()
            self.trial += 1
            self._one_trial()
            for result in self.results:
                summary.summarise(result, self._of(result).total_steps, self._of(result).examples)
                self.save(result)
            took = time.monotonic() - self.trial_begun
            self.first_seconds = self.first_seconds or took
            reason = self._stop(took)
            if reason:
                return reason

    def _of(self, result: Result) -> Any:
        return next(p for p in self.planned if p.spec.key == result.key)

    def _stop(self, trial_seconds: float) -> str | None:
        """Why no further trial is needed or possible; none to go on."""
        if not self._open():
            return "failed"
        reached = stopping.reached(self._open(), self.target, self.pairs, self.confidence)
        self.needed = None
        if reached and reached.needed:
            self.needed = min(max(stopping.least(reached, self.pilot), reached.needed), self.settings.max_processes)
        elapsed = time.monotonic() - self.begun
        return stopping.reason(reached, self.trial, elapsed, trial_seconds, self._limits(), self.pilot)

    def _limits(self) -> RunSettings:
        """The settings with the `--max-time` that holds by now."""
        first = self.results[0]
        alone = len(self.results) == 1 and first.purpose == "run"
        return stopping.soon(self.settings, first.projection) if alone else self.settings

    def _open(self) -> list[Result]:
        """Results whose workers have not failed."""
        return [result for result in self.results if result.failure is None]

    def _one_trial(self) -> None:
        """One worker of each spec, all alive together, taking turns; or one after another where memory is short."""
        order = self._starts(self._open())
        known = PHASED if self.results[0].purpose == "run" and self._roomy(self.first_seconds) else 1
        start = launch.at_once if self.trial > known and launch.may_coincide(order) else launch.one_by_one
        pairs = start(self, order)
        if pairs:
            self.measure(pairs)

    def _roomy(self, seconds: float) -> bool:
        """Whether there is time for more than a verdict, if a trial takes so long; one spec has its own cap."""
        return len(self.results) == 1 or stopping.roomy(seconds, self.settings, self.pilot)

    def _starts(self, results: list[Result]) -> list[Result]:
        """Who is started when: in random order, then with each of them first in turn, so that all places are as often.

        Whoever is started first is slower by itself (`bench.analyse.stats.Contrast.adjusted`).
        """
        turn = (self.trial - 1) % len(results)
        if turn == 0 or len(self.order) != len(results):
            self.order = self.rng.sample(results, len(results))
        return self.order[turn:] + self.order[:turn]

    def start(self, result: Result, full: bool = False, place: int = 0) -> Sampling | None:
        """A worker that has set itself up and warmed up, or begun to train; none where it ended badly."""
        worker = self.begin(result, full, place)
        with self.guarded(result, worker):
            if not full:
                worker.set_up()
                worker.warm_up()
        return worker if worker.sample.failure is None else None

    def begin(self, result: Result, full: bool = False, place: int | None = 0) -> Sampling:
        """A worker that has just been started; its sample is the result's last."""
        backend = registry.backend(result.spec.backend)
        variables = {"TF_ENABLE_ONEDNN_OPTS": str(int(result.spec.onednn)), **backend.environment(result.spec)}

        def tell(phase: str, note: str) -> None:
            self._tell(result, phase, note)

        with whole():  # a worker that is started is one that `_abandon` knows
            worker = Sampling(
                result.spec, self.trial, variables, self.settings.worker_timeout, tell, full, place, self.load
            )
            self.workers = [*(each for each in self.workers if each.alive), worker]
            result.samples.append(worker.sample)
        return worker

    def measure(self, pairs: list[tuple[Result, Sampling]]) -> None:
        """Blocks in turns, then each worker's latency pass and end, alone."""
        start_seconds = time.monotonic() - self.trial_begun

        def length(done: int, seconds: float) -> int:
            compared = self.pairs([result for result, worker in pairs if worker.sample.failure is None])
            budget = 1.5 * start_seconds  # where there are many specs, and few trials of each
            if self.results[0].purpose == "run":
                elapsed, took = time.monotonic() - self.begun, start_seconds + seconds
                budget = stopping.trial_seconds(self.trial, elapsed, took, self.settings, self.pilot)
            return rounds.rounds(compared, done, seconds, start_seconds, budget)

        interleave(pairs, self.rng, self.guarded, lambda result, phase: self._tell(result, phase, ""), length)
        base = self.results[0]
        for result, worker in sorted(pairs, key=lambda pair: pair[0] is not base):
            if worker.sample.failure is None:
                with self.guarded(result, worker):
                    worker.resume()
                    steps = len(worker.sample.series) == 1 and result.spec.loop != "fused"
                    inspect = result.purpose == "level" and not result.samples[:-1]  # once is enough
                    stages = inspect and (result is base or not self._knows_stages())
                    worker.finish(
                        prove=result.placement is None,
                        latency=steps,
                        inspect=inspect,
                        stages=stages,
                        waits=self._roomy(time.monotonic() - self.trial_begun),
                    )
                    self._accept(result, worker)

    def _knows_stages(self) -> bool:
        """Whether a level has timed its pipeline's stages, which are the others' too; the program's own come first."""
        return any("pipeline" in sample.facts for result in self.results for sample in result.samples)

    def _accept(self, result: Result, worker: Sampling) -> None:
        """Takes over what one worker proved or found out for the whole result."""
        sample = worker.sample
        for key in ("framework", "device"):
            if key in sample.facts:
                result.environment[key] = sample.facts.pop(key)
        result.where = environment.where(result.environment)
        if result.placement is None and sample.placement is not None:
            result.placement = sample.placement
            if not sample.placement.on_device:
                message = f"no proof that the step ran on {sample.placement.asked}: {sample.placement.reason}"
                hint = "Its times are kept in the result, but they prove nothing about that device."
                result.failure = Failure(kind="placement", message=message, hint=hint)

    @contextmanager
    def guarded(self, result: Result, worker: Sampling) -> Iterator[None]:
        """A worker that ends badly fails its own result; the others go on."""
        try:
            yield
        except WorkerEnded as ended:
            worker.fail(ended.failure)
            result.failure = ended.failure
            self.save(result)

    def _extra(self) -> None:
        """What is not measured in trials, once each; of an explanation's levels only the program as it is."""
        for result in self._open():
            if result.purpose == "level" and result is not self.results[0]:
                continue
            if self.settings.full:
                one_off.train(self, result)
            if self.settings.profile is not None and result.failure is None:
                one_off.profile(self, result, self.settings.profile)

    def _abandon(self) -> None:
        """Ends every worker that is still alive, suspended or not."""
        for worker in self.workers:
            if worker.alive:
                message = "the run was interrupted"
                worker.fail(Failure(kind="interrupted", message=message, phase=worker.handle.phase))
        self.workers = []

    def _conclude(self, reason: Any) -> None:
        reached = stopping.reached(self._open() or self.results, self.target, self.pairs, self.confidence)
        for result in self.results:
            planned = self._of(result)
            summary.summarise(result, planned.total_steps, planned.examples)
            result.stop = Stop(
                reason=reason if result.failure is None else "failed",
                trials=self.trial,
                planned=self.needed,
                achieved=reached.error if reached else None,
                target=self.target,
                settled=reached is not None and (reached.settled or reached.decided),
                compared=len(self.results) > 1,
                seconds=self.answered or time.monotonic() - self.begun,
            )
            result.status = "failed" if result.failure else "partial" if reason == "interrupted" else "complete"
        summary.compare_answers(self.results)
        for result in self.results:
            summary.warn(result)
            self.save(result)

    def _tell(self, result: Result, phase: str, note: str) -> None:
        estimates = []
        for each in self.results:
            known = each.summary.step_seconds
            if known is not None:
                estimates.append(Estimate(each.spec.label, known.value, known.relative_error))
        self.listener(
            Progress(
                title=result.spec.label,
                phase=phase,
                note=note,
                trial=self.trial,
                planned=self.needed,
                elapsed=time.monotonic() - self.begun,
                budget=self._limits().max_time,
                estimates=tuple(estimates),
                measured=tuple(
                    Measured(each, summary.examples_of_a_step(self._of(each).examples, each.samples))
                    for each in self.results
                ),
            )
        )
