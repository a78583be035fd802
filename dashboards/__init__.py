"""The Grafana dashboards, made by Grafana's own typed builders.

`python -m dashboards` writes the JSON files of `charts/devbench/dashboards`.

A module a dashboard, each with a function `dashboard`. Queries name no job, namespace or instance, so they hold for a
Prometheus that was set up by hand as for kube-prometheus-stack.
"""
