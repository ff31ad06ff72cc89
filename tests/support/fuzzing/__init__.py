"""Fuzzing of every reader of foreign bytes in Python: mutations of real files, a judge, a process to judge in, a table.

`python -m support.fuzzing TARGET SECONDS SEED` (with `tests` on PYTHONPATH) fuzzes one target, or all that `all` names.
"""
