"""The phases of a worker, named once for the code that times them and the code that reads them.

A `Phase` is timed, and results hold its seconds. An `Activity` is what a worker is doing, as progress and failures name
it.
"""

from __future__ import annotations

from typing import Literal, get_args

LaunchPhase = Literal["interpreter", "import", "device_init", "data"]
BuildPhase = Literal["build", "prepare", "trace", "first_step"]
StartPhase = Literal[LaunchPhase, BuildPhase]
EpochPhase = Literal[
    "partial_batch",
    "partial_batch_again",
    "first_validation",
    "validation",
    "first_epoch_end",
    "epoch_end",
    "epoch_start",
]
TrainingPhase = Literal["warm_up", "batch_copy", "input_wait", EpochPhase]
Phase = Literal[StartPhase, TrainingPhase]

LAUNCH_PHASES: tuple[LaunchPhase, ...] = get_args(LaunchPhase)
"""Phases before a program builds its model."""

BUILD_PHASES: tuple[BuildPhase, ...] = get_args(BuildPhase)
"""Phases from building the model to the end of the first step."""

START_PHASES: tuple[StartPhase, ...] = get_args(StartPhase)
"""Phases of a cold start."""

EPOCH_PHASES: tuple[EpochPhase, ...] = get_args(EpochPhase)
"""Phases that occur once or more in each epoch of `fit`."""

PHASES: tuple[Phase, ...] = get_args(Phase)
"""All phases, in the order in which a training meets them."""

Activity = Literal[
    Phase,
    "starting",
    "recognition",
    "rendezvous",
    "loading",
    "steady state",
    "interleaving",
    "steps",
    "latency",
    "profile",
    "training",
    "diagnosis",
    "pipeline",
]
