"""Reports a run to a hub: its start, its progress and its end. Delivers each result once it is done.

A thread sends the heartbeat, a few hundred bytes. It does so even while a block is timed. Otherwise a long compilation
would look like a lost run. Results are sent by the thread that measures, between groups, when no worker is alive. If
the hub is unavailable, the run does not wait for it: the outbox keeps what the hub has not received.
"""

from __future__ import annotations

import math
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bench.errors import DevbenchError, Interrupted, OutputError
from bench.model.result import Result
from bench.model.run_state import Progress, RunState, State
from bench.publish.hub.client import BRIEF, LAST, PATIENT, SHORT, Client
from bench.publish.hub.delivery import deliveries
from bench.publish.hub.errors import HubBusy, HubRefused, HubUnavailable, NotFromHub, UnknownToken
from bench.publish.hub.outbox import RUNS, Outbox

HEARTBEAT = 15.0
"""Seconds between two heartbeats."""

LONGEST = 1000
"""Maximum length of the reason in `conclusion`, in characters."""

RETRY_SECONDS = 5.0
"""Seconds between two attempts at the end of a run while the hub is unavailable."""

WAIT_MEASURING = 30.0
"""Seconds that a run waits for its hub before the end of the run, in total. What is left is sent at the end."""

WAIT_END = 60.0
"""Maximum seconds that a run waits for its hub at its end, unless `--hub-wait` sets another time."""

LEAST_WAIT_END = 10.0
"""Minimum of that wait in seconds: time for one attempt."""

SILENT, KNOCK = 60.0, 2.0
"""Seconds. If the hub was silent for `SILENT`, the end of a run waits for up to `KNOCK` for an answer first."""


