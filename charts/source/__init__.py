"""The chart's values, declared once: `python -m charts.source` makes `values.yaml`, its schema and its reference.

The settings of a run are those of `bench.config.settings`, so a new one is a chart value without another word here.
"""
