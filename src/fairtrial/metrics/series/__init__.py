"""A trial as series over time."""
