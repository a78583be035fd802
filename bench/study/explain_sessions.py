"""The sessions of an explanation, which share its time limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bench.config.settings import RunSettings
from bench.model.plan import Group, Planned
from bench.model.recognition import Recognition
from bench.model.result import Result
from bench.publish.recorder import Recorder
from bench.session.design import Design
from bench.session.session import Session
from bench.session.worker_servers import WorkerServers
from bench.study.budget import TimeBudget


@dataclass
class ExplainSessions:
    """Measures specs for one explanation.

    Args:
        workload: Name or file.
        settings: The settings of every session.
        recorder: Saves results and receives the progress.
        servers: The worker servers from which workers are forked. None if all workers are fresh.

    Attributes:
        results: All results so far.
        budget: The time limit of all sessions together.
        id: Id of the explanation.
        recognition: How the steps of a script are recognized. None before the first session, and for a workload.
    """

    workload: str
    settings: RunSettings
    recorder: Recorder
    servers: WorkerServers | None = None
    results: list[Result] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.budget = TimeBudget(self.settings)
        self.id = self.recorder.new_id()
        self.recognition: Recognition | None = None

    def measure(
        self,
        planned: Sequence[Planned],
        design: Design,
        share: float = 1.0,
    ) -> list[Result]:
        """Measure specs as a group.

        Args:
            planned: The specs, the baseline first.
            design: How they are measured.
            share: The share of the time left that they may take.
        """
        settings = self.settings.model_copy(update={"max_time": self.budget.part(share)})
        group = Group(self.workload, tuple(planned))
        session = Session(group, settings, self.timed(design), self.recorder, self.servers)
        self.results += session.results
        for result in session.results:
            result.recognition = self.recognition
        session.run()
        self.recognition = session.results[0].recognition
        self.budget.observe(session.results)
        return session.results

    def timed(self, design: Design) -> Design:
        """Return a design of this explanation, with its time limit."""
        return replace(design, parent=self.id, deadline=self.budget.deadline, last_moment=self.budget.last_moment)
