"""fairtrial: controlled performance experiments, with verdicts a sceptic can re-run."""

__version__ = "0.1.0"
