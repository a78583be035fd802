"""The study behind `devbench bisect`: a race for each step of the search, and a file from which it continues."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from bench.config.settings import RunSettings
from bench.errors import Interrupted, NotApplicable
from bench.model.bisection import Bisection
from bench.model.result import Result
from bench.publish.recorder import Recorder
from bench.session.session import Session
from bench.store import atomic
from bench.study import bisect_chains
from bench.study.bisect_search import Search
from bench.study.plan import plan
from bench.study.recorded import recorded, title_of
from bench.study.run import run_design


def bisect(
    program: str,
    good: str,
    bad: str,
    settings: RunSettings,
    packages: str = "",
    recorder: Recorder | None = None,
    state: Path | None = None,
) -> Bisection:
    """Find what made a program slower. The arguments, results and errors are those of `bench.api.bisect`."""
    if max(len(settings.backend), len(settings.loop)) > 1 or settings.vary or settings.env:
        raise NotApplicable(
            "bisect takes one program on one backend",
            "Name one --backend and at most one --loop, without --vary or --env.",
        )
    results: list[Result] = []
    with recorded(settings, f"bisect {title_of([program], settings)}", recorder) as record:

        def measure(programs: Sequence[str | Path], race: RunSettings) -> Sequence[Result]:
            (group,) = plan(programs, race)
            if len(group.planned) > 2:
                raise NotApplicable(f"{program} has several cases", "Name one --case.")
            session = Session(group, race, run_design(group), record)
            results.extend(session.results)
            session.run()
            return session.results

        chain = bisect_chains.chain(program, good, bad, settings, measure, packages)
        bisection = _begun(chain.names, state)

        def save() -> None:
            if state is not None:
                state.parent.mkdir(parents=True, exist_ok=True)
                atomic.write_text(state, [bisection.model_dump_json(indent=1)])

        try:
            Search(bisection, chain.race, save).run()
        except Interrupted as error:
            raise Interrupted(error.signum, results, bisection) from None
        save()
    return bisection


def _begun(chain: list[str], state: Path | None) -> Bisection:
    """Return the bisection of a chain, with the decided races of an earlier search of the same program.

    The chain may have grown since, if one end is a branch. A file of another version of devbench, or one that is
    damaged, does not count.
    """
    if state is not None and state.exists():
        known = None
        with suppress(ValidationError):
            known = Bisection.model_validate_json(state.read_text(encoding="utf-8", errors="replace"))
        if known is not None:  # what was skipped or undecided may have another outcome now
            decided = [race for race in known.races if race.verdict in ("good", "bad")]
            return Bisection(chain=chain, races=[race for race in decided if {race.name, race.against} <= {*chain}])
    return Bisection(chain=chain)