class Reporter:
    """Reports one run to a hub.

    Args:
        client: Sends documents to the hub.
        outbox: Keeps what the hub has not received.
        run: The run's first state.
        warn: Shows the user each warning once, and at the end where to see the run.
        heartbeat_seconds: Seconds between heartbeats.
        wait: Seconds to keep trying at the end while the hub is unavailable. None for some retries.
        wait_end: Seconds that these retries may take.

    Attributes:
        conclusion: How the run ended, unless an error ended it: the state and the reason.
        signum: Number of the signal that ended the last wait. None if none did.
        cut_short: The same, if the hub has not received everything.
    """

    def __init__(
        self,
        client: Client,
        outbox: Outbox,
        run: RunState,
        warn: Callable[[str], None],
        heartbeat_seconds: float,
        wait: float | None = None,
        wait_end: float = WAIT_END,
    ) -> None:
        self.client = client
        self.outbox = outbox
        self.run = run.model_copy(update={"heartbeat_seconds": heartbeat_seconds})
        self.warn = warn
        self.heartbeat_seconds = heartbeat_seconds
        self.wait = wait
        self.wait_end = wait_end
        self.wait_left = WAIT_MEASURING
        self.unavailable = False
        self.warned: set[str] = set()
        self.refused: set[Path] = set()
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.conclusion: tuple[State, str] = ("finished", "")
        self.signum: int | None = None
        self.cut_short: int | None = None
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def start(self) -> None:
        """Report the start, begin the heartbeat, and deliver what earlier runs left. This may take long.

        Raises:
            OutputError: The outbox cannot be made or written.
        """
        self.outbox.prepare()
        with self._waiting():
            self._send_state()
        self.thread.start()
        with self._waiting() as limit:
            self.deliver(BRIEF, limit)

    def progress(self, progress: Progress) -> None:
        """Keep progress for the next heartbeat; send nothing."""
        with self.lock:
            self.run.progress = progress

    def writing(self, path: Path) -> AbstractContextManager[None]:
        """Note in the outbox, around the writing of a file, that the hub has not received it."""
        return self.outbox.writing(path)

    def saved(self, result: Result) -> None:
        """Deliver a result that was saved, if it is done."""
        if result.stop is None:
            return
        if result.stop.reason == "interrupted":
            self.client.shorten_timeouts()
        with self.lock:
            if result.id not in self.run.results:
                self.run.results.append(result.id)
        with self._waiting() as limit:
            self.deliver(BRIEF, limit)

    @contextmanager
    def _waiting(self) -> Iterator[float]:
        """Count the time of the block against `WAIT_MEASURING`. Yield when that is used up, by `time.monotonic`."""
        start = time.monotonic()
        try:
            yield start + self.wait_left
        finally:
            self.wait_left = max(0.0, self.wait_left - (time.monotonic() - start))

    def judge(self, results: Sequence[Result]) -> None:
        """Conclude that the run failed if one of its results failed."""
        failed = [result for result in results if result.status == "failed"]
        if not failed:
            return
        first = failed[0]
        cause = f"{first.spec.label}: {first.failure.message}" if first.failure else first.spec.label
        self.conclusion = ("failed", f"{len(failed)} of {len(results)} failed; {cause}"[:LONGEST])

    def end(self, state: State, reason: str = "") -> None:
        """Deliver what can be delivered and report how the run ended. The rest stays in the outbox.

        A signal ends the wait for the hub, but not the run, which is over and has its outcome.

        The end is sent last, because the hub ignores a heartbeat that comes after it.
        """
        with self.lock:
            self.run.progress = None
            end_state = self.run.model_copy(update={"state": state, "reason": reason})
        if state == "interrupted":
            self.client.shorten_timeouts()
        else:
            self.unavailable = False
        try:
            is_kept = self._keep_end(end_state)
            if state == "interrupted":
                self.deliver(BRIEF, time.monotonic() + LAST)
            elif self.wait or not self._is_hub_gone():
                self._deliver_patiently()
            if not is_kept:
                self._send_state(end_state)
        except Interrupted as error:
            self.signum = error.signum
            self.unavailable = True
        finally:
            self.stop.set()
            try:
                if self.thread.is_alive():
                    self.thread.join(LAST if state == "interrupted" or self.unavailable else SHORT)
            except Interrupted as error:
                self.signum = error.signum
        self.cut_short = self.signum if self.outbox.pending() else None
        self._warn_about_unsent()
        self.client.close()

    def _is_hub_gone(self) -> bool:
        """Whether the hub has not answered for long, and does not answer now either."""
        now = time.monotonic()
        if now - self.client.last_answer < SILENT:
            return False
        self._send_state(limit=now + KNOCK)
        return self.client.last_answer < now

    def _deliver_patiently(self) -> None:
        """Deliver what is pending, and try again for a while if the hub is unavailable."""
        begin = time.monotonic()
        seconds = self.wait_end if self.wait is None else max(self.wait, LEAST_WAIT_END)
        limit = begin + seconds
        if not self.deliver(BRIEF, limit):
            return
        self.warn(f"Trying to reach the hub for up to {seconds:g} s. Ctrl-C ends this, and loses nothing.")
        self.unavailable = False
        retryable = self.deliver(PATIENT, limit)
        while retryable and (seconds_left := begin + (self.wait or 0.0) - time.monotonic()) > 0:
            time.sleep(min(RETRY_SECONDS, seconds_left))
            self.unavailable = False
            retryable = self.deliver(BRIEF, limit)

    def _keep_end(self, end_state: RunState) -> bool:
        """Put the end of the run into the outbox. Return whether it is there; a full disk prevents it."""
        try:
            self.outbox.keep_run_state(end_state)
        except OutputError:  # `end` then sends the state without the outbox
            return False
        return True

    def _warn_about_unsent(self) -> None:
        paths = [pending.path for pending in self.outbox.pending()]
        refused = sum(path in self.refused for path in paths)
        if unsent := len(paths) - refused:
            documents = "1 document has" if unsent == 1 else f"{unsent} documents have"
            push = shlex.join(["devbench", "push", str(self.outbox.folder), "--hub", self.outbox.hub])
            self.warn(
                f"{documents} not been sent. To send what is left: `{push}`, or run again with this hub and folder."
            )
        if refused:
            documents = "1 document" if refused == 1 else f"{refused} documents"
            self.warn(f"The hub refused {documents}. {self.outbox.notes} keeps what it may accept later.")
        if not paths:
            self.warn(f"This run at the hub: {self.client.hub}/runs/{self.run.id}")

    def deliver(self, retries: int, limit: float) -> bool:
        """Deliver what is pending, until the hub is unavailable. Warn about documents that it refuses.

        Args:
            retries: Maximum number of retries.
            limit: When to give up, by `time.monotonic`.

        Returns:
            Whether the hub may take some of the rest later.
        """
        retryable = self.unavailable
        try:
            outcomes = (
                () if self.unavailable else deliveries(self.client, self.outbox, self.outbox.pending(), retries, limit)
            )
            for pending, outcome in outcomes:
                if isinstance(outcome, DevbenchError):
                    retryable = retryable or isinstance(outcome, HubBusy | UnknownToken | NotFromHub)
                    self._warn(outcome)
                if isinstance(outcome, HubRefused) and not isinstance(outcome, UnknownToken | NotFromHub):
                    self.refused.add(pending.path)
        except HubUnavailable as error:
            retryable = self.unavailable = True
            self._warn(error)
        return retryable

    def _beat(self) -> None:
        while not self.stop.wait(self.heartbeat_seconds):
            self.unavailable = False
            self._send_state()

    def _send_state(self, state: RunState | None = None, limit: float = math.inf) -> None:
        with self.lock:
            body, name = (state or self.run).model_dump_json().encode(), self.run.id
        try:
            self.client.put(RUNS, name, body, BRIEF, limit)
        except HubUnavailable as error:
            self.unavailable = True
            self._warn(error)
        except HubRefused as error:
            self._warn(error)

    def _warn(self, error: DevbenchError) -> None:
        text = " ".join(filter(None, (error.message + ".", error.hint)))
        if text not in self.warned:
            self.warned.add(text)
            self.warn(text)
