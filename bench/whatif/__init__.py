"""What-ifs: single changes to a program or its settings that `devbench explain` tries.

Each file in this folder is one what-if, named after the file: `parallel_map.py` is `parallel-map`. A file whose name
starts with an underscore is not a what-if. The first line of its docstring reads "The what-if `NAME`: …". The
documentation shows the sentence after the colon. Each what-if declares

    ACTS_ON: frozenset[StepPart]               the parts of a step that it can make shorter. It is not tried if these
                                               parts take little of the step.
    ADVICE: str                                optional: what to write in the program for the same effect, as a
                                               sentence. A fix may propose it.
    REFUTED: str                               optional: what to do if the advice was tried without gain

A what-if takes one of two forms.

A what-if that tries other values of a setting or parameter defines

    candidates(program) -> Iterator[WhatIf]    the values to try for this `Program`

A what-if that changes the program from outside, by the option `--change`, defines

    WORDS: str                                 what it does, as a noun phrase
    CAUSE: str                                 the cause of lost time that it removes
    TESTS_SUSPECT: bool                        optional: whether it tests a suspect by itself. It is then tried first,
                                               whatever the ladder shows.
    MEASURES_FIX: bool                         optional: whether it does what the fix of the finding that proposes it
                                               says. The answer then shows this fix instead of ADVICE.
    applies(program) -> bool                   whether it has something to change in this `Program`

and ADVICE, and at least one of these functions, which the worker calls:

    change_step(tf, function) -> function      what replaces the function that is a script's eager step
    change_dataset(tf, dataset) -> dataset     the changed input pipeline
    change_fit(tf, model, arguments) -> dict   the changed arguments of a call of `fit`, by name; the model may be
                                               changed in place; None if there is nothing to change
    change_tensorflow(tf, on_changed) -> None  replaces something in TensorFlow before the program runs; calls
                                               `on_changed` once the program uses it

No what-if imports TensorFlow.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.model.device import Device
from bench.model.facts import Facts
from bench.model.plan import Planned
from bench.model.spec import Spec
from bench.model.step_parts import StepPart

ORDER = (
    "batch", "xla", "dtype", "parallel-map", "cache", "prefetch", "steps-per-execution", "without-callbacks",
    "without-metrics", "graph", "function", "single-use-tapes", "on-batch", "reduce-retracing", "threads", "onednn",
    "tf32",
)  # fmt: skip
"""The order in which what-ifs are tried, and in which the worker applies them. Others follow in the order of names."""


@dataclass(frozen=True)
class Program:
    """The program that what-ifs are tried on, with what is known about it.

    Args:
        spec: the program's spec.
        facts: what its workers have read from their runs.
        compiled: whether XLA compiles it.
        unsupported_dtypes: dtype policies that change nothing in it.
        own_loop: whether the program has its own loop, so that only the program decides what XLA compiles.
        device: the device that the program ran on. None if it is not known.
    """

    spec: Spec
    facts: Facts = field(default_factory=Facts)
    compiled: bool = False
    unsupported_dtypes: Collection[str] = ()
    own_loop: bool = False
    device: Device | None = None


@dataclass(frozen=True)
class WhatIf:
    """One change to try.

    Args:
        words: what the change is, as a noun phrase.
        option: the command-line option that makes the change.
        cause: the cause of lost time that it removes, if it makes the program faster.
        update: fields of the spec that it changes, with their new values.
        examples: factor by which the number of examples of a step grows.
        name: name of the what-if. Of several with one name, only the fastest is combined with others.
        advice: what to write in the program for the same effect, as a sentence.
        acts_on: the parts of a step that it can make shorter.
        tests_suspect: whether it tests a suspect by itself.
    """

    words: str
    option: str
    cause: str = ""
    update: Mapping[str, Any] = field(default_factory=dict, hash=False)
    examples: float = 1.0
    name: str = ""
    advice: str = ""
    acts_on: frozenset[StepPart] = frozenset()
    tests_suspect: bool = False

    @property
    def grows_batch(self) -> bool:
        """Whether it puts more examples into a step."""
        return self.examples > 1

    def apply(self, planned: Planned) -> Planned:
        """Return the plan with this what-if. What-ifs that change the program from outside are added to the plan's."""
        update = dict(self.update)
        if "what_ifs" in update:
            update["what_ifs"] = tuple(dict.fromkeys([*planned.spec.what_ifs, *update["what_ifs"]]))
        examples = round(planned.examples * self.examples) if planned.examples else None
        return replace(planned, spec=planned.spec.model_copy(update=update), examples=examples)


def names() -> list[str]:
    """Return the names of all what-ifs, in the order in which they are tried."""
    stems = (
        file.stem.replace("_", "-") for file in Path(__file__).parent.glob("*.py") if not file.stem.startswith("_")
    )
    return sorted(stems, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def load(name: str) -> ModuleType:
    """Import the file of a what-if."""
    return importlib.import_module(f"bench.whatif.{name.replace('-', '_')}")


@functools.cache
def program_changes() -> tuple[str, ...]:
    """Return the names that `--change` accepts: the what-ifs that change the program from outside."""
    return tuple(name for name in names() if hasattr(load(name), "applies"))


def candidates(program: Program) -> list[WhatIf]:
    """Return the what-ifs that are worth trying on a program, in the order in which they are tried."""
    what_ifs: list[WhatIf] = []
    for name in names():
        module = load(name)
        if name not in program_changes():
            found = list(module.candidates(program))
        elif module.applies(program):
            update = {"what_ifs": (name,)}
            found = [WhatIf(module.WORDS, f"--change {name}", module.CAUSE, update, advice=module.ADVICE)]
        else:
            continue
        test = tests_suspect(name)
        what_ifs += [replace(w, name=name, acts_on=module.ACTS_ON, tests_suspect=test) for w in found]
    return what_ifs


def advice(name: str) -> str:
    """Return what to write in a program for the effect of a what-if."""
    return str(load(name).ADVICE)


def acts_on(name: str) -> frozenset[StepPart]:
    """Return the parts of a step that a what-if can make shorter. Empty if there is no such what-if."""
    return frozenset(load(name).ACTS_ON) if name in names() else frozenset()


def tests_suspect(name: str) -> bool:
    """Return whether a what-if tests a suspect by itself."""
    return bool(getattr(load(name), "TESTS_SUSPECT", False))


def measures_fix(name: str) -> bool:
    """Return whether a what-if does what the fix of the finding that proposes it says."""
    return bool(getattr(load(name), "MEASURES_FIX", False))


def instead(name: str) -> str:
    """Return what to do if the advice of a what-if was tried without gain. Empty if nothing is known."""
    return str(getattr(load(name), "REFUTED", ""))


def combine(what_ifs: Sequence[WhatIf]) -> WhatIf:
    """Return several what-ifs as one, which makes all of their changes."""
    update: dict[str, Any] = {}
    examples = 1.0
    for what_if in what_ifs:
        outside = (*update.get("what_ifs", ()), *what_if.update.get("what_ifs", ()))
        update |= {**what_if.update, **({"what_ifs": outside} if outside else {})}
        examples *= what_if.examples
    words, options = " and ".join(w.words for w in what_ifs), " ".join(w.option for w in what_ifs)
    return WhatIf(words, options, update=update, examples=examples)
