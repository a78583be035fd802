"""`devbench compare`: which result is faster, from which step on, and whether the comparison is fair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import typer

from bench.cli.command import as_json, build, conclude, end
from bench.cli.options import with_settings
from bench.config.settings import RunSettings
from bench.errors import DevbenchError, NotComparable, RunFailed, SlowerThanAllowed, UsageError
from bench.model.comparison import Comparison, Matrix
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
            help="Exit with code 5 if a result is slower than its baseline, 4 if one cannot be compared, 1 if there "
            "is too little data.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Compare results even if the comparison is unfair. The output says so.")
    ] = False,
) -> None:
    """Compare results: which is faster, and by how much.

    The first result is the baseline. A ratio is the other's time divided by the baseline's time.

    With one folder, all results in it that can be compared are compared. With two folders, each result of the second is
    compared with the matching result of the first. With --fail-on, a result of the first folder without a match is an
    error.
    """
    from bench.analyse.outcome import Outcome
    from bench.analyse.pairing import latest_runs, pair
    from bench.store import files, headers

    path_sets = [files.find(name, settings.output) for name in results]
    if sum(map(len, path_sets)) < 2:
        raise UsageError("there is only one result", "Name two results, or a folder that contains several.")
    entry_sets = [latest_runs([headers.index_entry(path) for path in paths]) for paths in path_sets]
    sets, read = _read_headers([[entry.path for entry in entries] for entries in entry_sets])
    pairing = pair(sets)
    outcome = Outcome.of(pairing, settings.threshold, read)
    if not outcome.comparisons:
        raise NotComparable(
            "no two of these results can be compared",
            "Results can be compared if they differ in one thing only: backend, loop, a parameter, or your own file.",
        )
    refused = [] if force else [comparison for comparison in outcome.comparisons if comparison.unfair]
    allowed = [comparison for comparison in outcome.comparisons if comparison not in refused]
    if refused and (pairing.explicit or not allowed):
        raise _refusal(refused[0])
    unchecked = pairing.unchecked
    if not Path(results[-1]).is_dir():  # a single result need not have counterparts for a whole folder
        named_ids = {entry.id for entry in entry_sets[-1]}
        unchecked = [result for result in unchecked if result.id in named_ids]
    error = _gate(allowed, refused, unchecked, settings.threshold) if fail_on else None
    document = None
    if settings.json:
        document = {
            "comparisons": [as_json(comparison) for comparison in allowed],
            "not_comparable": [as_json(comparison) for comparison in refused],
            "alone": [result.id for result in pairing.alone],
            "matrices": [as_json(matrix) for matrix in outcome.matrices],
        }
    else:
        _show(allowed, refused, outcome.matrices, pairing.alone)
    end(conclude(document, error))


def _read_headers(path_sets: Sequence[Sequence[Path]]) -> tuple[list[list[Result]], Callable[[Result], Result]]:
    """Read sets of results without their samples, by id. Also return a function that reads one of them completely."""
    from bench.store import files, headers

    header_sets = [[(headers.head(path), path) for path in paths] for paths in path_sets]
    path_of = {id(header): path for pairs in header_sets for header, path in pairs}
    read_path = lru_cache(maxsize=5)(files.read)  # a baseline is followed by all results that are compared with it
    sets = [sorted((header for header, _ in pairs), key=lambda header: header.id) for pairs in header_sets]
    return sets, lambda header: read_path(path_of[id(header)])


def _show(
    allowed: Sequence[Comparison], refused: Sequence[Comparison], matrices: Sequence[Matrix], alone: Sequence[Result]
) -> None:
    from bench.render.terminal import comparison as terminal

    typer.echo(terminal.text(allowed, matrices), nl=False)
    for comparison in refused:
        sides = f"{comparison.other.label} and {comparison.base.label}"
        typer.echo(f"not comparable: {sides}. Compare only these two to see why.")
    for result in alone:
        typer.echo(f"nothing to compare with: {result.spec.label} ({result.id})")


def _gate(
    allowed: Sequence[Comparison], refused: Sequence[Comparison], unchecked: Sequence[Result], threshold: float
) -> DevbenchError | None:
    """Return the error of `--fail-on slower`; None if no result is slower and none may be.

    Args:
        allowed: comparisons that are fair or forced.
        refused: unfair comparisons, which have no verdict.
        unchecked: results without a counterpart that may have become slower.
        threshold: smallest relative difference that matters.
    """
    if slower := [comparison for comparison in allowed if comparison.verdict == "slower"]:
        return SlowerThanAllowed(f"slower by more than {threshold:.3g}: {_others(slower)}")
    if refused:
        return NotComparable(
            f"cannot be compared, so they may be slower: {_others(refused)}", "Compare only two of them to see why."
        )
    if unchecked:
        names = ", ".join(f"{result.spec.label} ({result.id})" for result in unchecked)
        return NotComparable(
            f"no counterpart, so they may be slower: {names}",
            "Measure the same specs for both, or compare only two results to see why they cannot be compared.",
        )
    if undecided := [comparison for comparison in allowed if comparison.verdict == "not enough data"]:
        return RunFailed(f"no verdict, so they may be slower: {_others(undecided)}", "Check whether their runs failed.")
    return None


def _others(comparisons: Sequence[Comparison]) -> str:
    return ", ".join(comparison.other.label for comparison in comparisons)


def _refusal(unfair: Comparison) -> NotComparable:
    """Return the error that says why two results cannot be compared."""
    from bench.render.sentences.comparison import difference

    return NotComparable(
        f"{unfair.other.label} cannot be compared with {unfair.base.label}",
        "\n".join([*map(difference, unfair.unfair), "Use --force to compare them anyway."]),
    )


TEXTS = {
    "threshold": "Smallest difference that matters. Default: 2%.",
    "output": "Folder in which ids of results are looked up. Default: results.",
}
"""Help that differs from that of `run`."""

command = build(with_settings(compare, ("threshold", "output", "json"), TEXTS), "compare")
