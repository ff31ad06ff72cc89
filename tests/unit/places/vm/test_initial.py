"""The initial file system, read back by cpio(1) where there is one and by hand where the order counts."""

from __future__ import annotations

import io
import json
import stat
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.places.vm.initial import Archive, write
from fairtrial.protocol.generated import Boot, BootMount

BOOT = Boot(
    modules=[],
    root="root",
    mounts=[BootMount(source="/dev/vda", target="/var/lib/fairtrial", file_system="xfs")],
    swaps=[],
    state_directory="/var/lib/fairtrial",
    host="guest",
)


@dataclass(frozen=True)
class Entry:
    name: str
    mode: int
    data: bytes


def entries(archive: bytes) -> list[Entry]:
    """A second reading of the format: 110 bytes of header, name and data each padded to four."""
    found, at = [], 0
    while True:
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * index : at + 14 + 8 * index], 16) for index in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = archive[at + 110 : at + 110 + name_size - 1].decode()
        start = (at + 110 + name_size + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        found.append(Entry(name, mode, archive[start : start + size]))
        at = (start + size + 3) // 4 * 4


@given(st.lists(st.tuples(st.text("abc/", min_size=1, max_size=9), st.binary(max_size=40)), max_size=8))
def test_everything_comes_back_whatever_its_length(files: list[tuple[str, bytes]]) -> None:
    buffer = io.BytesIO()
    archive = Archive(buffer)
    for name, data in files:
        archive.add(name, stat.S_IFREG | 0o644, data)
    archive.end()
    assert [(entry.name, entry.data) for entry in entries(buffer.getvalue())] == files
    assert len(buffer.getvalue()) % 4 == 0


@pytest.fixture
def written(tmp_path: Path) -> list[Entry]:
    agent = tmp_path / "agent"
    agent.write_bytes(b"\x7fELF the agent")
    write(tmp_path / "initial", agent=agent, modules={"dm_mod": b"first", "dm_delay": b"second"}, boot=BOOT)
    return entries((tmp_path / "initial").read_bytes())


def test_parents_come_before_what_is_in_them(written: list[Entry]) -> None:
    names = [entry.name for entry in written]
    for name in names:
        parent = name.rpartition("/")[0]
        assert not parent or names.index(parent) < names.index(name)


def test_the_agent_may_be_executed_and_is_where_the_kernel_looks(written: list[Entry]) -> None:
    (agent,) = [entry for entry in written if entry.name == "fairtrial/agent"]
    assert agent.data == b"\x7fELF the agent"
    assert stat.S_ISREG(agent.mode)
    assert agent.mode & 0o111 == 0o111


def test_the_agent_is_told_the_modules_in_their_order(written: list[Entry]) -> None:
    (document,) = [entry for entry in written if entry.name == "fairtrial/boot.json"]
    told = json.loads(document.data)
    assert told["modules"] == ["/fairtrial/modules/dm_mod.ko", "/fairtrial/modules/dm_delay.ko"]
    files = {f"/{entry.name}": entry.data for entry in written}
    assert [files[path] for path in told["modules"]] == [b"first", b"second"]


def test_what_the_agent_is_told_else_is_what_was_given(written: list[Entry]) -> None:
    (document,) = [entry for entry in written if entry.name == "fairtrial/boot.json"]
    assert Boot.model_validate_json(document.data).model_copy(update={"modules": []}) == BOOT


def test_the_kernel_finds_the_directories_that_it_mounts_on(written: list[Entry]) -> None:
    directories = {entry.name for entry in written if stat.S_ISDIR(entry.mode)}
    assert {"dev", "proc", "sys"} <= directories
