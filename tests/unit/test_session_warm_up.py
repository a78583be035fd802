"""The warm-up of a worker: blocks that do not count."""

from __future__ import annotations

from bench.model.sample import Block, Series
from bench.session.warm_up import count_last_blocks


def series(warm_up: int, blocks: int) -> Series:
    def timed(count: int) -> list[Block]:
        return [Block(seconds=0.1, steps=n + 1, cpu_seconds=0.1, position=-1) for n in range(count)]

    return Series(name="step", warmup=timed(warm_up), blocks=timed(blocks))


def test_the_later_half_of_the_warm_up_counts_if_a_script_ends_before_any_other_block() -> None:
    ended, single, timed = series(5, 0), series(1, 0), series(4, 1)
    count_last_blocks([ended, single, timed])
    assert [block.steps for block in ended.warmup] == [1, 2]
    assert [(block.steps, block.position) for block in ended.blocks] == [(3, 0), (4, 1), (5, 2)]
    assert (len(single.warmup), len(single.blocks)) == (0, 1)
    assert (len(timed.warmup), len(timed.blocks)) == (4, 1)
