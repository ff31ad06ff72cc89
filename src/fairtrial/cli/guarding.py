"""Commands that open records: a file that ends its reader ends another process, and not the command."""

from __future__ import annotations


def begin() -> None:
    """Has another process read a record's files first; see `fairtrial.metrics.first_reader`."""
    from fairtrial.metrics import parquet

    parquet.begin_first_reader()
