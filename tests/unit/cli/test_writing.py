"""What stands in the way of a file that was asked for is told, and is no bug."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial.cli.writing import make_directory, write_text
from fairtrial.errors import PlaceError


def test_a_file_or_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    write_text(tmp_path / "file", "text")
    with pytest.raises(PlaceError, match=r"cannot write .*/absent/file: No such file or directory"):
        write_text(tmp_path / "absent" / "file", "text")
    with pytest.raises(PlaceError, match=r"cannot make .*/file/below: Not a directory"):
        make_directory(tmp_path / "file" / "below")
