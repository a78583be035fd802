"""The time of a training, computed from the figures of one process.

The projection, the break-even and the explanation all use these functions.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.analyse.samples import cold_starts, main_series, mean_step, warm_up_excess
from bench.model.facts import Asides
from bench.model.phase import BUILD_PHASES, EPOCH_PHASES, LAUNCH_PHASES
from bench.model.sample import ProcessSample


@dataclass(frozen=True)
class Epochs:
    """What the epochs of a training add to its steps. Times are in seconds.

    Args:
        length: steps of an epoch, the partial batch included. 0 if there are no epochs.
        partial: the step on the partial batch in the first epoch. None if there is none, or if it was not timed.
        partial_again: the same in a later epoch.
        first_end: what follows the steps of the first epoch, such as callbacks, without the validation.
        end: what follows the steps of a later epoch.
        start: what precedes the steps of an epoch that follows another one.
        first_validation: the first validation of `fit`.
        validation: a later one.
        validated: share of the epochs after which `fit` runs the validation, from 0 to 1.
        asides: work between some steps of a script's own loop. None if there is none.
    """

    length: int
    partial: float | None
    partial_again: float
    first_end: float
    end: float
    start: float
    first_validation: float
    validation: float
    validated: float
    asides: Asides | None = None

    @classmethod
    def of(cls, sample: ProcessSample) -> Epochs:
        """Return what a process measured.

        A time that it did not measure is 0. A partial batch that was not timed counts as a step on a full batch.
        """
        phases, epoch = sample.phases, sample.facts.epoch
        partial = phases.get("partial_batch") if epoch and epoch.remainder and epoch.batches else None
        end, validation = phases.get("epoch_end", 0.0), phases.get("validation", 0.0)
        return cls(
            length=epoch.steps if epoch else 0,
            partial=partial,
            partial_again=phases.get("partial_batch_again", partial or 0.0),
            first_end=phases.get("first_epoch_end", end),
            end=end,
            start=phases.get("epoch_start", 0.0),
            first_validation=phases.get("first_validation", validation),
            validation=validation,
            validated=sample.facts.validated_epochs or 0.0,
            asides=sample.facts.asides if sample.facts.asides and sample.facts.asides.every > 0 else None,
        )

    @property
    def between(self) -> float:
        """Mean seconds between the steps of two later epochs, without the partial batch."""
        return self.end + self.start + self.validated * self.validation

    def partials(self, steps: int) -> int:
        """Return how many of the steps of a training are on a partial batch."""
        return steps // self.length if self.length and self.partial is not None else 0

    def seconds(self, steps: int) -> float:
        """Return the seconds that are added to the full steps.

        These are partial batches, ends and starts of epochs, validations, and work between steps.
        """
        passes, partials = math.ceil(steps / self.length) if self.length else 0, self.partials(steps)
        total = self.first_end + (passes - 1) * (self.end + self.start) if passes else 0.0
        total += self.validation_seconds(steps) + self.aside_seconds(steps)
        return total + ((self.partial or 0.0) + (partials - 1) * self.partial_again if partials else 0.0)

    def validation_seconds(self, steps: int) -> float:
        """Return the seconds that the validations of a training take."""
        validations = math.ceil(steps / self.length) * self.validated if self.length else 0.0
        return min(1.0, validations) * self.first_validation + max(0.0, validations - 1) * self.validation

    def aside_seconds(self, steps: int) -> float:
        """Return the seconds that work between some steps of a training takes."""
        if self.asides is None:
            return 0.0
        count = steps / self.asides.every
        return min(1.0, count) * self.asides.first_seconds + max(0.0, count - 1) * self.asides.seconds

    def seconds_per_step(self, step_seconds: float) -> float:
        """Return the seconds that the epochs of a long training add to each step; a full step takes `step_seconds`."""
        asides = self.asides.seconds / self.asides.every if self.asides else 0.0
        if not self.length:
            return asides
        partial = 0.0 if self.partial is None else self.partial_again - step_seconds
        return (self.between + partial) / self.length + asides

    def first_excess(self) -> float:
        """Return the extra seconds of the first epoch against a later one. It has no start, so they may be negative."""
        partial = 0.0 if self.partial is None else self.partial - self.partial_again
        validation = self.first_validation - self.validation if self.validated else 0.0
        return self.first_end - self.end - self.start + validation + partial if self.length else 0.0


def with_epochs(samples: Sequence[ProcessSample]) -> list[ProcessSample]:
    """Return samples that all have the phases of epochs, and the work between some steps.

    A phase that a process did not measure is the others' mean. Work that it did not see is that of the process that saw
    it most often. A process may end before its first epoch does.
    """
    means = {}
    for phase in EPOCH_PHASES:
        seconds = [sample.phases[phase] for sample in samples if phase in sample.phases]
        if seconds:
            means[phase] = statistics.fmean(seconds)
    seen = [sample.facts.asides for sample in samples if sample.facts.asides is not None]
    asides = max(seen, key=lambda each: each.count, default=None)
    completed = []
    for sample in samples:
        facts = sample.facts.model_copy(update={"asides": sample.facts.asides or asides})
        completed.append(sample.model_copy(update={"phases": {**means, **sample.phases}, "facts": facts}))
    return completed


def lacks_validation(samples: Sequence[ProcessSample]) -> bool:
    """Return whether `fit` validates, but no process timed it. The time of the training is then too short."""
    validates = any(sample.facts.validated_epochs for sample in samples)
    return validates and not any("validation" in sample.phases for sample in samples)


def build_and_fit_seconds(sample: ProcessSample, steps: int) -> float:
    """Return the seconds of a training from building the model to its end.

    Build, preparation, tracing, first step and warm-up count as measured, and all other steps at the mean step. The
    first partial batch and the first end of an epoch count as measured, and later ones as the measured later ones.

    Args:
        sample: a process with timed steps.
        steps: number of steps of the training.
    """
    series, epochs = main_series(sample), Epochs.of(sample)
    if series is None:
        return math.nan
    mean, full_steps = mean_step(series.blocks), max(0, steps - 1 - epochs.partials(steps))
    build = sum(sample.phases.get(name, 0.0) for name in BUILD_PHASES)
    return build + full_steps * mean + warm_up_excess(sample, mean, full_steps) + epochs.seconds(steps)


def launch_seconds(sample: ProcessSample) -> float:
    """Return the seconds from the start of a process until it builds the model."""
    return sum(sample.phases.get(name, 0.0) for name in LAUNCH_PHASES)


def epoch_seconds_per_step(samples: Sequence[ProcessSample]) -> float:
    """Return the seconds that the epochs of a long training add to each step: the mean over measured cold starts."""
    added = [
        Epochs.of(sample).seconds_per_step(mean_step(series.blocks))
        for sample in with_epochs(cold_starts(samples))
        if (series := main_series(sample))
    ]
    return statistics.fmean(added) if added else 0.0
