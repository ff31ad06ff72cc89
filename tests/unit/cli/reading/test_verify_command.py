"""`fairtrial verify` as installed, on a real record and on what is none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import desk

from fairtrial.cli.reading import verify
from fairtrial.errors import RecordError
from fairtrial.record import read, verify_hashes
from fairtrial.verify import recompute


def test_a_record_as_written_is_fine(real_run: Path) -> None:
    with desk() as here:
        done = here.fairtrial("verify", real_run)
    assert "every reported number recomputed" in done.stdout
    assert done.stderr == ""


def test_a_changed_byte_is_a_finding_that_names_the_file(real_copy: Path) -> None:
    changed = min((real_copy / "trials").glob("*/trial.json"))
    changed.write_bytes(changed.read_bytes() + b" ")
    with desk() as here:
        done = here.fairtrial("verify", real_copy, code=1)
    assert f"{changed.parent.name}/trial.json" in done.stdout
    assert f"1 mismatch in {real_copy}" in done.stdout


@pytest.mark.parametrize("command", ["verify", "report"])
def test_what_is_no_record_is_refused(command: str) -> None:
    with desk() as here:
        for name in ("state", "absent"):
            done = here.fairtrial(command, name, code=3)
            assert "\nhint: " in done.stderr
            assert done.stdout == ""


@pytest.mark.parametrize("name", ["report.txt", "report.html", "raw_data.csv", "raw_data.r"])
def test_a_figure_changed_in_a_printed_report_is_found(real_copy: Path, name: str) -> None:
    path = real_copy / "report" / name
    text = path.read_text(encoding="utf-8")
    digit = next(digit for digit in "123456789" if digit in text)
    path.write_text(text.replace(digit, "0", 1), encoding="utf-8")
    with desk() as here:
        done = here.fairtrial("verify", real_copy, code=1)
    assert f"report/{name}: does not match report.json" in done.stdout


@pytest.mark.parametrize("directory", ["report", "report/by-users"])
def test_a_printed_report_without_its_numbers_is_found(real_copy: Path, directory: str) -> None:
    whole = real_copy / directory
    whole.mkdir(exist_ok=True)
    (whole / "report.json").unlink(missing_ok=True)
    (whole / "report.txt").write_text("wal is 900 % faster\n", encoding="utf-8")
    (found,) = recompute(read(real_copy))
    assert found == f"{directory}/report.json: missing; write it again with `fairtrial report`"


def _text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _sparse(path: Path) -> None:
    os.truncate(path, 1 << 40)  # takes no room


@pytest.mark.parametrize("change", [_text, _directory, _sparse])
@pytest.mark.parametrize("name", ["report/report.txt", "places.json"])
def test_what_stands_where_a_file_was_is_a_mismatch_and_is_not_read_whole(
    real_copy: Path, name: str, change: Callable[[Path], None]
) -> None:
    change(real_copy / name)
    found = read(real_copy)
    (said,) = verify_hashes(found) or recompute(found)
    assert said.startswith((f"{name}: does not match report.json", f"{name}: changed since it was written"))


def test_a_directory_in_the_stead_of_a_trials_file_is_a_mismatch(real_copy: Path) -> None:
    trial = min((real_copy / "trials").iterdir())
    _directory(trial / "result.json")
    assert verify_hashes(read(real_copy)) == [f"trials/{trial.name}/result.json: not a regular file"]


def test_a_figure_changed_in_the_report_of_another_factor_is_found(real_copy: Path) -> None:
    plan = json.loads((real_copy / "plan.json").read_text(encoding="utf-8"))
    other = next(name for name in plan["factors"] if name != plan["arm"])
    with desk() as here:
        here.fairtrial("report", real_copy, "--arm", other)
        here.fairtrial("verify", real_copy)
        path = real_copy / "report" / f"by-{other}" / "report.json"
        path.write_text(path.read_text(encoding="utf-8").replace('"n": ', '"n": 1', 1), encoding="utf-8")
        done = here.fairtrial("verify", real_copy, code=1)
    assert f"report/by-{other}/report.json: " in done.stdout


def test_a_trial_that_the_journal_does_not_know_is_named(real_copy: Path) -> None:
    (real_copy / "trials" / "ghost").mkdir()
    with desk() as here:
        done = here.fairtrial("verify", real_copy, code=1)
    assert "trials/ghost: not in the journal" in done.stdout


@pytest.mark.parametrize("name", [verify.TUNING, verify.BISECTION])
def test_a_link_in_a_search_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}")
    (tmp_path / "blocks").symlink_to("/etc")
    with pytest.raises(RecordError, match="blocks is a symbolic link"):
        verify.verify(tmp_path)
