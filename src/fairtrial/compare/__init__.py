"""Commands compared at the command line: compiled to a study, tried out, and shown. The study runs as any other.

Owns what `fairtrial compare` adds to a run. It must not know how options are typed or where results are printed.
"""
