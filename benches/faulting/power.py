"""What a disk may hold after a power cut: a model of what POSIX promises, and no more.

A file's bytes are safe once the file was synced, a name once its directory was. What was not synced may be there,
be lost, or be torn: of writes to a file and of changes to a directory any part may have reached the disk, in order or
out of it. So file systems may behave; most promise more.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar

from faulting.calls import Logged

Way = Literal["nothing", "prefix", "any", "all"]
WAYS: tuple[Way, ...] = ("nothing", "prefix", "any", "all")
DELETED = " (deleted)"  # what proc(5) says of a file without a name
FINISHED = b'"event":"trial_finished","trial":"'
T = TypeVar("T")


def kept(changes: Sequence[T], way: Way, chance: random.Random) -> list[T]:
    """Which changes that were not synced reached the disk."""
    if way == "nothing":
        return []
    if way == "prefix":
        return list(changes[: chance.randint(0, len(changes))])
    return [change for change in changes if way == "all" or chance.getrandbits(1)]


@dataclass
class File:
    """Its bytes as programs see them, those that are safe, and the writes since: offset and data, or a new length."""

    live: bytearray = field(default_factory=bytearray)
    safe: bytes = b""
    since: list[tuple[int, bytes | None]] = field(default_factory=list)

    def change(self, offset: int, data: bytes | None) -> None:
        """Writes, or cuts where there are no data."""
        _put(self.live, offset, data)
        self.since.append((offset, data))

    def sync(self) -> None:
        """All is safe."""
        self.safe, self.since = bytes(self.live), []

    def after_cut(self, way: Way, chance: random.Random) -> bytes:
        """Its bytes; the last write that got through may be torn."""
        content = bytearray(self.safe)
        reached = kept(self.since, way, chance)
        if reached and way != "all" and (data := reached[-1][1]):
            reached[-1] = reached[-1][0], data[: chance.randint(0, len(data))]
        for offset, data in reached:
            _put(content, offset, data)
        return bytes(content)


def _put(content: bytearray, offset: int, data: bytes | None) -> None:
    end = offset if data is None else offset + len(data)
    content.extend(bytes(max(0, end - len(content))))
    if data is None:
        del content[offset:]
    else:
        content[offset:end] = data


Change = dict[str, "File | Directory | None"]  # names that one call changed


@dataclass
class Directory:
    """Its names as programs see them, those that are safe, and the changes since."""

    live: dict[str, File | Directory] = field(default_factory=dict)
    safe: dict[str, File | Directory] = field(default_factory=dict)
    since: list[Change] = field(default_factory=list)

    def change(self, change: Change) -> None:
        """Names, renames or removes."""
        _name(self.live, change)
        self.since.append(change)

    def sync(self) -> None:
        """All is safe."""
        self.safe, self.since = dict(self.live), []

    def after_cut(self, way: Way, chance: random.Random) -> dict[str, File | Directory]:
        """Its names."""
        names = dict(self.safe)
        for change in kept(self.since, way, chance):
            _name(names, change)
        return names


def _name(names: dict[str, File | Directory], change: Change) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


@dataclass
class Disk:
    """A directory whose calls are carried out one after the other. `top`: it, which is there and safe."""

    top: PurePosixPath
    root: Directory = field(default_factory=Directory)

    def carry_out(self, calls: Iterable[Logged]) -> Disk:
        """Does what processes did."""
        for call in calls:
            self._do(call)
        return self

    def _do(self, call: Logged) -> None:
        if call.path.endswith(DELETED):
            return
        parent, name = self._parent(call.path)
        match call.kind:
            case "c":
                parent.change({name: File()})
            case "d":
                parent.change({name: Directory()})
            case "u":
                parent.change({name: None})
            case "r":
                node, (target, other) = parent.live[name], self._parent(call.other)
                if target is parent:
                    parent.change({name: None, other: node})
                else:
                    target.change({other: node})
                    parent.change({name: None})
            case "s":
                (self.root if PurePosixPath(call.path) == self.top else parent.live[name]).sync()
            case _:
                file = parent.live[name]
                assert isinstance(file, File)
                file.change(call.offset, call.data if call.kind == "w" else None)

    def _parent(self, path: str) -> tuple[Directory, str]:
        *parents, name = PurePosixPath(path).relative_to(self.top).parts or ("",)
        at = self.root
        for each in parents:
            node = at.live[each]
            assert isinstance(node, Directory)
            at = node
        return at, name

    def node(self, path: PurePosixPath) -> File | Directory | None:
        """What programs see at a path below the top."""
        at: File | Directory | None = self.root
        for part in path.relative_to(self.top).parts:
            at = at.live.get(part) if isinstance(at, Directory) else None
        return at

    def after_cut(self, target: Path, chance: random.Random) -> None:
        """Writes what the disk may hold if power fails now; in one way for all, or in one of its own for each."""
        one = chance.choice((None, *WAYS))
        _written(self.root, target, lambda: one or chance.choice(WAYS), chance=chance)


def reported(disk: Disk, journal: PurePosixPath) -> list[str]:
    """Trials that a journal calls finished, durably."""
    node = disk.node(journal)
    safe = node.safe if isinstance(node, File) else b""
    return [part.split(b'"', 1)[0].decode() for part in safe.split(FINISHED)[1:]]


def _written(of: Directory, target: Path, way: Callable[[], Way], *, chance: random.Random) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name, node in of.after_cut(way(), chance).items():
        if isinstance(node, File):
            (target / name).write_bytes(node.after_cut(way(), chance))
        else:
            _written(node, target / name, way, chance=chance)
