"""What a figure of a result is, and how it becomes the cells of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.model.result import Result
from bench.render import numbers


@dataclass(frozen=True)
class Field:
    """One figure of a result.

    Args:
        key: its name, the same as in the document if it is a field there.
        label: its label in tables; a format such as "{}" if `entry_label` is set.
        read: takes the figure from a result: a number, an `Interval`, a text or None; a mapping from entries to these
            if `entry_label` is set.
        show: formats what `read` returned. A figure with an empty text is left out.
        heading: the heading above it.
        unit: base unit; empty if it has none.
        metric: the hub's gauge without its prefix; None if it has none. An interval also has gauges that
            end in `_low` and `_high`.
        entry_label: the metric's label that distinguishes several entries, such as "phase"; None for a single figure.
        metric_labels: further labels of the metric.
        entry_text: turns the name of an entry into its text in the label.
        brief: its label in the short table; empty if only `--verbose` shows it.
        alarm: whether what `read` returned reports a problem.
    """

    key: str
    label: str
    read: Callable[[Result], Any]
    show: Callable[[Any], str] = str
    heading: str = ""
    unit: str = ""
    metric: str | None = None
    entry_label: str | None = None
    metric_labels: tuple[tuple[str, str], ...] = ()
    entry_text: Callable[[str], str] = str
    brief: str = ""
    alarm: Callable[[Any], bool] = lambda value: False

    def cells(self, result: Result, brief: bool = False) -> dict[str, Cell]:
        """Return a result's cells by their labels: none, one, or one for each entry."""
        value = self.read(result)
        label = self.brief if brief else self.label
        values = {label: value}
        if self.entry_label is not None:
            values = {label.format(self.entry_text(entry)): part for entry, part in (value or {}).items()}
        shown = {
            label: Cell(self.show(figure), self.alarm(figure)) for label, figure in values.items() if figure is not None
        }
        return {label: cell for label, cell in shown.items() if cell.text}


@dataclass(frozen=True)
class Cell:
    """A figure as text, and whether it reports a problem."""

    text: str
    alarm: bool = False


def summary(name: str) -> Callable[[Result], Any]:
    """Return a function that reads a field of a result's summary."""
    return lambda result: getattr(result.summary, name)


def quantity(unit: str) -> Callable[[float], str]:
    """Return a function that formats a value with an SI prefix and a unit."""
    return lambda value: numbers.quantity(value, unit)


def priced(result: Result, amount: float | None) -> dict[str, float] | None:
    """Return an amount of money by its currency. None if the result has no price."""
    return {result.price.currency: amount} if result.price and amount is not None else None
