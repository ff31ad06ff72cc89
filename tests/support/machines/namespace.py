"""A second host on this machine: a network namespace with an address of its own, joined to this one by a wire."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from support.machines.machine import number_of_process

IP = shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
_NUMBERS = itertools.count()
_EACH = 100  # networks of a process of tests, again and again: pytest's workers make theirs at the same time


@dataclass(frozen=True)
class Namespace:
    """The other side: its name, its address, and this side's as it sees it."""

    name: str
    address: str
    ours: str

    def wire(self, state: str) -> None:
        """Takes the wire `down`, or `up` again: nothing comes through, and nobody is told."""
        _ip("-n", self.name, "link", "set", "eth0", state)

    @property
    def within(self) -> tuple[str, ...]:
        """The first words of a command that is to run in it."""
        return (str(IP), "netns", "exec", self.name)


def refused() -> str:
    """Why this machine makes no namespaces; empty if it does."""
    if IP is None:
        return "no ip: install iproute2"
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    name = f"ft-try-{os.getpid()}"
    made = subprocess.run([IP, "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return f"network namespaces are refused: {made.stderr.strip()}"
    wire = [IP, "link", "add", f"fy{os.getpid()}", "type", "veth", "peer", "name", "eth0", "netns", name]
    joined = subprocess.run(wire, capture_output=True, text=True, check=False)
    subprocess.run([IP, "netns", "delete", name], check=True)  # its end of a wire takes ours away
    return "" if joined.returncode == 0 else f"veth devices are refused: {joined.stderr.strip()}"


@contextmanager
def namespace() -> Iterator[Namespace]:
    """Makes one for a test and takes it away, with whatever still runs in it."""
    number = number_of_process("networks", below=160) * _EACH + next(_NUMBERS) % _EACH
    found = Namespace(f"ft-{os.getpid()}-{number}", *_addresses(number))
    device = f"fv{os.getpid()}-{number % _EACH}"[:15]  # IFNAMSIZ
    _ip("netns", "add", found.name)
    their_end = f"02:00:00:00:{number // 256:02x}:{number % 256:02x}"  # given by an administrator (IEEE 802)
    try:
        peer = ("peer", "name", "eth0", "address", their_end, "netns", found.name)
        _ip("link", "add", device, "type", "veth", *peer)
        _ip("address", "add", f"{found.ours}/30", "dev", device)
        _ip("link", "set", device, "up")
        _ip("-n", found.name, "address", "add", f"{found.address}/30", "dev", "eth0")
        for own in ("eth0", "lo"):
            _ip("-n", found.name, "link", "set", own, "up")
        # Known for good: one that is asked for in vain makes the other side unreachable after three seconds (arp(7)).
        _ip("neighbour", "replace", found.address, "lladdr", their_end, "dev", device, "nud", "permanent")
        yield found
    finally:
        _ip("netns", "delete", found.name)


def _addresses(number: int) -> tuple[str, str]:
    """Theirs and ours: a network of four addresses of those that are for tests of devices (RFC 2544)."""
    first = (number % 16_384) * 4
    return tuple(f"198.18.{first // 256}.{first % 256 + host}" for host in (2, 1))  # type: ignore[return-value]


def _ip(*words: str) -> None:
    assert IP is not None
    subprocess.run([IP, *words], check=True, capture_output=True)
