"""devbench's version, and how to install it, in a file that imports nothing, so that every other file can import it."""

__version__ = "0.1.0"


def install_command(extra: str) -> str:
    """Return the command that installs devbench with an extra, in a checkout.

    devbench is not published yet. The package `devbench` on PyPI is somebody else's.
    """
    return f"pip install '.[{extra}]'"
