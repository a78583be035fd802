"""A run's metrics for Prometheus."""
