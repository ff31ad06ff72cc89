"""`fairtrial studies` as installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import desk

GOLDEN = Path(__file__).parents[2] / "golden"


def test_ready_studies_and_publications_are_listed() -> None:
    with desk() as here:
        studies, *lacks, publications = here.fairtrial("studies").stdout.split("\n\n")
    names, published = ([line.split()[0] for line in part.splitlines()[1:]] for part in (studies, publications))
    ready = [
        "file-engines",
        "innodb-adaptive-purge",
        "lock-kinds",
        "mariadb-fast-mutex",
        "mariadb-oltp",
        "mariadb-script",
        "mglru-fio-pmem",
        "mglru-mariadb-tpcc",
        "sqlite-highest-rate",
        "sqlite-wal",
        "tpcc-pmem-native",
        "tpcc-pmem",
    ]
    assert names == ["study", *ready]
    assert published == ["mariadb-fast-mutex", "mglru-fio-pmem", "mglru-mariadb-tpcc"]
    assert all("ci, published" in line for line in studies.splitlines() if line.startswith("  sqlite"))
    # A machine that can run everything has nothing to say there.
    assert all(part.startswith("what the others lack") for part in lacks)


@pytest.mark.parametrize("name", ["mariadb-fast-mutex", "mglru-fio-pmem", "mglru-mariadb-tpcc"])
def test_a_publication_is_printed_whole(name: str) -> None:
    with desk() as here:
        printed = here.fairtrial("studies", "published", name).stdout
    assert printed == (GOLDEN / f"published-{name}.txt").read_text(encoding="utf-8")


def test_an_unknown_publication_is_refused_with_the_known_ones() -> None:
    with desk() as here:
        done = here.fairtrial("studies", "published", "mglru", code=2)
    assert "mglru-fio-pmem" in done.stderr
    assert "hint: " in done.stderr
    assert done.stdout == ""
