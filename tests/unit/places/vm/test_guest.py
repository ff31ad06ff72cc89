"""What a guest's console says, however much that is."""

from __future__ import annotations

from pathlib import Path

from fairtrial.places.vm.guest import CONSOLE_BYTES, READY, console_end


def test_the_end_of_a_console_is_looked_at_and_no_more(tmp_path: Path) -> None:
    console = tmp_path / "console"
    assert console_end(console) == ""
    console.write_bytes(b"\xff" + READY.encode())
    assert console_end(console).endswith(READY)
    console.write_bytes(b"x" * 3 * CONSOLE_BYTES + b"panic\n")
    assert len(console_end(console)) == CONSOLE_BYTES
    assert console_end(console).endswith("panic\n")
