"""Tuning: a search that proposes values of options, and a paired comparison whose verdict alone is a claim.

Owns the loop over runs (each proposal is a block against the default, each block a run with a record of its own), its
journal, and what is made of them. It must not know how a trial runs, nor how a verdict comes about.
"""
