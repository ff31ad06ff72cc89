"""What the lock library counted is kept, whatever else the server's user left beside it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fairtrial.run.trial.preloading import KEEP
from fairtrial.settings.locks import COUNTS


def test_only_files_of_the_server_are_kept_and_through_no_link(tmp_path: Path) -> None:
    server, kept = tmp_path / "server", tmp_path / "out" / "locks"
    (server / f"{COUNTS}.3").mkdir(parents=True)
    (server / f"{COUNTS}.1").write_text("counted")
    (server / f"{COUNTS}.2").symlink_to("/etc/shadow")
    subprocess.run(["sh", "-c", KEEP, "keep", str(server), str(kept), COUNTS], check=True)
    assert [(path.name, path.read_text()) for path in kept.iterdir()] == [(f"{COUNTS}.1", "counted")]
