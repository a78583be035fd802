"""The study behind `devbench scale`: one program with one worker and with several, and the levels that divide a step.

Each size is measured with the reduction of the gradients and without it. The bare worker has no strategy. The bare
worker and several workers also run on batches that are ready in memory, which shows what the input costs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from bench import backends, registry
from bench.analyse.samples import has_measurements
from bench.analyse.scaling import scaling_of
from bench.analyse.scaling_levels import is_size
from bench.config.settings import RunSettings
from bench.errors import Interrupted, NotApplicable, RunFailed, SettingsError, UsageError
from bench.model.plan import Group, Planned
from bench.model.result import Result
from bench.model.scaling import ScalingStudy
from bench.model.spec import Loop, Scaling, Strategy, Threads, Workers
from bench.publish.recorder import Recorder
from bench.registry.description import Resolved
from bench.session import cluster_agent, stopping
from bench.session.design import Design, with_first
from bench.session.session import Session
from bench.study.explain_levels import with_script
from bench.study.plan import plan
from bench.study.recorded import recorded, title_of
from bench.study.scale_hosts import Hosts, check_hosts, cluster_run, cpus_of_each, devices_of_each
from bench.worker.rendezvous.losing import of_cluster

SECONDS = 600.0
"""Default time limit of a study."""

FIRST_TRIAL = Design(purpose="scale", pilot=1, full=False, profiled="none")
"""The design of the trial that shows what a script trains."""

ALWAYS_SEPARATE = 1000
"""Trials whose workers start one after another: all of them. Several processes start for each size."""


def scale(
    program: str,
    settings: RunSettings,
    sizes: Sequence[int],
    scaling: Scaling = "strong",
    strategy: Strategy = "multi-worker",
    cluster: Hosts | None = None,
    recorder: Recorder | None = None,
) -> ScalingStudy:
    """Measure a program with one worker and with several. The arguments and errors are those of `bench.api.scale`."""
    with recorded(settings, f"scale {title_of([program], settings)}", recorder) as record:
        study = ScaleStudy(program, settings, record, sizes, scaling, strategy, cluster or Hosts())
        try:
            return study.run()
        except Interrupted as error:
            document = None
            if any(map(has_measurements, study.results)):
                with suppress(RunFailed):  # one worker alone was not measured
                    document = study.read()
            raise Interrupted(error.signum, study.results, document) from None


@dataclass
class ScaleStudy:
    """Measures the sizes of one program.

    Args:
        program: Name or file.
        settings: The settings of every size.
        recorder: Saves results and receives the progress.
        sizes: Numbers of workers.
        scaling: Whether workers share each batch.
        strategy: The strategy of the workers.
        cluster: Where the workers run.

    Attributes:
        results: All results so far.
    """

    program: str
    settings: RunSettings
    recorder: Recorder
    sizes: Sequence[int]
    scaling: Scaling = "strong"
    strategy: Strategy = "multi-worker"
    cluster: Hosts = field(default_factory=Hosts)
    results: list[Result] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sizes = sorted(set(self.sizes))
        self.settings = stopping.with_time_limit(self.settings, SECONDS)
        self._deadline = time.monotonic() + self.settings.max_time
        self.id = self.recorder.new_id()
        check_settings(self.settings)
        check_hosts(self.sizes, self.cluster)
        if self.strategy == "mirrored" and (self.cluster.hosts or self.scaling == "weak"):
            raise SettingsError("the strategy mirrored takes neither --hosts nor weak scaling", "Use multi-worker.")
        most = max(self.sizes)
        self.cpus = None if self.cluster.hosts or most == 1 else cpus_of_each(most)  # None: all of the machine

    def run(self) -> ScalingStudy:
        """Measure all sizes.

        Raises:
            UsageError: The request cannot be met.
            RunFailed: One worker alone could not be measured.
            Interrupted: A signal. `results` holds what was measured.
        """
        try:
            levels = self._levels()
            design = Design(
                purpose="scale",
                parent=self.id,
                pairs=_sizes_with_first,
                pilot=3,
                separate_starts=ALWAYS_SEPARATE,
                full=False,
                profiled="none",
                deadline=self._deadline,
                cluster=partial(cluster_run, self.cluster),
            )
            session = Session(Group(self.program, tuple(levels)), self.settings, design, self.recorder)
            for result in session.results:
                result.purpose = "run" if is_size(result.spec) else "scale"
                result.recognition = self._recognition
            self.results += session.results
            session.run()
        finally:
            if self.cluster.hosts:
                cluster_agent.dismiss(self.cluster.port, max(self.sizes) - 1)
        return self.read()

    def read(self) -> ScalingStudy:
        """Return what the results so far show.

        Raises:
            RunFailed: One worker alone could not be measured, or another host was gone before it was.
        """
        first = self.results[0]
        gone = [r.failure for r in self.results if r.failure and of_cluster(r.failure)]
        if gone and self.cluster.hosts and not has_measurements(first):
            raise RunFailed(gone[0].message, gone[0].advice)
        if first.failure is not None:
            raise RunFailed(f"cannot measure {first.spec.label}: {first.failure.message}", first.failure.advice)
        return scaling_of(self.results, self.settings.threshold)

    def _levels(self) -> list[Planned]:
        """Return the levels, the bare worker first.

        Raises:
            UsageError: There is no such program, or its step cannot run under a strategy.
        """
        self._recognition = None
        (group,) = plan([self.program], self.settings.model_copy(update={"loop": ()}))
        if len(group.planned) > 1:
            raise NotApplicable(f"{self.program} has several cases", "Name one --case.")
        program = group.planned[0]
        self._check_batch(program)
        if backends.capabilities(program.spec.backend).gpu and not self.cluster.hosts:
            devices_of_each(self.sizes[-1])
        resolved = registry.resolve(self.program, program.spec.params, self.settings.worker_timeout)
        if resolved.is_script:
            first = self._first_trial(program)
            resolved, self._recognition = with_script(resolved, first), first.recognition
        loop = self._loop(program, resolved)
        return [self._level(program, workers, loop) for workers, loop in self._workers(loop, "data" in resolved.offers)]

    def _loop(self, program: Planned, resolved: Resolved) -> Loop:
        """Return the loop that runs the steps of the workers.

        Raises:
            NotApplicable: No loop can run them under the strategy.
        """

        def obstacle(loop: Loop) -> str | None:
            return registry.obstacle(resolved.offers, resolved.not_loops, loop)

        if self.strategy == "mirrored":
            if reason := obstacle("fit"):
                raise NotApplicable(f"{program.spec.title} cannot run under the strategy mirrored, because {reason}")
            return "fit"
        if not obstacle("step"):
            return "step"
        if reason := obstacle("host-batches"):
            raise NotApplicable(f"{program.spec.title} cannot run with several workers, because {reason}")
        return "host-batches"

    def _workers(self, loop: Loop, has_input: bool) -> Iterable[tuple[Workers, Loop]]:
        """Yield the workers and the loop of each level."""
        divides_input = has_input and loop == "step" and self.sizes[-1] > 1

        def workers(count: int, **options: object) -> Workers:
            fields = {"strategy": self.strategy, "scaling": self.scaling if count > 1 else "strong", **options}
            return Workers(count=count, cpus=self.cpus, **fields)

        bare = workers(1, strategy="none")
        yield bare, loop
        if divides_input:
            yield bare, "host-batches"
        for count in dict.fromkeys([1, *self.sizes]):
            yield workers(count), loop
            if count > 1:
                yield workers(count, reduce=False), loop
                if divides_input:
                    yield workers(count, reduce=False), "host-batches"

    def _level(self, program: Planned, workers: Workers, loop: Loop) -> Planned:
        replicas = workers.count if workers.strategy == "mirrored" else 1  # in one process
        threads = (self.settings.threads or self.cpus or 0) * replicas
        spec = program.spec.model_copy(
            update={
                "loop": loop,
                "xla": self.settings.xla == "on",
                "workers": workers,
                "threads": Threads(intra=threads, inter=threads) if threads else program.spec.threads,
            }
        )
        return replace(program, spec=spec)

    def _first_trial(self, program: Planned) -> Result:
        """Run a script once, to find out what it trains.

        Raises:
            RunFailed: It failed.
        """
        settings = self.settings.model_copy(update={"max_processes": 1})
        design = replace(FIRST_TRIAL, parent=self.id, inspect=True, deadline=self._deadline)
        session = Session(Group(self.program, (program,)), settings, design, self.recorder)
        session.run()
        (result,) = session.results
        if result.failure is not None:
            raise RunFailed(f"cannot measure {program.spec.label}: {result.failure.message}", result.failure.advice)
        return result

    def _check_batch(self, program: Planned) -> None:
        """Check that the batch divides among the workers, where it is known before the run.

        Raises:
            UsageError: It does not.
        """
        batch = program.spec.params.get("batch")
        for count in self.sizes:
            if self.scaling == "strong" and isinstance(batch, int) and batch % count:
                raise UsageError(
                    f"a batch of {batch} examples does not divide among {count} workers",
                    f"Choose another batch, such as --param batch={max(1, batch // count) * count}, or use --scaling "
                    "weak.",
                )


def _sizes_with_first(results: Sequence[Result]) -> Iterable[tuple[Result, Result]]:
    """Pair each size with the bare worker. The other levels need no verdict."""
    return [(base, other) for base, other in with_first(results) if is_size(other.spec)]


def check_settings(settings: RunSettings) -> None:
    """Check that no setting is set that a study of workers cannot take.

    Raises:
        SettingsError: One is.
    """
    if len(settings.backend) > 1:
        raise SettingsError("scale takes one backend", "Name one --backend, and compare the studies in a report.")
    if not all(backends.capabilities(name).distributes for name in settings.backend):
        raise SettingsError(f"scale does not support the backend {settings.backend[0]}", "Use --backend cpu or cuda.")
    for name in ("loop", "env", "vary", "full", "profile", "compare", "change"):
        if getattr(settings, name):
            raise SettingsError(f"scale does not take --{name}", "Use `devbench run` for it.")
