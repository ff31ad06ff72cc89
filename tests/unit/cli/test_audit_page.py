"""The example of docs/audit.md prints what the page shows."""

import re
from pathlib import Path

import pytest

from fairtrial.cli import audit

PAGE = Path(__file__).parents[3] / "docs" / "audit.md"


def block(language: str, containing: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (text,) = [each for each in found if containing in each]
    return str(text)


def test_the_example_prints_what_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "claims.yaml").write_text(block("yaml", "claims:"), encoding="utf-8")
    (tmp_path / "raw.csv").write_text(block("csv", "allocator"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        audit.audit(Path("claims.yaml"), data=Path("raw.csv"), as_json=False)
    assert ended.value.code == 1
    command, _, shown = block("text", "fairtrial audit").partition("\n")
    assert command == "$ fairtrial audit claims.yaml --data raw.csv"
    assert capsys.readouterr().out == shown
