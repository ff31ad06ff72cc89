"""The physical floor of TPC-C: what the engine has said to the server, said again by a program that does nothing else.

The recording is made through a relay, so it is slower than what it is compared with; only its packets count. They name
orders and prepared statements by the numbers of their time, so `Replay.rewind` removes the orders since loading, and
the server gives up its cache of threads, whose statements' numbers go on from the connection before.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from load import Bench, timed
from private_mariadb import sql
from ratios import Run, of_floor

SOURCES = Path(__file__).parent / "floor"
LOADED_ORDERS = 3000  # per district (TPC-C 4.3.3.1)
# Through the relay the engine is slower than the floor will be, which must not come to its recording's end.
LONGER = 4
SETTLED_S = 0.5
ERRORS_AT_MOST = 0.01


@dataclass(frozen=True)
class Replay:
    """The programs, and the database that recordings are made and played in."""

    bench: Bench
    database: str

    def build(self) -> None:
        for name in ("record", "replay"):
            subprocess.run(
                ["cc", "-O2", "-o", str(self.bench.directory / name), str(SOURCES / f"{name}.c")], check=True
            )
        sql(self.bench.socket, "SET GLOBAL thread_cache_size = 0")

    def record(self, users: int, drive: Callable[[Bench], object]) -> Path:
        """Gives the directory of what `drive` said."""
        self.rewind()
        kept, relay = self.bench.directory / f"said-{users}", self.bench.directory / f"relay-{users}"
        kept.mkdir()
        command = [str(self.bench.directory / "record"), str(relay), str(self.bench.socket), str(kept)]
        with subprocess.Popen(command) as process:
            while not relay.exists() and process.poll() is None:
                time.sleep(SETTLED_S)
            drive(replace(self.bench, socket=relay, seconds=LONGER * self.bench.seconds))
            process.terminate()
        return kept

    def run(self, kept: Path) -> Run:
        """Raises SystemExit where more than a few statements failed: errors are cheaper than rows."""
        self.rewind()
        program = str(self.bench.directory / "replay")
        output, cpu_s = timed([program, str(self.bench.socket), str(self.bench.seconds), str(kept)])
        said = json.loads(output)
        if said["errors"] > ERRORS_AT_MOST * said["units"]:
            message = f"{said['errors']} of {said['units']} statements of the floor failed"
            raise SystemExit(message)
        return of_floor(output, cpu_s)

    def rewind(self) -> None:
        for table, column in {"orders": "o_id", "new_order": "no_o_id", "order_line": "ol_o_id"}.items():
            sql(self.bench.socket, f"DELETE FROM {self.database}.{table} WHERE {column} > {LOADED_ORDERS}")
        sql(self.bench.socket, f"UPDATE {self.database}.district SET d_next_o_id = {LOADED_ORDERS + 1}")
