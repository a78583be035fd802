"""The parent side of a measurement: starts workers, interleaves their blocks, and decides when to stop."""
