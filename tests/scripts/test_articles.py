"""The listings of the articles run as they stand, each as a script."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from scouting import failure, recognition, scout

from bench.model.recognition import StepKind

ARTICLES = Path(__file__).resolve().parents[3] / "shared" / "articles"
LISTING = re.compile(r"```python\n(.*?)```", re.DOTALL)


class Steps(NamedTuple):
    """The steps of a listing.

    Args:
        kind: what a step is.
        steps: its steps if it is not stopped.
        others: steps of its other loops.
    """

    kind: StepKind
    steps: int
    others: tuple[int, ...] = ()


NO_STEP = r"no training step found in listing\.py; it ended after"
EXPECTED: dict[tuple[str, int], Steps | str] = {
    ("000", 1): NO_STEP,
    ("000", 2): NO_STEP,
    ("000", 3): r"too few steps to time: the script has only one step",
    ("001", 1): NO_STEP,
    ("001", 2): Steps("updates", 100, (100,)),
    ("001", 3): Steps("updates", 3125, (3125,)),
    ("003", 1): r"NameError: name 'time' is not defined",
    ("003", 2): r"RuntimeError: The Session graph is empty|not an element of this graph|Tensor",
    ("003", 3): r"URL fetch failure|name 'np' is not defined",
    ("004", 1): Steps("fit", 626),
    ("004", 2): Steps("fit", 626),
    ("004", 3): NO_STEP,
}
"""By article and number of the listing: its steps, or the message with which it fails."""


@pytest.mark.needs("articles")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("article", "number"), EXPECTED)
def test_a_listing_of_an_article_runs_as_it_stands(
    article: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (page,) = ARTICLES.glob(f"{article}_*.txt")
    listing = tmp_path / "listing.py"
    listing.write_text(LISTING.findall(page.read_text())[number - 1])
    monkeypatch.chdir(tmp_path)
    expected, result = EXPECTED[article, number], scout(listing, tmp_path / "results")
    if isinstance(expected, str):
        assert re.search(expected, failure(result).message), failure(result)
        return
    found = recognition(result)
    assert (found.chosen.kind, found.chosen.most_steps) == (expected.kind, expected.steps)
    assert tuple(source.steps for source in found.others) == expected.others
