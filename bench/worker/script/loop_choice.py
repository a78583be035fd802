"""Which lines of a script form one loop, and which loop is the training."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from bench.model.recognition import StepSource

ALTERNATE = 0.9
"""Two lines alternate if they follow each other at least this often, as a share of perfect alternation.

In perfect alternation, the other line separates all n updates of the rarer line, which is 2 n - 1 turns or more.
"""

MOST_PER_STEP = 25
"""Two lines do not alternate if one makes more updates than this for each of the other. A critic makes several."""


def choose(sources: Sequence[StepSource]) -> StepSource:
    """Return the loop that trains most steps. If nothing trains, the loop with most steps."""
    training = [source for source in sources if source.trains]
    return max(training or sources, key=lambda source: source.most_steps)


def alternating(runs: Iterable[tuple[str, int]], called: Mapping[str, str] = MappingProxyType({})) -> list[list[str]]:
    """Return the groups of tokens that alternate, each in the order of their first steps.

    Args:
        runs: token and number of steps, for each run of steps of the same token.
        called: what the line of each token calls. Lines that all call the same are no group: each call is a step.
    """
    runs = list(runs)
    steps: dict[str, int] = {}
    for token, count in runs:
        steps[token] = steps.get(token, 0) + count
    groups: list[list[str]] = []
    for token in steps:
        for group in groups:
            if _alternate(group[0], token, runs, steps):
                group.append(token)
                break
        else:
            groups.append([token])
    return [group for group in groups if len({called.get(token, token) for token in group}) > 1]


def _alternate(a: str, b: str, runs: Sequence[tuple[str, int]], steps: dict[str, int]) -> bool:
    """Whether steps of two tokens alternate: the other token separates nearly all steps of the rarer one."""
    fewest, most = sorted((steps[a], steps[b]))
    if most > MOST_PER_STEP * fewest or (fewest == 1 and most > 1):
        return False
    order = [token for token, _ in runs if token in (a, b)]
    changes = sum(x != y for x, y in itertools.pairwise(order))
    return changes >= ALTERNATE * (2 * fewest - 1)
