def scale(values):
    """Return values with a maximum of 1."""
    return values / values.max()
