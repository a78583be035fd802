"""A run's side of a hub: it tells of its start, how far it is and its end, and delivers each result once it is done.

A thread does nothing but the heartbeat, which must come while a block is timed too, or a long compilation would look
like a lost run; it sends some hundred bytes. Results go from the thread that measures, between the groups, when no
worker is alive. If the hub is away nothing waits for it: what it has not got is in the spool.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timezone
from pathlib import Path

from bench.config.settings import RunSettings
from bench.errors import DevbenchError, Interrupted, OutputError
from bench.model.result import Result
from bench.model.run_state import Progress, RunState, State
from bench.publish.hub.client import BRIEF, LAST, PATIENT, Away, Busy, Client, Refused, Unknown, connected
from bench.publish.hub.delivery import deliveries
from bench.publish.hub.outbox import RUNS, Spool
from bench.version import __version__

HEARTBEAT = 15.0
"""Seconds."""

LONGEST = 1000
"""Characters of a reason."""

AGAIN = 5.0
"""Seconds between two tries to deliver the last to a hub that is away."""

POOL, NODE = "DEVBENCH_POOL", "DEVBENCH_NODE"
"""Variables that tell of where the chart put us."""

Warn = Callable[[str], None]


class Reporter:
    """Sends what a run measures.

    Args:
        client: the hub.
        spool: what it has not got.
        run: the run's first state.
        warn: told, once each, what the user should know, at the end where the run is to be seen.
        every: seconds between heartbeats.
        wait: seconds for which it goes on sending at the end, while the hub is away.
    """

    def __init__(
        self, client: Client, spool: Spool, run: RunState, warn: Warn, every: float, wait: float = 0.0
    ) -> None:
        self.client = client
        self.spool = spool
        self.run = run.model_copy(update={"heartbeat_seconds": every})
        self.warn = warn
        self.every = every
        self.wait = wait
        self.away = False
        self.told: set[str] = set()
        self.refused: set[Path] = set()
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.conclusion: tuple[State, str] = ("finished", "")
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def start(self) -> None:
        """Tells of the start, begins the heartbeat, and delivers what earlier runs left, which may take long."""
        self.spool.prepare()
        self._tell()
        self.thread.start()
        self.deliver(BRIEF)

    def progress(self, progress: Progress) -> None:
        """Keep progress for the next heartbeat; send nothing."""
        with self.lock:
            self.run.progress = progress

    def writing(self, path: Path) -> AbstractContextManager[None]:
        """Note in the outbox, around the writing of a file, that the hub has not received it."""
        return self.spool.changing(path)

    def saved(self, result: Result) -> None:
        """Deliver a result that was saved, if it is done."""
        if result.stop is None:
            return
        if result.stop.reason == "interrupted":
            self.client.hurry()
        with self.lock:
            if result.id not in self.run.results:
                self.run.results.append(result.id)
        self.deliver(BRIEF)

    def judge(self, results: Sequence[Result]) -> None:
        """Conclude that the run failed if one of its results failed."""
        failed = [result for result in results if result.status == "failed"]
        if not failed:
            return
        first = failed[0]
        cause = f"{first.spec.label}: {first.failure.message}" if first.failure else first.spec.label
        self.conclusion = ("failed", f"{len(failed)} of {len(results)} failed; {cause}"[:LONGEST])

    def end(self, state: State, reason: str = "") -> None:
        """Tells how the run ended, and delivers what can be delivered; the rest stays in the spool.

        The heartbeat goes on until then; the hub takes none that comes after the run's end, which goes last.
        """
        with self.lock:
            self.run.progress = None
            ended = self.run.model_copy(update={"state": state, "reason": reason})
        if state == "interrupted":
            self.client.hurry()  # and it is not tried again, if it has just been away
        else:
            self.away = False
        limit = time.monotonic() + self.wait
        try:
            kept = self._kept(ended)
            later = self.deliver(BRIEF if state == "interrupted" else PATIENT)
            while later and state != "interrupted" and (rest := limit - time.monotonic()) > 0:
                time.sleep(min(AGAIN, rest))
                self.away = False
                later = self.deliver(BRIEF)
            if not kept:
                self._tell(ended)
        finally:
            self.stop.set()
            if self.thread.is_alive():
                self.thread.join(LAST if state == "interrupted" else None)
        self._warn_of_what_is_left()
        self.client.close()

    def _kept(self, ended: RunState) -> bool:
        """Whether the run's end is in the spool, where it waits as long as it must; not on a disk that is full."""
        try:
            self.spool.keep_run(ended)
        except OutputError:  # has been told by whoever wrote the results
            return False
        return True

    def _warn_of_what_is_left(self) -> None:
        left = [each.path for each in self.spool.waiting()]
        refused = sum(path in self.refused for path in left)
        if waiting := len(left) - refused:
            wait = "documents wait" if waiting > 1 else "document waits"
            self.warn(f"{waiting} {wait} in {self.spool.notes}; the next run with --hub sends them, or `devbench push`")
        if refused:
            what = f"{refused} document{'s' if refused > 1 else ''}"
            self.warn(f"the hub refused {what}; what it can take later is noted in {self.spool.notes} and sent again")
        if not left:
            self.warn(f"at the hub: {self.client.hub}/runs/{self.run.id}")

    def deliver(self, retries: int) -> bool:
        """Delivers what waits, until the hub is away; a refused document stays, and is told.

        Returns:
            Whether something is left that may be taken later.
        """
        later = self.away
        try:
            every = () if self.away else deliveries(self.client, self.spool, self.spool.waiting(), retries)
            for waiting, outcome in every:
                if isinstance(outcome, DevbenchError):
                    later = later or isinstance(outcome, Busy | Unknown)
                    self._warn(outcome)
                if isinstance(outcome, Refused) and not isinstance(outcome, Unknown):
                    self.refused.add(waiting.path)
        except Away as error:
            later = self.away = True
            self._warn(error)
        return later

    def _beat(self) -> None:
        while not self.stop.wait(self.every):
            self.away = False
            self._tell()

    def _tell(self, state: RunState | None = None) -> None:
        with self.lock:
            body, name = (state or self.run).model_dump_json().encode(), self.run.id
        try:
            self.client.put(RUNS, name, body, BRIEF)
        except Away as error:
            self.away = True
            self._warn(error)
        except Refused as error:
            self._warn(error)

    def _warn(self, error: DevbenchError) -> None:
        text = " ".join(filter(None, (error.message + ".", error.hint)))
        if text not in self.told:
            self.told.add(text)
            self.warn(text)


