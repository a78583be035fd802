"""Progress while a run goes on: a live view on a terminal, and a few plain lines elsewhere.

Nothing is drawn but when the session calls, which it does only between blocks: no thread redraws while a
block is timed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from bench.model.run_state import Progress
from bench.render import numbers

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

REDRAW_SECONDS = 0.25
MILESTONES = ("steady state", "training")
"""Phases that are worth a plain line of their own; a process goes through a dozen."""


class Drawer:
    """Draws each `Progress` that it is called with.

    Args:
        stream: stderr, mostly.
        tty: whether it is a terminal; asked of the stream where it is not said.
        clock: seconds, rising.
    """

    def __init__(self, stream: TextIO, tty: bool | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.stream = stream
        self.tty = stream.isatty() and os.environ.get("TERM") != "dumb" if tty is None else tty
        self.clock = clock
        self.live: Live | None = None
        self.drawn: float | None = None
        self.reason = ""
        self.told: set[tuple[str, object]] = set()

    def __enter__(self) -> Drawer:
        if self.tty:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self.stream, force_terminal=True, highlight=False)
            self.live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False)
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def __call__(self, progress: Progress) -> None:
        """Shows a moment: on a terminal four times a second at most, a reason to wait at once; else what is news."""
        if self.live is not None:
            now = self.clock()
            reason, self.reason = progress.note != self.reason, progress.note
            if reason or self.drawn is None or now - self.drawn >= REDRAW_SECONDS:
                self.drawn = now
                self.live.update(view(progress), refresh=True)
        elif self._news(progress):
            self.stream.write(line(progress) + "\n")
            self.stream.flush()

    def _news(self, progress: Progress) -> bool:
        """Whether a plain line is due: a new process of a spec, its steady state, or a reason to wait."""
        signs: set[tuple[str, object]] = {(progress.title, progress.trial)}
        if progress.phase in MILESTONES:
            signs.add((progress.title, (progress.trial, progress.phase)))
        if progress.note:
            signs.add((progress.title, progress.note))
        news = not signs <= self.told
        self.told |= signs
        return news


def line(progress: Progress) -> str:
    """A moment in one plain line."""
    return f"{_head(progress)}: {_doing(progress)}{_known(progress)} ({_left(progress)})"


def view(progress: Progress) -> Text:
    """A moment as the live view: what runs, how far it is, and what is known so far."""
    from rich.text import Text

    shown = Text(no_wrap=True, overflow="ellipsis", end="")
    shown.append(_head(progress), style="bold")
    shown.append(f"\n  {_doing(progress)}, {_left(progress)}")
    for each in progress.estimates:
        shown.append(f"\n  {each.title}: {_estimate(each.step_seconds, each.relative_error)}")
    return shown


def _head(progress: Progress) -> str:
    planned = f" of about {progress.planned}" if progress.planned and progress.planned >= progress.trial else ""
    return f"{progress.title}, process {progress.trial}{planned}"


def _doing(progress: Progress) -> str:
    return progress.phase.replace("_", " ") + (f" ({progress.note})" if progress.note else "")


def _known(progress: Progress) -> str:
    if len(progress.estimates) == 1:
        only = progress.estimates[0]
        return f", {_estimate(only.step_seconds, only.relative_error)}"
    return "".join(f", {each.title} {_estimate(each.step_seconds, each.relative_error)}" for each in progress.estimates)


def _estimate(step_seconds: float, relative_error: float | None) -> str:
    error = "" if relative_error is None else f" ± {numbers.percent(relative_error)}"
    return f"{numbers.time(step_seconds)}{error} a step"


def _left(progress: Progress) -> str:
    """The time left: of what is planned, at the pace so far, but never beyond the budget."""
    within = progress.budget - progress.elapsed
    done = progress.trial - 1
    if progress.planned and done:
        within = min(within, progress.elapsed / done * (progress.planned - done))
    if progress.budget <= 0:
        return f"{numbers.time(progress.elapsed)} so far"
    return f"{numbers.whole(within)} left at most" if within > 0 else "about to end"
