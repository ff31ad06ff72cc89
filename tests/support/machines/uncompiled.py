"""A PATH for a user who has no compiler."""

from __future__ import annotations

import re
from pathlib import Path

COMPILERS = re.compile(r"(.*-)?(c\+\+|g\+\+|c89|c99|cc|gcc|cpp|clang|ld|as|tcc)(-\d.*)?|cargo|rustc|rustup|maturin|zig")


def without_compilers(directory: Path) -> str:
    """Fills a directory with links to Debian's programs but for those that compile or link, and gives its path."""
    directory.mkdir()
    for program in [*Path("/usr/bin").iterdir(), *Path("/usr/sbin").iterdir()]:
        link = directory / program.name
        if not COMPILERS.fullmatch(program.name) and not link.is_symlink():
            link.symlink_to(program)
    return str(directory)