@contextmanager
def reporting(settings: RunSettings, title: str, new_id: Callable[[], str], warn: Warn) -> Iterator[Reporter]:
    """Report a run to the hub that the settings name, from its start to its end.

    Args:
        settings: The settings of the run.
        title: What was asked for, in a few words.
        new_id: Makes the run's id if the settings name none.
        warn: Tells the user what to know about the hub.

    Raises:
        SettingsError: The hub's token cannot be read.
        OutputError: The outbox cannot be written.
    """
    reporter = _reporter(settings, title, new_id, warn)
    state: State = "failed"
    reason = "internal error of devbench"
    try:
        reporter.start()
        yield reporter
        state, reason = reporter.conclusion
    except Interrupted as error:
        state, reason = "interrupted", error.message
        raise
    except DevbenchError as error:
        reason = error.message
        raise
    finally:
        try:
            reporter.end(state, reason)
        except Interrupted:
            raise
        except DevbenchError:
            pass  # whoever wrote the results has told the user about a full disk


def _reporter(settings: RunSettings, title: str, new_id: Callable[[], str], warn: Warn) -> Reporter:
    assert settings.hub is not None
    run = RunState(
        id=settings.run_id or new_id(),
        attempt=settings.attempt,
        state="running",
        title=title[:500],
        started=datetime.now(timezone.utc),
        devbench=__version__,
        pool=os.environ.get(POOL) or None,
        node=os.environ.get(NODE) or None,
    )
    client = connected(settings.hub, settings.hub_token_file)
    return Reporter(client, Spool(settings.output, settings.hub), run, warn, HEARTBEAT, settings.hub_wait or 0.0)
