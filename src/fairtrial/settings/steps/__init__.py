"""Building the steps and effects that settings share."""
