"""`devbench compare`: which result is faster, from which step on, and whether the comparison is fair."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import typer

from bench.cli.command import as_json, build, conclude, end
from bench.cli.options import with_settings
from bench.config.settings import RunSettings
from bench.errors import DevbenchError, NotComparable, RunFailed, SlowerThanAllowed, UsageError
from bench.model.comparison import Comparison
from bench.model.result import Result


def compare(
    results: Annotated[
        list[str], typer.Argument(metavar="RESULT", help="Result files, ids of results, or folders of results.")
    ],
    settings: RunSettings,
    fail_on: Annotated[
        Literal["slower"] | None,
        typer.Option(
            "--fail-on",
            metavar="slower",
            help="Exit with code 5 if a result is slower than its baseline, and with 4 if one cannot be compared.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Compare results even if the comparison is unfair. The output says so.")
    ] = False,
) -> None:
    """Compare results: which is faster, and by how much.

    The first result is the baseline: a ratio is the other's time divided by the baseline's time. With two folders, each
    result of the second is compared with the matching result of the first, and --fail-on also fails if one of them has
    no match. With one folder, all results in it that can be compared are compared.
    """
    from bench.analyse.outcome import Outcome
    from bench.analyse.pairing import latest_runs, pair
    from bench.render.terminal import comparison
    from bench.store import files, headers

    named = [files.find(each, settings.output) for each in results]
    if sum(map(len, named)) < 2:
        raise UsageError("there is only one result", "Name two results, or a folder that contains several.")
    entries = [latest_runs([headers.entry(path) for path in each]) for each in named]
    heads = [[(headers.head(entry.path), entry.path) for entry in each] for each in entries]
    path_of = {id(head): path for each in heads for head, path in each}
    pairing = pair([sorted((head for head, _ in each), key=lambda head: head.id) for each in heads])
    read_path = lru_cache(maxsize=5)(files.read)  # a baseline is followed by all results that are compared with it

    def read(head: Result) -> Result:
        return read_path(path_of[id(head)])

    outcome = Outcome.of(pairing, settings.threshold, read)
    if not outcome.comparisons:
        raise NotComparable(
            "no two of these results can be compared",
            "Results can be compared if they differ in one thing only: backend, loop, a parameter, or your own file.",
        )
    refused = [] if force else [each for each in outcome.comparisons if each.unfair]
    shown = [each for each in outcome.comparisons if each not in refused]
    if refused and (pairing.explicit or not shown):
        raise _refusal(refused[0])
    unchecked = pairing.unchecked
    if not Path(results[-1]).is_dir():  # a single result need not have counterparts for a whole folder
        named_ids = {each.id for each in entries[-1]}
        unchecked = [each for each in unchecked if each.id in named_ids]
    error = _gate(shown, refused, unchecked, settings.threshold) if fail_on else None
    document = None
    if settings.json:
        document = {
            "comparisons": [as_json(each) for each in shown],
            "not_comparable": [as_json(each) for each in refused],
            "alone": [each.id for each in pairing.alone],
            "matrices": [as_json(each) for each in outcome.matrices],
        }
    else:
        typer.echo(comparison.text(shown, outcome.matrices), nl=False)
        for each in refused:
            typer.echo(f"not comparable: {each.other.label} and {each.base.label}. Compare only these two to see why.")
        for result in pairing.alone:
            typer.echo(f"nothing to compare with: {result.spec.label} ({result.id})")
    end(conclude(document, error))


def _gate(
    shown: Sequence[Comparison], refused: Sequence[Comparison], unchecked: Sequence[Result], threshold: float
) -> DevbenchError | None:
    """Return the error of `--fail-on slower`; None if no result is slower and none may be.

    Args:
        shown: comparisons with a verdict.
        refused: unfair comparisons, which have none.
        unchecked: results without a counterpart that may have become slower.
        threshold: smallest relative difference that matters.
    """
    if slower := [each for each in shown if each.verdict == "slower"]:
        names = ", ".join(each.other.label for each in slower)
        return SlowerThanAllowed(f"slower by more than {threshold:.3g}: {names}")
    if refused:
        names = ", ".join(each.other.label for each in refused)
        return NotComparable(
            f"cannot be compared, so they may be slower: {names}", "Compare only two of them to see why."
        )
    if unchecked:
        names = ", ".join(f"{each.spec.label} ({each.id})" for each in unchecked)
        return NotComparable(
            f"no counterpart, so they may be slower: {names}",
            "Measure the same specs for both, or compare only two results to see why they cannot be compared.",
        )
    if without := [each for each in shown if each.verdict == "not enough data"]:
        names = ", ".join(each.other.label for each in without)
        return RunFailed(f"no verdict, so they may be slower: {names}", "Check whether their runs failed.")
    return None


def _refusal(unfair: Comparison) -> NotComparable:
    """Return the error that says why two results cannot be compared."""
    from bench.render.sentences.comparison import difference

    reasons = [difference(each) for each in unfair.unfair]
    return NotComparable(
        f"{unfair.other.label} cannot be compared with {unfair.base.label}",
        "\n".join([*reasons, "Use --force to compare them anyway."]),
    )


command = build(with_settings(compare, ("threshold", "output", "json")), "compare")
