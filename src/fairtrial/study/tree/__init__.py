"""A YAML document as a tree whose every value knows where it was written, and what is read from it."""
