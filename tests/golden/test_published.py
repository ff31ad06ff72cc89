"""The whole output of `fairtrial studies published NAME`, letter by letter.

After a wanted change: FAIRTRIAL_REGOLD=1 pytest tests/golden/test_published.py, then read the difference.
"""

import os
from pathlib import Path

import pytest

from fairtrial.analyse import publications
from fairtrial.cli import studies

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
    assert any("  ci, published  " in line for line in printed.splitlines()), "sizes that run anywhere"
