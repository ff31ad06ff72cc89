"""A trial's scalars from its raw files, and the frames behind them.

Every scalar of a record is recomputable from the trial's other files; `fairtrial verify` does so. What only one tool
leaves stands beside that tool, in `workloads`. It must not know how trials are compared.
"""
