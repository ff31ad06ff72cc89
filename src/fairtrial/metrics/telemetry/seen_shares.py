"""How much of what a server reads and writes the block layer sees: its bytes over the server's own.

Near 1 where every byte passes it, above 1 where others do too (a binary log, a file system's own), near 0 with DAX and
with file systems in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairtrial.study.catalogue import MetricDefinition

PAIRS: Final = {  # what disks counted, and what the server did
    "disk_read_share": ("disk_read_bytes", "server_data_read_bytes"),
    "disk_written_share": ("disk_written_bytes", "server_data_written_bytes"),
}
LABELS: Final = {
    "disk_read_share": "block layer's share of the server's reads",
    "disk_written_share": "block layer's share of the server's writes",
}


def compute(values: Mapping[str, float]) -> dict[str, float]:
    """The shares that a trial's telemetry metrics allow; none where the server moved nothing."""
    return {
        name: values[disks] / values[server]
        for name, (disks, server) in PAIRS.items()
        if disks in values and values.get(server, 0.0) > 0
    }


DEFINITIONS: Final[dict[str, MetricDefinition]] = {
    name: MetricDefinition(
        name=name,
        label=LABELS[name],
        unit="share",
        better="higher",
        kind="count",
        source=f"telemetry-server.parquet and telemetry-disks.parquet: {disks} over {server}; higher is more that is "
        "seen, not more or less work",
    )
    for name, (disks, server) in PAIRS.items()
}
