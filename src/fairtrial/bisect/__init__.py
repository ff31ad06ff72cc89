"""Bisection: which change of an ordered history made a metric move, found by paired blocks.

`posterior`, `asking`, `settling` and `deciding` are pure; `loop` alone runs, builds and writes.
"""
