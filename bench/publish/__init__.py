"""Results and progress sent elsewhere: to a hub and to Prometheus."""
