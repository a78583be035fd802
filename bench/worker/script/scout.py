"""Counts the steps of all loops of a script, until it is known which of them is the training."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bench.model.facts import Facts
from bench.model.recognition import Recognition, StepSource
from bench.worker.fit_epochs import Call
from bench.worker.fit_hook import FitHook
from bench.worker.losses import LOSSES
from bench.worker.protocol import PhaseStarted
from bench.worker.script.calls import ScriptCall
from bench.worker.script.fit_progress import FitProgress
from bench.worker.script.loop_choice import alternating, choose
from bench.worker.timed_loop import Finished

if TYPE_CHECKING:
    from bench.worker.script.inspector import StepInspector
    from bench.worker.script.outside import OutsideSampler
    from bench.worker.script.running import Arguments

INFERENCE_TIMES = 3.0
"""If nothing has trained so far, the scout waits this many times as long, because training may follow."""

TRAINING_TIMES = 30.0
"""If nothing has trained so far, but a line of the script would train, the scout waits this many times as long."""

INSPECTION_TIMES = 3.0
"""If the inspector has sampled too few steps, the scout waits this many times as long."""

PROGRESS_SECONDS = 5.0
"""Seconds between two reports that the scout is alive."""

LEAST_GAP = 3.0
LONGER_TIMES = 2.0
"""Seconds without a step do not count if they are at least `LEAST_GAP`, and this many times as long as any before."""

FEWEST_CALLS = LOSSES + 2
"""Fewest calls that can be timed."""

FEWEST_FITS = 3
"""Fewest calls of `fit` with one step each that make a loop. A script may also try its model on one batch."""

FEW = 3
"""Gradients after which a loop without an optimizer counts as a training."""


class Scout:
    """A sink that counts, until the script ends or enough is known.

    Args:
        seconds: time after the first step that trains, or after the first step, until enough is known.
        watch: number of the loop that the user chose, from 1. None to choose the loop that trains most steps.
        send: sends an event to the parent.
        on_caught: is called if the script goes on after it was unwound. It does not return.

    Attributes:
        inspector: looks into the steps. None if nothing does.
        outside: looks into what the script does before and after its steps. None if nothing does.
        arguments: returns the arguments of the `tf.function` that was called last.
        may_train: returns whether a line of the script would train.
        steps_run: all steps so far.
        finished: whether enough is known.
        returned: whether the script goes on although all its calls of `fit` have returned.
        awaits_start: always true, because calls of `predict` and `evaluate` are counted.
    """

    awaits_start = True

    def __init__(
        self, seconds: float, watch: int | None, send: Callable[[Any], None], on_caught: Callable[[], None]
    ) -> None:
        self._seconds = seconds
        self._watch = watch
        self._send = send
        self._on_caught = on_caught
        self._sources: dict[str, StepSource] = {}
        self._updates: list[tuple[str, int]] = []  # runs of steps of one token: the token and their number
        self._gradients: list[tuple[str, int]] = []
        self._assigned: Counter[str] = Counter()  # gradients after which the script changed their variables
        self._used_gradient: set[str] = set()  # the tokens whose latest gradient is one of them
        self._called: dict[str, str] = {}  # what the line of each token calls
        self._fits: dict[str, ScriptCall] = {}
        self._fit_plans: dict[str, list[Any]] = {}
        self._fit: FitProgress | None = None  # the latest `fit`
        self._fit_token = ""  # its line
        self._start = time.perf_counter()
        self._first = self._next_report = 0.0
        self._latest = self._longest_gap = 0.0
        self._trains = False
        self._lock = threading.RLock()
        self._whole_calls: Counter[str] = Counter()  # calls of `predict` and `evaluate`
        self.inspector: StepInspector | None = None
        self.outside: OutsideSampler | None = None
        self.arguments: Callable[[], Arguments | None] = lambda: None
        self.may_train: Callable[[], bool] = lambda: False
        self.steps_run = 0
        self.finished = self.returned = False

    @property
    def only_fits(self) -> bool:
        """Whether `fit` is the only training so far."""
        kinds = {source.kind for source in [*self._sources.values()] if source.trains}
        return kinds - {"gradients", "single-fit"} == {"fit"}

    @property
    def is_missing(self) -> bool:
        """Whether the loop that the user chose has not begun yet."""
        return self._watch is not None and len(self.sources) < self._watch

    @property
    def may_need_more(self) -> bool:
        """Whether there were too few steps, or none that trains although a line of the script would train."""
        calls = [source.calls for source in [*self._sources.values()] if source.trains or not self._trains]
        return max(calls, default=0) < FEWEST_CALLS or (not self._trains and self.may_train())

    @property
    def sources(self) -> list[StepSource]:
        """The loops of the script, in the order in which they began. Lines that alternate are one loop.

        If a loop trains, the others are left out: a training loop calls models, and predictions may follow it.
        Gradients are left out if something else trains, because it uses them, and if the script does not change the
        variables after each of them.
        """
        sources = {token: source.model_copy() for token, source in self._sources.items()}
        for token, epochs in self._fit_plans.items():
            if token not in sources:  # a `fit` without a step
                continue
            plans = [sources[token].steps] if self.returned else [epoch.planned for epoch in epochs]
            sources[token].planned = None if None in plans else sum(plans)
        for token in [token for token, source in sources.items() if source.kind == "gradients"]:
            if self._trains_otherwise or not self._changes(sources[token]):
                del sources[token]
        for token in self._other_fits(sources):
            del sources[token]
        for group in [*alternating(self._updates, self._called), *alternating(self._gradients, self._called)]:
            tokens = [token for token in group if token in sources]
            if not tokens:
                continue
            counts = {token: sources[token].steps for token in tokens}
            fewest = min(counts.values())
            last = [token for token in tokens if counts[token] == fewest][-1]  # the last of a step
            sources[last].group = [token for token in tokens if token != last]
            for token in sources[last].group:
                del sources[token]
        trains = any(source.trains for source in sources.values())
        kept = [source for source in sources.values() if source.trains or not trains]
        return [source.model_copy(update={"number": number}) for number, source in enumerate(kept, 1)]

    def _other_fits(self, sources: Mapping[str, StepSource]) -> list[str]:
        """Return the tokens of fits that are no loops: the calls of `fit`, or else the steps in it, if each has one."""
        others = []
        for line in {(source.file, source.line) for source in sources.values() if source.kind == "single-fit"}:
            of_line = {token: source for token, source in sources.items() if (source.file, source.line) == line}
            single = [token for token, source in of_line.items() if source.kind == "single-fit"]
            fits = [token for token, source in of_line.items() if source.kind == "fit"]
            in_single, in_all = (sum(of_line[token].steps for token in tokens) for tokens in (single, fits))
            # The latest call may not have returned.
            is_loop = max(of_line[token].calls for token in single) >= FEWEST_FITS and in_all <= in_single + 1
            others += fits if is_loop else single
        return others

    @property
    def fits_without_step(self) -> list[tuple[ScriptCall, int]]:
        """The lines that called `fit` but ran no step, with the number of calls."""
        return [(call, len(self._fit_plans[token])) for token, call in self._fits.items() if token not in self._sources]

    def starting(self, what: str) -> None:
        """Count the calls of `predict` and `evaluate`, each of which has many steps."""
        if self.outside is not None:
            self.outside.starting()
        if what in ("predict", "evaluate"):
            self._whole_calls[what] += 1

    def step(self, call: ScriptCall, steps: int, value: Any, model: Any) -> None:
        """Count steps. Several threads may make them."""
        with self._lock:
            self._step(call, steps, value, model)

    def _step(self, call: ScriptCall, steps: int, value: Any, model: Any) -> None:
        if self.finished:
            self._on_caught()
        token = call.token
        if call.kind == "single-fit" and not self._end_fit():
            return
        source = self._sources.get(token)
        if source is None:
            source = self._sources[token] = StepSource(
                kind=call.kind, name=call.name, file=call.file, line=call.line, token=token, steps=0,
                steps_per_call=steps,
            )  # fmt: skip
            # Two functions may have one name. Each has its own record of the variables that it changes.
            self._called[token] = f"{call.name} {call.detail or id(model)}"
        self._used_gradient.discard(token)
        if self.outside is not None and steps:
            self.outside.step(token, call.kind == "fit")
        self.steps_run += steps if call.kind != "single-fit" else 0  # the step in `fit` was counted
        source.steps += steps
        source.calls += bool(steps)
        if source.steps_per_call != steps:
            source.steps_per_call = None
        if source.kind in ("updates", "single-fit", "train-on-batch", "gradients") and steps:
            runs = self._gradients if source.kind == "gradients" else self._updates
            before = runs.pop()[1] if runs and runs[-1][0] == token else 0
            runs.append((token, before + steps))
        if self.inspector is not None and call.kind != "fit" and steps and self._is_inspected(source):
            self.inspector.step(token, steps, source.trains, self.arguments())
        now = time.perf_counter()
        if call.kind == "fit" and self._fit is not None:
            self._fit.add(steps, now)
        self._check_time(now, call.kind == "fit")

    def _end_fit(self) -> bool:
        """Take note that a `fit` of the script has returned. Return whether it had one step."""
        if self.outside is not None:
            self.outside.returned(self._fit_token)
        return self._fit is not None and self._fit.steps == 1

    def assigned(self, call: ScriptCall) -> None:
        """Take note that the script changed a variable after a gradient by it."""
        with self._lock:
            if call.token not in self._used_gradient:
                self._used_gradient.add(call.token)
                self._assigned[call.token] += 1

    def fit(self, call: ScriptCall, hook: FitHook) -> FitObserver:
        """Return the observer of a call of `fit`."""
        from bench.worker.fit_epochs import FitEpochs

        if self.outside is not None:
            self.outside.starting()
        hook.epochs = FitEpochs()
        self._fit, self._fit_token = FitProgress(hook.epochs), call.token
        self._fits[call.token] = call
        self._fit_plans.setdefault(call.token, []).append(hook.epochs)
        return FitObserver(self, call)

    def _check_time(self, now: float, in_fit: bool) -> None:
        """Stop if enough is known.

        Args:
            now: when a step ended.
            in_fit: whether it was a step of the latest `fit`.
        """
        self._first = self._first or now
        gap = now - (self._latest or now)
        if gap > max(LEAST_GAP, LONGER_TIMES * self._longest_gap):
            self._first += gap  # what came before may only have been a preparation
        self._latest, self._longest_gap = now, max(self._longest_gap, gap)
        if now >= self._next_report:
            self._next_report = now + PROGRESS_SECONDS
            self._send(PhaseStarted(phase="recognition"))
        if not self._trains and any(map(self._is_training, self._sources.values())):
            self._trains, self._first = True, now
        seconds = self._seconds * (1.0 if self._trains else INFERENCE_TIMES)
        if not self._trains and now - self._first > seconds and self.may_train():
            seconds = self._seconds * TRAINING_TIMES
        sources = self._sources.values()
        own = [
            s.token
            for s in sources
            if self._is_training(s)
            and self._is_inspected(s)
            and s.kind != "fit"
            and (s.kind != "single-fit" or s.calls >= FEWEST_FITS)
        ]
        if own and self.inspector is not None and not self.inspector.knows(own):
            seconds *= INSPECTION_TIMES
        # While a `fit` goes on, no other loop begins, so there is nothing to wait for.
        is_known = in_fit and self._fit is not None and self._fit.outlasts(now, self._first + seconds)
        if (is_known or now - self._first > seconds) and not self.is_missing:
            self.finished = True
        if self.finished and threading.current_thread() is not threading.main_thread():
            self._on_caught()  # an exception would only end this thread
        if self.finished:
            raise Finished(None)

    @property
    def _trains_otherwise(self) -> bool:
        """Whether something trains that is more than gradients."""
        return any(source.trains and source.kind != "gradients" for source in self._sources.values())

    def _changes(self, source: StepSource) -> bool:
        """Return whether the script changed the variables after each gradient of a loop, except perhaps the last."""
        return 0 < self._assigned[source.token] >= source.steps - 1

    def _is_training(self, source: StepSource) -> bool:
        """Return whether a loop trains. A loop of gradients does so if its first ones were used."""
        return source.trains and (source.kind != "gradients" or (source.steps > FEW and self._changes(source)))

    def _is_inspected(self, source: StepSource) -> bool:
        """Return whether the inspector sees the steps of a loop. An optimizer may use the first gradients."""
        return source.kind != "gradients" or (self._is_training(source) and not self._trains_otherwise)

    def facts(self, recognition: Recognition) -> Facts | None:
        """Return what was found out about the steps of the chosen loop, and about what surrounds them.

        None if nobody looked.
        """
        chosen = recognition.chosen
        if self.inspector is None:
            return None
        facts = self.inspector.facts(chosen) if self._has_own_steps(chosen) else Facts()
        if self.outside is not None:
            self.outside.read(facts, recognition)
        return facts

    def _has_own_steps(self, source: StepSource) -> bool:
        """Return whether lines of the script run in each step. None do in `fit`, and in calls of several batches."""
        calls = self._whole_calls.get(source.kind)
        return source.kind != "fit" and (calls is None or 2 * calls >= source.steps)

    def recognition(self, ended: bool) -> Recognition | None:
        """Return what was recognized. None if no step was seen, or if the user chose a loop that was not seen.

        Args:
            ended: whether the script ended by itself.
        """
        sources = self.sources
        if not sources or (self._watch is not None and self._watch > len(sources)):
            return None
        chosen = sources[self._watch - 1] if self._watch is not None else choose(sources)
        calls_again = not ended and len(self._fit_plans.get(chosen.token, ())) > 1  # nobody knows how often
        return Recognition(
            chosen=chosen.model_copy(update={"planned": None}) if calls_again else chosen,
            others=[source for source in sources if source is not chosen],
            ended=ended,
            seconds=time.perf_counter() - self._start,
        )


class FitObserver:
    """Counts the steps of one `fit`.

    Args:
        scout: takes them.
        call: the call of `fit`.
    """

    def __init__(self, scout: Scout, call: ScriptCall) -> None:
        self._scout = scout
        self._call = call

    def before(self, call: Call) -> None:
        """Do nothing."""

    def after(self, call: Call, value: Any) -> None:
        """Count the steps of a call."""
        self._scout.step(self._call, call.steps, value, None)

    def ran_out(self) -> None:
        """Do nothing."""

    def validated(self, seconds: float) -> None:
        """Do nothing. A validation has no steps."""

    def end_epoch(self) -> None:
        """Do nothing."""
