"""Programs that stand for others: a shell script each."""

from __future__ import annotations

from pathlib import Path


def shell_program(path: Path, script: str) -> Path:
    """A file that a shell runs; where its directory is not there, that is made, too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path
