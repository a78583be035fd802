"""CPU and memory limits, read from prepared trees of control groups of both versions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.machine import cgroup, limits
from bench.machine.limits import Throttling, cpu_limit, memory_available, memory_limit, thread_count, throttling

GIB = 2**30
HOST = float(limits.affinity())


def write_files(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
    return root


def version_2(root: Path, files: dict[str, str], group: str = "/", top: str = "/") -> Path:
    """Write the files of a machine with version 2 only."""
    mount = f"30 23 0:26 {top} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
    inside = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    return write_files(root, {"proc/self/mountinfo": mount, "proc/self/cgroup": f"0::{group}", **inside})


def version_1(root: Path, files: dict[str, str], group: str = "/", top: str = "/") -> Path:
    """Write the files of a machine with version 1 only, with the CPU controllers mounted together, as is usual."""
    mounts = (
        "22 1 254:1 / / rw,relatime - ext4 /dev/vda rw\n"
        f"33 30 0:28 {top} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        f"34 30 0:29 {top} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
    )
    groups = f"11:memory:{group}\n3:cpu,cpuacct:{group}\n1:name=systemd:{group}"
    inside = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    return write_files(root, {"proc/self/mountinfo": mounts, "proc/self/cgroup": groups, **inside})


def test_a_quota_of_version_2_limits_the_cpus(tmp_path: Path) -> None:
    root = version_2(tmp_path, {"cpu.max": "50000 100000"})
    assert cpu_limit(root) == 0.5
    assert thread_count(root) == 1


def test_a_quota_of_version_1_limits_the_cpus(tmp_path: Path) -> None:
    root = version_1(tmp_path, {"cpu,cpuacct/cpu.cfs_quota_us": "37500", "cpu,cpuacct/cpu.cfs_period_us": "50000"})
    assert cpu_limit(root) == 0.75


@pytest.mark.parametrize("quota", ["max 100000", "max", "6400000 100000"])
def test_without_a_tight_quota_the_affinity_is_the_limit(tmp_path: Path, quota: str) -> None:
    assert cpu_limit(version_2(tmp_path, {"cpu.max": quota})) == HOST


def test_a_quota_of_minus_one_means_no_quota_in_version_1(tmp_path: Path) -> None:
    files = {"cpu,cpuacct/cpu.cfs_quota_us": "-1", "cpu,cpuacct/cpu.cfs_period_us": "100000"}
    assert cpu_limit(version_1(tmp_path, files)) == HOST


@pytest.mark.parametrize(("own", "parent", "tightest"), [("80000", "40000", 0.4), ("40000", "80000", 0.4)])
def test_the_tightest_quota_of_a_group_and_its_parents_applies(
    tmp_path: Path, own: str, parent: str, tightest: float
) -> None:
    files = {
        "kubepods/pod1/c1/cpu.max": f"{own} 100000",
        "kubepods/pod1/cpu.max": f"{parent} 100000",
        "kubepods/cpu.max": "max 100000",
    }
    assert cpu_limit(version_2(tmp_path, files, group="/kubepods/pod1/c1")) == tightest


def test_the_quota_of_a_sibling_group_does_not_apply(tmp_path: Path) -> None:
    files = {"mine/cpu.max": "90000 100000", "other/cpu.max": "10000 100000"}
    assert cpu_limit(version_2(tmp_path, files, group="/mine")) == 0.9


def test_a_container_without_a_cgroup_namespace_reads_the_group_at_the_top_of_the_mount(tmp_path: Path) -> None:
    files = {"cpu,cpuacct/cpu.cfs_quota_us": "60000", "cpu,cpuacct/cpu.cfs_period_us": "100000"}
    root = version_1(tmp_path, files, group="/docker/abc", top="/docker/abc")
    assert cpu_limit(root) == 0.6


def test_a_mount_from_outside_the_namespace_is_read_at_its_root(tmp_path: Path) -> None:
    root = version_2(tmp_path, {"cpu.max": "70000 100000", "../cpu.max": "10000 100000"}, "/../../x", top="/..")
    assert cpu_limit(root) == 0.7


def test_a_mount_point_with_a_blank_is_found(tmp_path: Path) -> None:
    mount = r"30 23 0:26 / /my\040groups rw - cgroup2 cgroup2 rw"
    files = {"proc/self/mountinfo": mount, "proc/self/cgroup": "0::/", "my groups/cpu.max": "20000 100000"}
    assert cpu_limit(write_files(tmp_path, files)) == 0.2


def test_both_versions_are_read_if_both_are_mounted(tmp_path: Path) -> None:
    mounts = (
        "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
        "38 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw"
    )
    files = {
        "proc/self/mountinfo": mounts,
        "proc/self/cgroup": "1:cpu:/\n0::/inner",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "90000",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/cpu/cpu.stat": "nr_periods 9\nnr_throttled 2\nthrottled_time 500000000",
        "sys/fs/cgroup/unified/inner/memory.max": str(GIB),
    }
    root = write_files(tmp_path, files)
    assert cgroup.version(root) == "v1+v2"
    assert cpu_limit(root) == 0.9
    assert throttling(root) == Throttling(2, 0.5)
    assert memory_limit(root) == GIB


@given(micros=st.integers(min_value=1000, max_value=100_000_000))
def test_threads_do_not_exceed_the_limit_and_are_at_least_one(
    tmp_path_factory: pytest.TempPathFactory, micros: int
) -> None:
    root = version_2(tmp_path_factory.mktemp("root"), {"cpu.max": f"{micros} 100000"})
    limit, threads = cpu_limit(root), thread_count(root)
    assert threads == 1 or threads <= limit
    assert threads + 1 > limit


def test_the_tightest_memory_limit_of_the_group_and_its_parents_applies(tmp_path: Path) -> None:
    files = {"pod/memory.max": str(2 * GIB), "pod/c/memory.max": "max", "memory.max": str(4 * GIB)}
    assert memory_limit(version_2(tmp_path, files, group="/pod/c")) == 2 * GIB


def test_a_version_1_limit_of_a_hidden_parent_is_read_from_the_statistics(tmp_path: Path) -> None:
    files = {
        "memory/memory.limit_in_bytes": "9223372036854771712",
        "memory/memory.stat": f"cache 1\nhierarchical_memory_limit {3 * GIB}\ntotal_inactive_file 0",
    }
    root = version_1(tmp_path, files, group="/docker/abc", top="/docker/abc")
    assert memory_limit(root) == 3 * GIB


def test_the_default_of_version_1_means_no_memory_limit(tmp_path: Path) -> None:
    assert memory_limit(version_1(tmp_path, {"memory/memory.limit_in_bytes": "9223372036854771712"})) is None


def test_available_memory_is_the_rest_of_the_limit_with_cached_files_as_free(tmp_path: Path) -> None:
    mib = 2**20
    files = {
        "memory.max": str(100 * mib),
        "memory.current": str(70 * mib),
        "memory.stat": f"anon {40 * mib}\ninactive_file {20 * mib}",
    }
    assert memory_available(version_2(tmp_path, files)) == 50 * mib


def test_available_memory_is_read_in_version_1_too(tmp_path: Path) -> None:
    mib = 2**20
    files = {
        "memory/memory.limit_in_bytes": str(100 * mib),
        "memory/memory.usage_in_bytes": str(90 * mib),
        "memory/memory.stat": f"total_inactive_file {5 * mib}",
    }
    assert memory_available(version_1(tmp_path, files)) == 15 * mib


def test_without_a_limit_the_available_memory_is_that_of_the_system(tmp_path: Path) -> None:
    assert 0 < memory_available(tmp_path) <= psutil.virtual_memory().total


def test_throttling_is_read_in_the_unit_of_each_version_and_summed_over_nested_groups(tmp_path: Path) -> None:
    files_2 = {
        "pod/cpu.stat": "usage_usec 7\nnr_periods 9\nnr_throttled 3\nthrottled_usec 1500000",
        "pod/c/cpu.stat": "usage_usec 7\nnr_periods 9\nnr_throttled 1\nthrottled_usec 250000",
        "cpu.stat": "usage_usec 7",
    }
    assert throttling(version_2(tmp_path / "2", files_2, group="/pod/c")) == Throttling(4, 1.75)
    files_1 = {"cpu,cpuacct/cpu.stat": "nr_periods 5\nnr_throttled 2\nthrottled_time 3000000000"}
    assert throttling(version_1(tmp_path / "1", files_1)) == Throttling(2, 3.0)


def test_a_system_without_control_groups_has_no_limits(tmp_path: Path) -> None:
    assert cgroup.version(tmp_path) is None
    assert cpu_limit(tmp_path) == HOST
    assert memory_limit(tmp_path) is None
    assert throttling(tmp_path) is None


def test_invalid_numbers_are_ignored(tmp_path: Path) -> None:
    files = {"cpu.max": "what 100000", "memory.max": "", "cpu.stat": "nr_throttled many", "memory.current": "x"}
    root = version_2(tmp_path, files)
    assert cpu_limit(root) == HOST
    assert memory_limit(root) is None
    assert throttling(root) is None


@pytest.mark.needs("linux")
def test_the_limits_of_this_machine_are_plausible() -> None:
    limit = cpu_limit()
    assert 0 < limit <= HOST
    assert cgroup.version() in ("v1", "v2", "v1+v2", None)
    assert 0 < memory_available() <= psutil.virtual_memory().total
    assert json.dumps(limit)


@pytest.mark.parametrize(("ids", "text"), [({0}, "0"), ({3, 0, 1, 2}, "0-3"), ({0, 1, 2, 5, 7, 8}, "0-2,5,7-8")])
def test_cpus_are_written_in_the_notation_of_linux(ids: set[int], text: str) -> None:
    assert limits.ranges(ids) == text


@pytest.mark.needs("linux")
def test_the_cpu_set_is_the_affinity_of_the_process() -> None:
    code = "import os; from bench.machine import limits; os.sched_setaffinity(0, {0}); print(limits.cpuset())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "0\n"
