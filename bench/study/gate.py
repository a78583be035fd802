"""The study behind `devbench gate`: a race of a program at two commits, each in a git worktree."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair
from bench.config.settings import RunSettings
from bench.errors import DevbenchError, Interrupted
from bench.model.result import Result
from bench.publish.recorder import Recorder
from bench.session import stopping
from bench.study import checkout, gate_notes
from bench.study.checkout import Sides
from bench.study.explain import explain
from bench.study.recorded import keeping, recorded, title_of
from bench.study.run import run


def gate(
    program: Path,
    base: str,
    settings: RunSettings,
    recorder: Recorder | None = None,
    *,
    explain_slower: bool = False,
    sides: Sides | None = None,
) -> Outcome:
    """Race a program at two commits. The arguments, results and errors are those of `bench.api.gate`."""
    raced = stopping.with_time_limit(settings.model_copy(update={"compare": True}), stopping.COMPARING_SECONDS)
    deadline = time.monotonic() + raced.max_time
    if sides is None:
        sides = checkout.sides(program, base)
    checkout.require_clean(sides.root)
    if recorder is not None:
        for note in gate_notes.notes(sides, base, program, in_own_env=not settings.env):
            recorder.tell(note)
    title = f"gate {title_of([program], raced)}"
    results: Sequence[Result] = ()
    outcome: Outcome | None = None
    with recorded(raced, title, recorder) as record, keeping(lambda: (results, outcome)), ExitStack() as stack:
        files = [
            stack.enter_context(checkout.at(sides.root, program, commit, name, settings.output))
            for name, commit in (("base", sides.base), ("head", sides.head))
        ]
        checkout.require_syntax(files[0], f"the base ({base})")
        checkout.require_syntax(files[1], "the head")
        # The gate judges steps, so it measures until their verdict is settled.
        results = run(files, raced, record, deadline=deadline, over_epochs=False).results
        sets = [[result for result in results if result.spec.file == str(file.resolve())] for file in files]
        outcome = Outcome.of(pair(sets), settings.threshold)
        slower = {side.other.id for side in outcome.comparisons if side.verdict == "slower" and not side.unfair}
        spec = next((result.spec for result in results if result.id in slower), None)
        if explain_slower and spec is not None:
            own = {
                "backend": (spec.backend,),
                "case": (spec.case,) if spec.case else (),
                "loop": (spec.loop,) if len(settings.loop) > 1 else settings.loop,
                "env": {spec.env.name: settings.env[spec.env.name]} if spec.env else {},
            }
            try:
                explain(str(files[1]), settings.model_copy(update=own), record)
            except Interrupted as error:
                raise Interrupted(error.signum, results, outcome) from None
            except DevbenchError as error:
                record.tell(f"the head is not explained: {error.message}")
    assert outcome is not None
    return outcome
