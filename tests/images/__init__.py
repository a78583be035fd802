"""Tests that build and run the container images. This is a package so that its `conftest` has a distinct name."""
