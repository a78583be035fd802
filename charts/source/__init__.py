"""The chart's values, declared once. `python -m charts.source` generates `values.yaml`, its schema and its reference.

The settings of a run come from `bench.config.settings`, so a new setting is a chart value automatically.
"""
