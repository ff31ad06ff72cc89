"""What the block layer saw of a server's own reading and writing."""

from __future__ import annotations

from fairtrial.metrics.telemetry import seen_shares


def test_bytes_of_disks_are_held_against_the_servers_own() -> None:
    values = {
        "disk_read_bytes": 30.0,
        "disk_written_bytes": 110.0,
        "server_data_read_bytes": 60.0,
        "server_data_written_bytes": 100.0,
    }
    assert seen_shares.compute(values) == {"disk_read_share": 0.5, "disk_written_share": 1.1}
    assert seen_shares.compute(values).keys() == seen_shares.DEFINITIONS.keys()


def test_without_a_disk_or_a_server_that_moves_anything_there_is_no_share() -> None:
    assert seen_shares.compute({"server_data_read_bytes": 60.0}) == {}
    assert seen_shares.compute({"disk_read_bytes": 30.0, "server_data_read_bytes": 0.0}) == {}
