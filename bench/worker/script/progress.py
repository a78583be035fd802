"""How far a script has got. This decides whether it may be ended while it is silent."""

from __future__ import annotations

from abc import ABC, abstractmethod

from bench.model.recognition import StepSource
from bench.worker.fit_hook import FitHook
from bench.worker.script.scout import Scout
from bench.worker.step_counter import StepCounter
from bench.worker.timed_loop import TimedLoop


class ScriptProgress(ABC):
    """How far a script has got, at any time.

    Args:
        hook: the hook into `fit`.
    """

    def __init__(self, hook: FitHook) -> None:
        self._hook = hook

    @property
    @abstractmethod
    def steps(self) -> int:
        """Number of steps so far."""

    @property
    @abstractmethod
    def needs_more(self) -> bool:
        """Whether more steps are known or needed."""

    @property
    def may_need_more(self) -> bool:
        """Whether the steps so far may only be a preparation for others."""
        return False

    @property
    @abstractmethod
    def is_fit(self) -> bool:
        """Whether the training is a `fit`."""

    @property
    def fit_is_over(self) -> bool:
        """Whether the training is a `fit`, and its latest call has returned."""
        return self.is_fit and self._hook.fit_end is not None and self._hook.fit_end > self._hook.fit_start

    @property
    def returned(self) -> bool:
        """Whether the training is a `fit` that has returned, after which no other one is expected."""
        return self.fit_is_over


class ScoutProgress(ScriptProgress):
    """The progress of a script whose loops are counted.

    Args:
        hook: the hook into `fit`.
        scout: counts the steps.
    """

    def __init__(self, hook: FitHook, scout: Scout) -> None:
        super().__init__(hook)
        self._scout = scout

    @property
    def steps(self) -> int:
        """Number of steps of all loops so far."""
        return self._scout.steps_run

    @property
    def needs_more(self) -> bool:
        """Whether the loop that the user chose has not begun yet."""
        return self._scout.is_missing

    @property
    def may_need_more(self) -> bool:
        """Whether there were too few steps, or none that trains although the script contains a training."""
        return self._scout.may_need_more

    @property
    def is_fit(self) -> bool:
        """Whether `fit` is the only training so far."""
        return self._scout.only_fits


class TrialProgress(ScriptProgress):
    """The progress of a script in a trial, where one loop is timed, or in a whole training (`--full`).

    Args:
        hook: the hook into `fit`.
        timed_loop: times the steps. In a whole training, it only counts them.
        target: the loop, as the scout recognized it.
    """

    def __init__(self, hook: FitHook, timed_loop: TimedLoop, target: StepSource) -> None:
        super().__init__(hook)
        self._timed_loop = timed_loop
        self._full = isinstance(timed_loop, StepCounter)
        self._target = target

    @property
    def steps(self) -> int:
        """Number of steps of the loop so far."""
        return max(self._timed_loop.issued, self._timed_loop.steps_run)  # a whole training counts only the latter

    @property
    def needs_more(self) -> bool:
        """Whether more steps of the loop are known or needed."""
        if self._full:  # without a plan, nobody knows when it is over
            return self._target.planned is None or not self._has_all_steps
        return not (self._has_all_steps or self.fit_is_over)

    @property
    def is_fit(self) -> bool:
        """Whether the loop is a `fit`."""
        return self._target.kind == "fit"

    @property
    def returned(self) -> bool:
        """Whether the loop is a `fit` that has returned after all known steps."""
        return not self._full and self._has_all_steps and self.fit_is_over

    @property
    def _has_all_steps(self) -> bool:
        """Whether the steps of the loop that the scout knows have run."""
        planned = self._target.planned
        return self.steps >= (self._target.steps if planned is None else planned)
