"""Which files are meant, in which order, under which label."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from fairtrial.errors import InputError
from fairtrial.imports import ImportSource, sources


def read(*given: str, names: str | None = None) -> list[ImportSource]:
    return sources(given, names=names, standard_input=io.BytesIO(b"typed"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("run10.txt", "run2.txt", "run1.txt", ".hidden"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_a_folder_gives_its_files_by_number_not_by_letter(folder: Path) -> None:
    assert [Path(each.name).name for each in read(str(folder))] == ["run1.txt", "run2.txt", "run10.txt"]


def test_figures_that_are_no_digits_count_as_letters(tmp_path: Path) -> None:
    for name in ("run1²", "run2"):
        (tmp_path / name).write_text("")
    assert [Path(each.name).name for each in read(str(tmp_path))] == ["run1²", "run2"]


def test_a_label_covers_everything_its_pattern_matches_and_counts_it(folder: Path) -> None:
    found = read(f"base={folder}/run1*.txt", f"new={folder}/run2.txt")
    assert [(each.label, each.number, each.content) for each in found] == [
        ("base", 1, b"run1.txt"),
        ("base", 2, b"run10.txt"),
        ("new", 1, b"run2.txt"),
    ]


def test_a_label_given_twice_goes_on_counting(folder: Path) -> None:
    assert [each.number for each in read(f"a={folder}/run2.txt", f"a={folder}/run1.txt")] == [1, 2]


def test_a_file_whose_own_name_has_an_equals_sign_is_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x=y.csv").write_text("1")
    monkeypatch.chdir(tmp_path)
    assert [(each.name, each.label) for each in read("x=y.csv")] == [("x=y.csv", "")]


def test_a_dash_is_standard_input_with_a_label_too() -> None:
    assert [(each.name, each.label, each.content) for each in read("new=-")] == [("standard input", "new", b"typed")]


def test_names_of_files_become_fields(folder: Path) -> None:
    (folder / "base-low-3.json").write_text("{}")
    (found,) = read(str(folder / "base-low-3.json"), names="{kernel}-{memory}-{block}.json")
    assert found.fields == (("kernel", "base"), ("memory", "low"), ("block", "3"))


def test_fields_may_be_folders(folder: Path) -> None:
    (folder / "base").mkdir()
    (folder / "base" / "3.json").write_text("{}")
    (found,) = read(str(folder / "base"), names="{kernel}/{block}.json")
    assert found.fields == (("kernel", "base"), ("block", "3"))


@pytest.mark.parametrize(
    ("given", "names", "message"),
    [
        ("nothing.csv", None, "nothing.csv: no such file"),
        ("a=nothing*.csv", None, "nothing*.csv: no such file"),
        ("-", "{kernel}.json", "standard input: the name does not match"),
        ("-", "plain", "--names: expected a field in braces"),
        ("-", "{a}-{a}", "--names: field `a` appears twice"),
        ("a" * 300, None, "a" * 300 + ": cannot read the file: File name too long"),
    ],
)
def test_mistakes_name_what_was_typed(given: str, names: str | None, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(given, names=names)
    assert str(caught.value).startswith(message)


def test_an_empty_folder_is_no_data(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the directory holds no files"):
        read(str(tmp_path))


def test_no_file_counts_twice_in_a_label(folder: Path) -> None:
    (folder / "newest.txt").symlink_to("run10.txt")
    for given in ((f"{folder}/run2.txt", f"{folder}/run*.txt"), (f"a={folder}",), ("a=-", "b=-")):
        with pytest.raises(InputError, match="the file is named twice"):
            read(*given)
    assert len(read(f"a={folder}/run1.txt", f"b={folder}/run1.txt")) == 2


def test_a_name_that_fits_the_pattern_in_two_ways_is_refused(folder: Path) -> None:
    (folder / "mglru-tuned-1.txt").write_text("")
    with pytest.raises(InputError, match="several ways: arm `mglru`, block `tuned-1` or arm `mglru-tuned`, block `1`"):
        read(f"{folder}/mglru*", names="{arm}-{block}.txt")
    assert read(f"{folder}/mglru*", names="{arm}-tuned-{block}.txt")[0].fields == (("arm", "mglru"), ("block", "1"))
