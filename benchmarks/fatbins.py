"""The machine code for GPUs in a library: remove what one GPU does not run.

A library of CUDA holds the same kernels for many GPUs, in containers ("fatbins"). The driver loads the code that fits
the GPU. It never reads the code for other GPUs. Zeros replace that code, because a compressor makes them disappear.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAGIC = b"\x50\xed\x55\xba"
HEADER = struct.Struct("<4sHHQ")
"""Magic, version, size of the header and size of the entries, in bytes."""

ENTRY = struct.Struct("<HHIQ12xI")
"""Kind, flags, size of the header, size of the code, and compute capability times 10."""

PTX, MACHINE_CODE = 1, 2
LARGEST_HEADER = 4096


class Entry(NamedTuple):
    """The code of a fatbin for one compute capability.

    Args:
        kind: PTX, which the driver compiles for any newer GPU, or MACHINE_CODE.
        capability: compute capability times 10, such as 90.
        start: where its code begins, in bytes.
        size: of its code, in bytes.
    """

    kind: int
    capability: int
    start: int
    size: int


def fatbins(data: bytes | mmap.mmap) -> Iterator[list[Entry]]:
    """Yield the entries of each fatbin in a library. What only looks like a fatbin is skipped."""
    position = 0
    while (position := data.find(MAGIC, position)) >= 0:
        entries, end = _entries(data, position)
        if entries:
            yield entries
        position = end


def _entries(data: bytes | mmap.mmap, position: int) -> tuple[list[Entry], int]:
    """Return the entries of the fatbin at a position, and where to search for the next one."""
    after = position + len(MAGIC)
    if position + HEADER.size > len(data):
        return [], after
    _, version, header, size = HEADER.unpack_from(data, position)
    end = position + header + size
    if (version, header) != (1, HEADER.size) or end > len(data):
        return [], after
    entries, place = [], position + header
    while place + ENTRY.size <= end:
        kind, _, header, size, capability = ENTRY.unpack_from(data, place)
        start = place + header
        if kind not in (PTX, MACHINE_CODE) or not ENTRY.size <= header <= LARGEST_HEADER or start + size > end:
            break
        entries.append(Entry(kind, capability, start, size))
        place = start + size
    return entries, end


def unused(entries: list[Entry], capability: int) -> list[Entry]:
    """Return the entries of a fatbin that a GPU does not run.

    It runs the machine code for its own capability. If there is none, the driver compiles the newest PTX that fits.
    """
    fitting = [entry for entry in entries if entry.kind == MACHINE_CODE and entry.capability == capability]
    if not fitting:
        ptx = [entry for entry in entries if entry.kind == PTX and entry.capability <= capability]
        fitting = sorted(ptx, key=lambda entry: entry.capability)[-1:]
    return [entry for entry in entries if entry not in fitting]


def prune(library: Path, capability: int | None) -> int:
    """Overwrite the code in a library that a GPU does not run.

    Args:
        library: the file, which is changed.
        capability: compute capability of the GPU times 10. None removes all code.

    Returns:
        How many bytes were overwritten.
    """
    removed = 0
    with library.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        for entries in fatbins(data):
            for entry in entries if capability is None else unused(entries, capability):
                data[entry.start : entry.start + entry.size] = bytes(entry.size)
                removed += entry.size
    return removed
