"""What the results of an explanation mean."""
