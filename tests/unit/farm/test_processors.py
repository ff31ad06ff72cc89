"""Which NUMA nodes this machine has, from a tree as the kernel makes it."""

from __future__ import annotations

from pathlib import Path

from fairtrial.farm.processors import halves, own_nodes


def test_nodes_have_their_processors(tmp_path: Path) -> None:
    for node, text in (("node0", "0-2,8\n"), ("node1", "4-6\n"), ("node2", "\n")):
        (tmp_path / node).mkdir()
        (tmp_path / node / "cpulist").write_text(text)
    assert own_nodes(tmp_path) == {"0": [0, 1, 2, 8], "1": [4, 5, 6], "2": []}
    assert own_nodes(tmp_path / "none") == {}


def test_halves_keep_to_nodes_where_there_are_several(tmp_path: Path) -> None:
    nodes = {"0": [0, 2], "1": [1, 3]}
    assert halves({0, 1, 2, 3}, nodes=nodes, topology=tmp_path) == ((0, 2), (1, 3))
