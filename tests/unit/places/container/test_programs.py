"""What an image must have: names alone say too little of a BusyBox."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from support.command_line import shell_program

from fairtrial.places.container import LACKING, NEEDED


def lacking(directory: Path) -> list[str]:
    argv = [str(shutil.which("sh")), "-c", LACKING, "sh", *NEEDED]
    done = subprocess.run(argv, env={"PATH": str(directory)}, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_programs_that_are_not_there_or_lack_options_are_named(tmp_path: Path) -> None:
    for name in NEEDED:
        (tmp_path / name).symlink_to(shutil.which(name) or "")
    assert lacking(tmp_path) == []
    (tmp_path / "tail").unlink()
    for name in ("rm", "find"):
        (tmp_path / name).unlink()
        shell_program(tmp_path / name, f"echo '{name}: unrecognized option' >&2\nexit 1")
    assert lacking(tmp_path) == ["tail", "GNU's rm", "GNU's find"]
