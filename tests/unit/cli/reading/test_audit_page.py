"""The examples of docs/guides/auditing.md print what the page shows."""

import re
from pathlib import Path

import pytest

from fairtrial.cli.reading import audit

PAGE = Path(__file__).parents[4] / "docs" / "guides" / "auditing.md"


def block(language: str, containing: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (text,) = [each for each in found if containing in each]
    return str(text)


@pytest.mark.parametrize(
    ("name", "title", "code"), [("claims.yaml", "Two allocators", 1), ("again.yaml", "A cache", 0)]
)
def test_an_example_prints_what_the_page_shows(
    name: str, title: str, code: int, *, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, columns = {"claims.yaml": ("raw.csv", "allocator,threads"), "again.yaml": ("again.csv", "cache,latency")}[
        name
    ]
    (tmp_path / name).write_text(block("yaml", f"title: {title}"), encoding="utf-8")
    (tmp_path / data).write_text(block("csv", columns), encoding="utf-8")
    ended = None
    try:
        audit.audit(tmp_path / name, data=tmp_path / data, as_json=False)
    except SystemExit as exited:
        ended = exited.code
    assert (ended or 0) == code
    command, _, shown = block("text", f"fairtrial audit {name}").partition("\n")
    assert command == f"$ fairtrial audit {name} --data {data}"
    assert capsys.readouterr().out == shown
