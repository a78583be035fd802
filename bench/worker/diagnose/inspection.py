"""Facts about a program's own steps: reads of the device, eager operations, tapes, calls for whole data sets.

After the timed part, a generator is started once more and a few of its steps are observed. Observing makes TensorFlow
slow. Each fact names the lines of the program that cause it. Worker's side only.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from bench.model.facts import (
    KERAS_CALLS,
    WHOLE_DATA_CALLS,
    EagerOperations,
    Facts,
    HostReads,
    PersistentTapes,
    WholeDataCall,
)
from bench.worker.diagnose.named_lines import MAX_NAMES, lines_of
from bench.worker.frames import SourceLine, Sources, call_in, is_own_work, keras_folder, library_folders
from bench.worker.patches import patched

WARM_UP = 2
"""Steps before those that are observed. The first one may trace."""

STEPS = 5
"""Steps that are observed."""

INPUT = ("IteratorGetNext", "IteratorGetNextSync")
"""Operations that take a batch from a dataset."""

RETURN_NUMBERS = tuple(name for name in KERAS_CALLS if name != "predict_on_batch")
"""Methods of a Keras model that return numbers. The model itself can be called in place of `predict_on_batch`."""

GRADIENTS = ("gradient", "jacobian", "batch_jacobian")
"""Methods of a tape that compute gradients."""


@dataclass
class Tape:
    """A persistent gradient tape.

    Attributes:
        source: the line that made it.
        gradients: how many gradients it computed.
    """

    source: SourceLine
    gradients: int = 0


class Observed:
    """What happened in the observed steps.

    Attributes:
        reads: how often each line read numbers from tensors.
        eager: how often operations ran eagerly, by their type and line.
        tapes: the persistent tapes that ran eagerly.
        calls: how often Keras' methods for whole data sets were called.
        rows: rows of the latest of these calls, by method.
    """

    def __init__(self) -> None:
        self.reads: Counter[SourceLine] = Counter()
        self.eager: Counter[tuple[str, SourceLine]] = Counter()
        self.tapes: list[Tape] = []
        self.calls: Counter[str] = Counter()
        self.rows: dict[str, int | None] = {}

    def read(self, facts: Facts, steps: int) -> None:
        """Set the facts `host_reads`, `eager`, `persistent_tapes` and `whole_data_calls`.

        Args:
            facts: where to put the facts.
            steps: number of observed steps.
        """
        by_line: dict[SourceLine, list[int]] = {}
        for tape in self.tapes:
            by_line.setdefault(tape.source, []).append(tape.gradients)
        # The last tape of a line may compute more gradients after these steps.
        single = {line: len(counts) for line, counts in by_line.items() if len(counts) > 1 and max(counts) <= 1}
        facts.persistent_tapes = PersistentTapes(
            per_step=sum(single.values()) / steps,
            several_gradients=single.keys() != by_line.keys(),
            **lines_of(Counter(single)),
        )
        facts.whole_data_calls = [
            WholeDataCall(called=name, per_step=number / steps, rows=self.rows[name])
            for name, number in self.calls.most_common()
        ]
        facts.host_reads = HostReads(per_step=self.reads.total() / steps, **lines_of(self.reads))
        eager_by_line: Counter[SourceLine] = Counter()
        by_type: Counter[str] = Counter()
        for (op, source), number in self.eager.items():
            eager_by_line[source] += number
            by_type[op] += number
        facts.eager = EagerOperations(
            per_step=self.eager.total() / steps,
            operations=[op for op, _ in by_type.most_common(MAX_NAMES)],
            **lines_of(eager_by_line),
        )


@contextmanager
def observing(tf: Any, sources: Sources) -> Iterator[Observed]:
    """Observe the steps that run in this context.

    Args:
        tf: TensorFlow.
        sources: the program's own files, whose lines are named.
    """
    observed = Observed()

    def report_operation(op: str) -> None:
        source, called = call_in(sources)
        if called not in KERAS_CALLS and op not in INPUT:  # what Keras does around a step is not the program's
            observed.eager.update([(op, source)])

    def report_read() -> None:
        observed.reads.update([call_in(sources)[0]])

    with (
        _host_reads(tf, sources, report_read),
        _eager_operations(sources, report_operation),
        _persistent_tapes(tf, sources, observed.tapes),
        _whole_data_calls(tf, observed),
    ):
        yield observed


def read_steps(facts: Facts, tf: Any, start: Callable[[], Iterator[Any]], sources: Sources) -> None:
    """Read the facts of `Observed` from a few steps of the program's own generator.

    Args:
        facts: where to put the facts. They stay None if the program is too short.
        tf: TensorFlow.
        start: starts the program's generator of steps.
        sources: the program's own files, whose lines are named.
    """
    steps = start()
    warmed_up = len(list(islice(steps, WARM_UP)))
    with observing(tf, sources) as observed:
        count = len(list(islice(steps, STEPS)))
    if warmed_up == WARM_UP and count:
        observed.read(facts, count)


@contextmanager
def _host_reads(tf: Any, sources: Sources, report: Callable[[], None]) -> Iterator[None]:
    """Report each read of a tensor's numbers by Python: by `.numpy()`, float(), bool() or np.asarray()."""
    from tensorflow.python.framework import ops

    tensorflow, keras = library_folders()[0], keras_folder(tf)
    base = next(kind for kind in ops.EagerTensor.__mro__ if "_numpy" in vars(kind))
    original = base._numpy
    own_file = original.__code__.co_filename

    def read(tensor: Any) -> Any:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == own_file:
            frame = frame.f_back
        reader = frame.f_code.co_filename
        # TensorFlow's own reads do not count. Keras reads what these calls return: the program cannot change that.
        own = reader.startswith(tensorflow) or (reader.startswith(keras) and call_in(sources)[1] in RETURN_NUMBERS)
        if not own and not is_own_work(frame, sources):
            report()
        return original(tensor)

    with patched(base, _numpy=read):
        yield


