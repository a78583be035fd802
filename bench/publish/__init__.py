"""Sends results and progress to a hub and to Prometheus."""
