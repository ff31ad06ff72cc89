"""Programs of a place that a kind runs: what `doctor` looks for, and how a missing one is installed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """One program.

    Attributes:
        name: by which a shell finds it.
        use: what runs it, as a sentence without its end.
        package: Debian's; its own name if not given.
        version: arguments at which it prints its version.
    """

    name: str
    use: str
    package: str = ""
    version: str = "--version"

    @property
    def install(self) -> str:
        """How to get it."""
        return f"`apt install {self.package or self.name}` at the place, as root"
