"""Pack TensorFlow with CUDA in small pieces, for a GPU machine that reaches no package index.

`python -m benchmarks.gpu_copy --capability 9.0 [--python PYTHON] [--piece MB] [--output DIR]`

It installs `images/cuda.lock`, removes the machine code for other GPUs and what devbench does not use, and writes
pieces of an archive. That leaves about 0.7 GB of 3.4 GB. PYTHON must have the version of the Python on the GPU machine.
Copy DIR there, and run `sh DIR/unpack.sh VENV` to make a virtual environment. Packing needs zstd, strip and gcc.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fatbins import prune

ROOT = Path(__file__).resolve().parent.parent
SMALLEST = 5_000_000
"""Libraries of fewer bytes hold no machine code that matters."""

UNUSED = ("*/include/*", "*.a", "*/libcusolverMg*", "*/libnvrtc.alt*", "*/libclang*", "*/libnvperf_*", "*/libnvvm.so*")
"""Files that neither TensorFlow nor devbench opens at run time."""

EMPTY = ("libcufft.so.", "libcurand.so.", "libnccl.so.")
"""Libraries that TensorFlow only opens, unless a program calls them. An empty library replaces them."""

WITHOUT_CODE = ("libcusparse", "libcusolver.", "libcudnn_adv")
"""Libraries that other ones need, but whose kernels the programs of devbench do not run."""

SYMBOLS = ("libtensorflow_cc", "libtensorflow_framework", "_pywrap_profiler_plugin")
"""Libraries whose symbol table is large and only serves debuggers."""

UNPACK = """#!/bin/sh
# usage: [PYTHON=python3] sh unpack.sh VENV
set -e
python=${PYTHON:-python3}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[ "$version" = VERSION ] || { echo >&2 "$python is Python $version. Use VERSION: PYTHON=pythonVERSION"; exit 1; }
tool=$(dirname "$0")/tool
chmod +x "$tool/zstd"
"$python" -m venv --without-pip "$1"
cat "$tool"/../piece.* | LD_LIBRARY_PATH=$tool "$tool/zstd" -dc --long=27 |
    tar x -C "$(echo "$1"/lib/python3*/site-packages)"
"""


def install(python: str, site: Path) -> None:
    """Install the lock into a folder, for the version of a Python."""
    lock = ROOT / "images" / "cuda.lock"
    options = ["--quiet", "--no-deps", "--no-compile", "--only-binary=:all:", "--require-hashes", "--target", site]
    subprocess.run([python, "-m", "pip", "install", *map(str, options), "-r", str(lock)], check=True)


def version_of(python: str) -> str:
    """Return major and minor version of a Python."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def slim(site: Path, capability: int) -> None:
    """Remove what a GPU does not use from installed packages."""
    for path in site.rglob("*"):
        if path.is_file() and any(path.match(pattern) for pattern in UNUSED):
            path.unlink()
    for library in sorted(site.rglob("*.so*")):
        if library.is_symlink() or not library.is_file() or library.stat().st_size < SMALLEST:
            continue
        if library.name.startswith(EMPTY):
            _empty(library)
            continue
        removed = prune(library, None if library.name.startswith(WITHOUT_CODE) else capability)
        if library.name.startswith(SYMBOLS):
            subprocess.run(["strip", "-s", str(library)], check=True)
        if removed:
            print(f"{library.name}: {removed / 1e6:.0f} MB of code removed", flush=True)


def _empty(library: Path) -> None:
    """Replace a library by one of the same name without functions."""
    library.unlink()
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{library.name}", "-o", str(library)]
    subprocess.run(command, input=b"int devbench_empty;", check=True)


def pack(site: Path, version: str, output: Path, piece: int) -> int:
    """Write the packages as pieces of an archive, with what unpacks them. Return the number of pieces.

    Args:
        site: the packages.
        version: of Python, such as 3.12.
        output: where.
        piece: bytes of a piece.
    """
    shutil.rmtree(output, ignore_errors=True)
    (output / "tool").mkdir(parents=True)
    zstd = shutil.which("zstd") or "zstd"
    shutil.copy(zstd, output / "tool" / "zstd")
    needed = subprocess.run(["ldd", zstd], check=True, capture_output=True, text=True).stdout
    for path in map(Path, re.findall(r"=> (/\S+)", needed)):
        if not path.name.startswith("libc.so"):  # the C library must be that of the other machine, as its loader is
            shutil.copy(path, output / "tool")
    (output / "unpack.sh").write_text(UNPACK.replace("VERSION", version), encoding="utf-8")
    tar = ["tar", "--create", "--sort=name", "--directory", str(site), "."]
    with subprocess.Popen(tar, stdout=subprocess.PIPE) as files:
        compress = [zstd, "--quiet", "-15", "--threads=0", "--long=27"]
        with subprocess.Popen(compress, stdin=files.stdout, stdout=subprocess.PIPE) as archive:
            assert archive.stdout is not None
            count = 0
            while block := archive.stdout.read(piece):
                (output / f"piece.{count:02d}").write_bytes(block)
                count += 1
    if files.returncode or archive.returncode:
        raise SystemExit("error: the packages could not be packed")
    return count


def main(arguments: Sequence[str] | None = None) -> None:
    """Install, slim and pack."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_copy", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--capability", type=float, required=True, help="Compute capability of the GPU, such as 9.0.")
    parser.add_argument(
        "--python", default=sys.executable, help="Python of the GPU machine's version. Default: this one."
    )
    parser.add_argument("--piece", type=int, default=62, help="Size of a piece in MB. Default: 62.")
    parser.add_argument("--output", type=Path, default=Path("gpu-copy"), help="Folder. Default: gpu-copy.")
    options = parser.parse_args(arguments)
    for tool in ("zstd", "strip", "gcc", "ldd", "tar"):
        if shutil.which(tool) is None:
            parser.error(f"{tool} is missing: install zstd, binutils and gcc")
    site = options.output.with_name(f"{options.output.name}-site")
    shutil.rmtree(site, ignore_errors=True)
    install(options.python, site)
    slim(site, round(options.capability * 10))
    count = pack(site, version_of(options.python), options.output, options.piece * 1_000_000)
    shutil.rmtree(site)
    print(f"{count} pieces. Copy {options.output} to the GPU machine, and run there:")
    print(f"sh {options.output.name}/unpack.sh VENV")


if __name__ == "__main__":
    main()
