"""Charts for reports and pages."""
