"""Reads what the events of a worker report into its sample."""

from __future__ import annotations

from bench.model.sample import Block, ProcessSample
from bench.worker.protocol import (
    BlockTimed,
    Event,
    FactsRead,
    FirstLosses,
    Latencies,
    Note,
    PhaseEnded,
    PlacementChecked,
    PrintedRead,
    Trained,
)


def block_of(timed: BlockTimed, position: int) -> Block:
    """Return a block as a sample holds it."""
    return Block(
        seconds=timed.seconds,
        steps=timed.steps,
        cpu_seconds=timed.cpu_seconds,
        position=position,
        epoch_end_seconds=timed.epoch_end_seconds,
    )


def add(event: Event, sample: ProcessSample) -> None:
    """Add what an event reports to the sample."""
    if isinstance(event, PhaseEnded):
        sample.phases[event.phase] = event.seconds
    elif isinstance(event, FactsRead):
        sample.facts = event.facts
    elif isinstance(event, Note):
        sample.notes.append(event.text)
    elif isinstance(event, FirstLosses):
        sample.first_losses, sample.loss_precision = event.values, event.precision
    elif isinstance(event, Latencies):
        sample.latency = event.seconds
    elif isinstance(event, PlacementChecked):
        sample.placement = event.placement
    elif isinstance(event, PrintedRead):
        sample.printed = event.printed
    elif isinstance(event, Trained):
        sample.full_training = event.full
