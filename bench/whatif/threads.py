"""The what-if `threads`: Give TensorFlow fewer or more threads."""

from __future__ import annotations

from collections.abc import Iterator

from bench.model.spec import Threads
from bench.model.step_parts import StepPart
from bench.whatif import Program, WhatIf

ACTS_ON: frozenset[StepPart] = frozenset({"input", "dispatch", "computing"})


def candidates(program: Program) -> Iterator[WhatIf]:
    """Yield one thread, a quarter, half and twice the threads of the program."""
    threads = program.spec.threads.intra
    for count in dict.fromkeys([1, threads // 4, threads // 2, 2 * threads]):
        if count not in (0, threads):
            words = f"{count} thread{'s' if count > 1 else ''}"
            cause = "too many threads" if count < threads else "too few threads"
            advice = (
                f"Give TensorFlow {words}: tf.config.threading.set_intra_op_parallelism_threads({count}) and "
                f"set_inter_op_parallelism_threads({count})."
            )
            threads_update = {"threads": Threads(intra=count, inter=count)}
            yield WhatIf(words, f"--threads {count}", cause, threads_update, advice=advice)
