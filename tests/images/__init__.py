"""Tests of the container images: each is built and run for real. A package, so that its `conftest` has its own name."""
