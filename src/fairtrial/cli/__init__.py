"""The command line: one file per command; the only place that catches errors."""


def main() -> None:
    """Runs the command line."""
