"""The whole output of `fairtrial studies published NAME`, letter by letter.

After a wanted change: FAIRTRIAL_REGOLD=1 pytest tests/golden/test_published.py, then read the difference.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairtrial import audit as publications
from fairtrial.cli import doctor, studies
from fairtrial.errors import PlaceError

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", publications.names())
def test_the_whole_output(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    studies.published(name)
    printed = capsys.readouterr().out
    golden = HERE / f"published-{name}.txt"
    if os.environ.get("FAIRTRIAL_REGOLD"):
        golden.write_text(printed, encoding="utf-8")
    assert printed == golden.read_text(encoding="utf-8")


def test_the_list_names_every_study_and_publication(capsys: pytest.CaptureFixture[str]) -> None:
    studies.listing()
    printed = capsys.readouterr().out
    ready = {path.stem for path in Path(studies.__file__).parents[1].joinpath("studies").glob("*.yaml")}
    for name in [*publications.names(), *ready]:
        assert name in printed
    assert any("  ci, laptop, large  " in line for line in printed.splitlines()), "sizes that run anywhere"


def test_names_are_listed_where_the_machine_cannot_be_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def closed(*_place: object, **_options: object) -> Iterator[None]:
        raise PlaceError("no agent here", hint="build it")
        yield

    monkeypatch.setattr(doctor, "looked_at", closed)
    studies.listing()
    printed = capsys.readouterr()
    assert "sqlite-wal" in printed.out
    assert "Does SQLite's write-ahead log" in printed.out
    assert "mglru-fio-pmem" in printed.out.partition("published data")[2]
    assert "cannot determine what this machine can run: no agent here" in printed.err
