"""acknowledged.yaml."""

from pathlib import Path

import pytest

from fairtrial.errors import InputError
from fairtrial.record import acknowledgements
from fairtrial.record.acknowledgements import Acknowledgement


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / acknowledgements.NAME
    path.write_text(text, encoding="utf-8")
    return path


def test_entries_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, "- {run: r-12, because: new compiler, metric: tpm}\n- {run: r-14, because: new disk}\n")
    assert acknowledgements.read(path) == [
        Acknowledgement(run="r-12", because="new compiler", metric="tpm"),
        Acknowledgement(run="r-14", because="new disk"),
    ]


def test_an_empty_file_has_none(tmp_path: Path) -> None:
    assert acknowledgements.read(written(tmp_path, "# nothing yet\n")) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- {run: r-12}\n", "because: required but missing"),
        ("- {run: r-12, because: x, reason: y}\n", "unknown key"),
        ("run: r-12\n", "expected a list"),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        acknowledgements.read(written(tmp_path, text))
    assert expected in str(refused.value)
    assert ":1:" in str(refused.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        acknowledgements.read(tmp_path / "none.yaml")
