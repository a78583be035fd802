"""Libraries for one GPU: code that it runs stays, and all other code is overwritten."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gpu_copy
from benchmarks.fatbins import HEADER, MACHINE_CODE, MAGIC, PTX, fatbins, prune

CODE = {(MACHINE_CODE, 80): b"a" * 40, (MACHINE_CODE, 90): b"b" * 24, (PTX, 80): b"c" * 16, (PTX, 90): b"d" * 8}


def fatbin(*entries: tuple[int, int]) -> bytes:
    """Return a fatbin with some entries of `CODE`. The header of an entry has 64 bytes, as in TensorFlow 2.21."""
    body = b""
    for kind, capability in entries:
        header = bytearray(64)
        header[:16] = struct.pack("<HHIQ", kind, 257, len(header), len(CODE[kind, capability]))
        header[28:32] = struct.pack("<I", capability)
        body += bytes(header) + CODE[kind, capability]
    return HEADER.pack(MAGIC, 1, HEADER.size, len(body)) + body


def pruned(tmp_path: Path, data: bytes, capability: int | None) -> bytes:
    library = tmp_path / "lib.so"
    library.write_bytes(data)
    prune(library, capability)
    result = library.read_bytes()
    assert len(result) == len(data)
    return result


@pytest.mark.parametrize(
    ("held", "capability", "kept"),
    [
        ([(MACHINE_CODE, 80), (MACHINE_CODE, 90), (PTX, 90)], 90, [(MACHINE_CODE, 90)]),
        ([(MACHINE_CODE, 80), (PTX, 80), (PTX, 90)], 90, [(PTX, 90)]),
        ([(MACHINE_CODE, 90), (PTX, 80), (PTX, 90)], 89, [(PTX, 80)]),
        ([(MACHINE_CODE, 80), (MACHINE_CODE, 90), (PTX, 90)], None, []),
    ],
    ids=["machine code", "the newest PTX", "no PTX of a newer GPU", "nothing"],
)
def test_only_the_code_that_a_gpu_runs_stays(
    tmp_path: Path, held: list[tuple[int, int]], capability: int | None, kept: list[tuple[int, int]]
) -> None:
    data = b"before" + fatbin(*held) + b"between" + fatbin(*held) + b"after"
    result = pruned(tmp_path, data, capability)
    for key, code in CODE.items():
        assert result.count(code) == (2 if key in kept else 0)
    assert all(text in result for text in (b"before", b"between", b"after"))


@pytest.mark.parametrize(
    "data",
    [MAGIC, MAGIC + bytes(40), HEADER.pack(MAGIC, 1, HEADER.size, 10**6), HEADER.pack(MAGIC, 1, 16, 30) + bytes(30)],
)
def test_what_only_looks_like_a_fatbin_stays_as_it_is(tmp_path: Path, data: bytes) -> None:
    assert pruned(tmp_path, data, 90) == data
    assert not [*fatbins(data)]


def test_entries_are_read_up_to_the_first_that_is_no_code() -> None:
    body = fatbin((MACHINE_CODE, 90))[HEADER.size :] + struct.pack("<HHIQ", 7, 0, 64, 8) + bytes(80)
    data = HEADER.pack(MAGIC, 1, HEADER.size, len(body)) + body
    ((entry,),) = fatbins(data)
    assert (entry.kind, entry.capability) == (MACHINE_CODE, 90)


@pytest.mark.skipif(shutil.which("zstd") is None, reason="needs zstd")
def test_packed_packages_are_unpacked_into_an_environment_of_the_same_python(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "package").mkdir(parents=True)
    (site / "package" / "__init__.py").write_text("answer = 42\n", encoding="utf-8")
    (site / "package" / "large.so").write_bytes(random.Random(0).randbytes(300_000))
    version = gpu_copy.version_of(sys.executable)
    assert gpu_copy.pack(site, version, tmp_path / "copy", 100_000) == 4
    assert not [*(tmp_path / "copy" / "tool").glob("libc.so*")]  # another machine's loader needs its own
    unpack = ["sh", "copy/unpack.sh", "environment"]
    python = {"PYTHON": sys.executable, "PATH": os.environ["PATH"]}
    subprocess.run(unpack, check=True, cwd=tmp_path, env=python)
    code = "import package; print(package.answer)"
    own = tmp_path / "environment" / "bin" / "python"
    assert subprocess.run([own, "-c", code], check=True, capture_output=True, text=True).stdout == "42\n"
    gpu_copy.pack(site, "2.7", tmp_path / "copy", 100_000)
    refused = subprocess.run(unpack, check=False, cwd=tmp_path, env=python, capture_output=True, text=True)
    assert refused.returncode == 1
    assert f"is Python {version}. Use 2.7: PYTHON=python2.7" in refused.stderr