@contextmanager
def _persistent_tapes(tf: Any, sources: Sources, tapes: list[Tape]) -> Iterator[None]:
    """Add each persistent tape that runs eagerly to a list, and count its gradients."""
    kind = tf.GradientTape
    original_init = kind.__init__
    seen: weakref.WeakKeyDictionary[Any, Tape] = weakref.WeakKeyDictionary()
    busy: weakref.WeakSet[Any] = weakref.WeakSet()

    @functools.wraps(original_init)
    def create(tape: Any, persistent: bool = False, *args: Any, **kwargs: Any) -> None:
        original_init(tape, persistent, *args, **kwargs)
        if persistent and tf.executing_eagerly():
            seen[tape] = Tape(call_in(sources)[0])
            tapes.append(seen[tape])

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def take_gradient(tape: Any, *args: Any, **kwargs: Any) -> Any:
            if tape not in seen or tape in busy:  # `jacobian` calls `gradient`
                return original(tape, *args, **kwargs)
            seen[tape].gradients += 1
            busy.add(tape)
            try:
                return original(tape, *args, **kwargs)
            finally:
                busy.discard(tape)

        return take_gradient

    with patched(kind, __init__=create, **{name: counted(getattr(kind, name)) for name in GRADIENTS}):
        yield


@contextmanager
def _whole_data_calls(tf: Any, observed: Observed) -> Iterator[None]:
    """Count the outermost calls of Keras' methods for whole data sets, with the rows of their first argument."""
    kind, is_nested = tf.keras.Model, False

    def counted(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(model: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal is_nested
            if is_nested:
                return original(model, *args, **kwargs)
            observed.calls.update([name])
            rows, batch = _rows(tf, args[0] if args else kwargs.get("x")), kwargs.get("batch_size")
            observed.rows[name] = None if rows and batch and batch < rows else rows
            is_nested = True
            try:
                return original(model, *args, **kwargs)
            finally:
                is_nested = False

        return call

    with patched(kind, **{name: counted(name, getattr(kind, name)) for name in WHOLE_DATA_CALLS}):
        yield


def _rows(tf: Any, data: Any) -> int | None:
    """Return the rows of arrays or tensors. None if they have none, or the data are a dataset."""
    shapes = [getattr(leaf, "shape", None) for leaf in tf.nest.flatten(data)]
    return int(shapes[0][0]) if shapes and shapes[0] is not None and len(shapes[0]) > 0 and shapes[0][0] else None


@contextmanager
def _eager_operations(sources: Sources, report: Callable[[str], None]) -> Iterator[None]:
    """Report the type of each operation that runs eagerly, except calls of traced functions.

    TensorFlow has callbacks for each thread. If this context ends in another thread than it began in, the callback
    removes itself when its thread runs its next operation.
    """
    from tensorflow.python.framework import op_callbacks

    thread, ended = threading.get_ident(), False

    def on_operation(
        op_type: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        if ended:
            op_callbacks.remove_op_callback(on_operation)
            return
        name = op_type.decode() if isinstance(op_type, bytes) else str(op_type)
        if graph is not None or name.startswith("__") or "PartitionedCall" in name:
            return
        if not is_own_work(sys._getframe(1), sources):
            report(name)

    op_callbacks.add_op_callback(on_operation)
    try:
        yield
    finally:
        ended = True
        if threading.get_ident() == thread:
            op_callbacks.remove_op_callback(on_operation)
