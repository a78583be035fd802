"""The progress of a run: a live view on a terminal, and a few plain lines elsewhere.

Nothing is drawn except when the session calls, which it does only between blocks. No thread redraws while a block is
timed.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from bench.model.phase import Activity
from bench.model.run_state import Estimate, LargestPart, LiveProgress, Progress
from bench.render import numbers
from bench.render.sentences import progress as phrases
from bench.render.terminal.explanation import text
from bench.render.text import WIDTH

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

REDRAW_SECONDS = 0.25
SURER = 0.7
"""Without a terminal, a part is shown again when its relative error is at most this share of the one shown before."""

STATUS_LINES = 5
"""Lines of the live view below the explanation, not counting one for each step time."""

SILENCE_SECONDS = 10.0
"""With several specs, a process of a later trial gets a line only after this many seconds without one."""

MILESTONES: tuple[Activity, ...] = ("steady state", "training")
"""Phases that get a plain line of their own. A process has a dozen phases."""


class ProgressDisplay:
    """Shows each `Progress` that it is called with.

    Args:
        stream: where to write, usually stderr.
        tty: whether the stream is a terminal; None to ask the stream.
        clock: returns a monotonic time in seconds.
    """

    def __init__(self, stream: TextIO, tty: bool | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.stream = stream
        self.tty = stream.isatty() and os.environ.get("TERM") != "dumb" if tty is None else tty
        self.clock = clock
        self.live: Live | None = None
        self.drawn_at: float | None = None
        self.note = ""
        self.reported: set[tuple[str, object]] = set()
        self.told: tuple[str, float] = ("", math.inf)
        self.written_at = -math.inf
        self.trial = 0

    def __enter__(self) -> ProgressDisplay:
        if self.tty:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self.stream, force_terminal=True, highlight=False)
            self.live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False)
            with suppress(OSError):
                self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.live is not None:
            with suppress(OSError):
                self.live.stop()

    def __call__(self, progress: Progress) -> None:
        """Show the progress.

        A terminal is redrawn at most four times a second, and at once when a note appears or disappears. Other streams
        get a line only for news. The run goes on if nobody reads the stream any more, as in
        `devbench run … 2>&1 | head`.
        """
        with suppress(OSError):
            self._show(progress)

    def _show(self, progress: Progress) -> None:
        if self.live is not None:
            now = self.clock()
            note_changed, self.note = progress.note != self.note, progress.note
            if note_changed or self.drawn_at is None or now - self.drawn_at >= REDRAW_SECONDS:
                self.drawn_at = now
                size = self.live.console.size
                self.live.update(view(progress, size.width, size.height), refresh=True)
            return
        if lines := self._news(progress):
            self.written_at = self.clock()
            self.stream.write("".join(f"{text}\n" for text in lines))
            self.stream.flush()

    def _news(self, progress: Progress) -> list[str]:
        """Return the plain lines to write."""
        if progress.trial < self.trial:  # another session began
            self.reported.clear()
        self.trial = progress.trial
        lines = [phrases.largest_part(part)] if (part := progress.largest_part) and self._is_surer(part) else []
        several = len(progress.estimates) > 1  # which is so from the second trial on
        titles = " ".join(estimate.title for estimate in progress.estimates)
        if several and self._are_new({(titles, progress.trial)}):
            lines.append(f"step times so far: {phrases.estimates(progress.estimates)}")
        silent = self.clock() - self.written_at >= SILENCE_SECONDS
        if (silent or not several) and self._is_news(progress):
            lines.append(line(progress))
        return lines

    def _is_surer(self, part: LargestPart) -> bool:
        """Return whether to write a line about the largest part: it changed, or its error became clearly smaller."""
        error = part.share.relative_error
        known = math.inf if error is None else error
        name, told = self.told
        if part.name == name and not (known < told and known <= SURER * told):
            return False
        self.told = part.name, known
        return True

    def _is_news(self, progress: Progress) -> bool:
        """Return whether to write a line: a process of a spec started or reached a milestone, or a note is new."""
        signs: set[tuple[str, object]] = {(progress.title, progress.trial)}
        if progress.phase in MILESTONES:
            signs.add((progress.title, (progress.trial, progress.phase)))
        if progress.note:
            signs.add((progress.title, progress.note))
        return self._are_new(signs)

    def _are_new(self, signs: set[tuple[str, object]]) -> bool:
        """Return whether one of these signs is new, and remember them."""
        new = not signs <= self.reported
        self.reported |= signs
        return new


def line(progress: Progress) -> str:
    """Return the progress as one plain line."""
    activity = phrases.activity(progress.phase, progress.note)
    estimates = progress.estimates
    if len(estimates) == 1:
        activity = f"{activity}, {_step(estimates[0])}"
    return f"{_head(progress)}: {activity}" + (f" ({_time_left(progress)})" if progress.trial else "")


def view(progress: Progress, width: int = WIDTH, height: int = 25) -> Text:
    """Return the live view: what is explained so far, what runs, how far it is, and the step times so far.

    Args:
        progress: What to show.
        width: Width of the terminal, in characters.
        height: Height of the terminal, in lines. Lines of an explanation that do not fit are left out.
    """
    from rich.text import Text

    shown = Text(no_wrap=True, overflow="ellipsis", end="")
    explanation = progress.explanation if isinstance(progress, LiveProgress) else None
    if explanation is not None:
        lines = text(explanation, min(width, WIDTH)).splitlines()
        room = max(0, height - len(progress.estimates) - STATUS_LINES)
        shown.append("".join(f"{line}\n" for line in [*lines[:room], ""]))
    shown.append(_head(progress), style="bold")
    shown.append(f"\n  {phrases.activity(progress.phase, progress.note)}")
    if progress.trial:
        shown.append(f", {_time_left(progress)}")
    if progress.largest_part is not None and explanation is None:
        shown.append(f"\n  {phrases.largest_part(progress.largest_part)}", style="bold")
    titles = phrases.distinct([estimate.title for estimate in progress.estimates])
    for title, estimate in zip(titles, progress.estimates, strict=True):
        shown.append(f"\n  {title}: {_step(estimate)}")
    return shown


def _head(progress: Progress) -> str:
    if not progress.trial:
        return f"{progress.title}, finding its steps"
    return f"{progress.title}, process {phrases.process(progress.trial, progress.planned)}"


def _step(estimate: Estimate) -> str:
    return f"step {phrases.estimate(estimate.step_seconds, estimate.relative_error)}"


def _time_left(progress: Progress) -> str:
    """Return the time left: for the planned trials if each takes as long as those before, or until the time limit."""
    if progress.budget <= 0:
        return f"{numbers.time(progress.elapsed)} so far"
    left = progress.budget - progress.elapsed
    if left <= 0:
        return "the time limit is reached, so this trial is the last"
    done = progress.trial - 1
    if progress.planned and done >= progress.planned:
        return f"more trials than planned, at most {numbers.whole_seconds(left)} left"
    if progress.planned and done and isinstance(progress, LiveProgress):
        pace = progress.earlier_trials / done
        expected = max(pace * progress.planned - progress.elapsed, pace * (progress.planned - progress.trial))
        if 1 <= expected < left:
            return f"about {numbers.whole_seconds(expected)} left"
    return f"at most {numbers.whole_seconds(left)} left"
