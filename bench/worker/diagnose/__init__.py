"""What a worker measures after the timed part."""
