"""The memory guard. It ends a worker before the kernel does, and says how much memory was in use."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_machine_limits import version_1, version_2

from bench.machine.limits import Room
from bench.session.memory_guard import LATEST, MemoryGuard, out_of_memory

GIB, MIB = 2**30, 2**20


def group_2(root: Path, current: int, files: int = 0, limit: str = str(GIB)) -> Path:
    """Return a root with one control group of version 2. `files` of its `current` bytes can be dropped."""
    stat = f"anon 1\nactive_file {files // 2}\ninactive_file {files - files // 2}"
    return version_2(root, {"memory.max": limit, "memory.current": str(current), "memory.stat": stat})


def group_1(root: Path, current: int, files: int) -> Path:
    """Return the same root in version 1."""
    contents = {
        "memory.limit_in_bytes": str(GIB),
        "memory.usage_in_bytes": str(current),
        "memory.stat": f"total_active_file {files}\ntotal_inactive_file 0",
    }
    return version_1(root, {f"memory/{name}": text for name, text in contents.items()})


def test_a_limit_that_is_nearly_reached_is_reported_with_the_memory_in_use(tmp_path: Path) -> None:
    room, _ = MemoryGuard(group_2(tmp_path, GIB - 10 * MIB)).check()
    assert room == Room(GIB, GIB - 10 * MIB)


def test_files_that_the_kernel_can_drop_do_not_count_as_in_use(tmp_path: Path) -> None:
    assert MemoryGuard(group_2(tmp_path / "2", GIB - MIB, files=300 * MIB)).check()[0] is None
    assert MemoryGuard(group_1(tmp_path / "1", GIB - MIB, files=300 * MIB)).check()[0] is None
    room, _ = MemoryGuard(group_1(tmp_path / "full", GIB, files=MIB)).check()
    assert room == Room(GIB, GIB - MIB)


def test_checks_become_more_frequent_near_the_limit(tmp_path: Path) -> None:
    waits = []
    for used in (0, 700 * MIB, 900 * MIB, 950 * MIB):
        waits.append(MemoryGuard(group_2(tmp_path / str(used), used)).check()[1])
    assert waits == sorted(waits, reverse=True)
    assert waits[0] > 2 * waits[2] > 0
    nearly_empty = MemoryGuard(group_2(tmp_path / "nearly empty", 0, limit=str(64 * GIB)))
    assert nearly_empty.check() == (None, LATEST)


@pytest.mark.parametrize("limit", ["max", ""])
def test_a_group_without_a_limit_is_never_reported(tmp_path: Path, limit: str) -> None:
    assert MemoryGuard(group_2(tmp_path, 10 * GIB, limit=limit)).check() == (None, LATEST)
    assert MemoryGuard(tmp_path / "empty").check() == (None, LATEST)


def test_the_failure_says_how_much_memory_was_in_use_and_how_to_use_less() -> None:
    failure = out_of_memory(Room(2 * GIB, 2 * GIB - 64 * MIB), GIB, "steps", ["last"])
    assert failure.kind == "memory"
    assert "1.94 of 2.00 GiB in use, 1.00 GiB by this worker" in failure.message
    for part in ("smaller batch", "--memory", "resources.limits.memory"):
        assert part in failure.hint
    assert (failure.phase, failure.last_lines) == ("steps", ["last"])
