"""Measures workloads: from a request to results, comparisons and matrices."""
