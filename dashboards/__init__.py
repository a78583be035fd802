"""The Grafana dashboards, made with Grafana's typed builders.

`python -m dashboards` writes the JSON files of `charts/devbench/dashboards`.

There is one module per dashboard, with a function `dashboard`. Queries name no job, namespace or instance, so they work
with any Prometheus.
"""
