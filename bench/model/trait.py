"""The trait of a field that tells environments apart, declared where the field is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Identity = Literal["fingerprint", "comparison key", "peaks"]
"""What a field can be part of.

fingerprint: results with equal specs and equal fingerprints are repetitions.
comparison key: the key of the hub's histories, which spans versions of TensorFlow.
peaks: the name under which measured peaks are cached.
"""


@dataclass(frozen=True)
class Trait:
    """What a field of the environment is for.

    Args:
        row: Its name in comparisons and reports. None if neither shows it.
        part_of: The identities that it is part of.
        from_backend: Whether it comes with the backend. Then a comparison of two backends does not list it.
        size: Whether its value is a number of bytes.
    """

    row: str | None = None
    part_of: tuple[Identity, ...] = ()
    from_backend: bool = False
    size: bool = False

    def __post_init__(self) -> None:
        """Check the names of identities, which no type checker does within `Annotated`."""
        if unknown := set(self.part_of) - set(get_args(Identity)):
            raise ValueError(f"no such identity: {', '.join(sorted(unknown))}")
