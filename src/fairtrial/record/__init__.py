"""The record on disk: the only contract between running and analysing."""

from fairtrial.record.reader import Record, read, verify_hashes
from fairtrial.record.writer import Writer, create, resume

__all__ = ["Record", "Writer", "create", "read", "resume", "verify_hashes"]
