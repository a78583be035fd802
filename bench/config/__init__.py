"""Settings: their sources, their syntax and their errors."""
