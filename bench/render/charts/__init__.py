"""Charts for reports and pages, one module for each kind. Each module has a `draw` function that returns an SVG."""
