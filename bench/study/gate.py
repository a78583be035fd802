"""The study behind `devbench gate`: a race of a program at two commits, each in a git worktree."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair
from bench.config.settings import RunSettings
from bench.errors import DevbenchError, Interrupted
from bench.publish.recorder import Recorder
from bench.session import stopping
from bench.study import checkout
from bench.study.explain import explain
from bench.study.recorded import recorded, title_of
from bench.study.run import run


def gate(
    program: Path, base: str, settings: RunSettings, recorder: Recorder | None = None, *, explain_slower: bool = False
) -> Outcome:
    """Race a program at two commits. The arguments, results and errors are those of `bench.api.gate`."""
    raced = stopping.with_time_limit(settings.model_copy(update={"compare": True}), stopping.COMPARING_SECONDS)
    deadline = time.monotonic() + raced.max_time
    root = checkout.root_of(program)
    tip, head = checkout.commit_of(root, base), checkout.commit_of(root, "HEAD")
    commits = {"base": checkout.branch_point(root, tip, head), "head": head}
    if commits["base"] != tip and recorder is not None:
        recorder.tell(f"note: the base is {commits['base'][:12]}, where the current commit branched off {base}")
    checkout.require_clean(root)
    title = f"gate {title_of([program], raced)}"
    with recorded(raced, title, recorder) as record, ExitStack() as stack:
        files = [
            stack.enter_context(checkout.at(root, program, commit, name, settings.output))
            for name, commit in commits.items()
        ]
        checkout.require_syntax(files[0], f"the base ({base})")
        checkout.require_syntax(files[1], "the head")
        results = run(files, raced, record, deadline=deadline).results
        sides = [[result for result in results if result.spec.file == str(file.resolve())] for file in files]
        outcome = Outcome.of(pair(sides), settings.threshold)
        if explain_slower and any(comparison.verdict == "slower" for comparison in outcome.comparisons):
            try:
                explain(str(files[1]), settings, record)
            except Interrupted as error:
                raise Interrupted(error.signum, results, outcome) from None
            except DevbenchError as error:
                record.tell(f"note: the head is not explained: {error.message}")
    return outcome
