"""Settings: where they come from, how they are written, and what is said when one is wrong."""
