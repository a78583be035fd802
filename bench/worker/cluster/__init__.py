"""Several workers that train together: how they meet, which part of the data each has, and their strategy."""
