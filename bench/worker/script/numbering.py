"""Numbers the optimizers or models that the lines of a script use, the same in every process."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable
from typing import Any

from bench.worker.script.calls import ScriptCall


class Numbering:
    """Numbers objects in the order in which the script first uses them.

    An object that takes the place of one that no longer exists has the same number: the script makes a new one in each
    step, or for each of several trainings.

    Args:
        forget: lets go of what devbench keeps alive of the script.
    """

    def __init__(self, forget: Callable[[], None] = lambda: None) -> None:
        self._forget = forget
        self._numbers: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._latest: dict[ScriptCall, tuple[weakref.ref[Any], str]] = {}  # the newest object of each line
        self._count = itertools.count()
        self._replacing: set[ScriptCall] = set()  # lines whose newest object has replaced the one before

    def known(self, used: Any) -> str | None:
        """Return the number of an object. None if it has none yet."""
        return self._numbers.get(used)

    def add(self, used: Any, line: ScriptCall) -> str:
        """Give a number to an object that a line uses for the first time, and return it."""
        before = self._latest.get(line)
        if before is not None and (line in self._replacing or self._is_gone(before[0])):
            self._replacing.add(line)
            number = before[1]
        else:
            number = str(next(self._count))
        self._numbers[used], self._latest[line] = number, (weakref.ref(used), number)
        return number

    def _is_gone(self, used: weakref.ref[Any]) -> bool:
        """Return whether an object no longer exists. It refers to itself, so only a collection frees it."""
        self._forget()
        gc.collect()
        return used() is None
