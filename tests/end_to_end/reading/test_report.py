"""`fairtrial report` and `fairtrial verify` on a real record: both contrasts, R, and what a changed record gets."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Desk
from support.real_record import adjust_hash
from support.skips import require

TRIAL = "contended.b01.delete"
R_TOLERANCE = 1e-7  # R prints what it computed to 10 digits


def analysis_of(report: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((report / "report.json").read_bytes())["analysis"]
    return found


class References(HTMLParser):
    """Whatever an element would fetch or lead to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        fetching = ("src", "href", "action", "srcset", "data", "poster", "background", "formaction")
        self.found += [value or "" for name, value in attrs if name in fetching]


@pytest.mark.servers
@pytest.mark.parametrize(("contrast", "place"), [("journal", "report"), ("users", "report/by-users")])
def test_r_computes_the_reports_figures_from_the_raw_data_alone(
    real_copy: Path, here: Desk, *, contrast: str, place: str
) -> None:
    require("Rscript")
    here.fairtrial("report", real_copy, "--arm", contrast)
    script = real_copy / place / "raw_data.r"
    alone = here.directory / script.name  # R gets the script and nothing else of the record
    alone.write_bytes(script.read_bytes())
    ran = subprocess.run(["Rscript", "--vanilla", alone], capture_output=True, text=True, check=True, cwd=alone.parent)
    compared, interactions, *_ = ran.stdout.split("\n\n")
    rows = {
        (row["metric"], row["cell"], row["arm"]): row for row in csv.DictReader(io.StringIO(compared), delimiter="\t")
    }
    assert interactions.startswith("metric\tarm\tfactors\t")
    analysis = analysis_of(real_copy / place)
    assert analysis["contrast"] == contrast
    compared = [one for cell in analysis["cells"] for found in cell["comparisons"].values() for one in found]
    assert len(rows) == len(compared) == 2 * 3
    for one in compared:
        row = rows[one["metric"], one["cell"], one["arm"]]
        for column, expected in {
            "n": one["n"],
            "ratio": one["ratio"]["estimate"],
            "ratio_low": one["ratio"]["low"],
            "ratio_high": one["ratio"]["high"],
            "p": one["p"],
            "p_adjusted": one["p_adjusted"],
            "difference": one["difference"]["estimate"],
            "difference_low": one["difference"]["low"],
            "difference_high": one["difference"]["high"],
        }.items():
            if expected is None:
                assert row[column] == "NA", (one["metric"], column)
            else:
                assert float(row[column]) == pytest.approx(expected, rel=R_TOLERANCE), (one["metric"], column)


def test_another_contrast_exchanges_arms_and_cells_and_keeps_every_trial(real_copy: Path, here: Desk) -> None:
    done = here.fairtrial("report", real_copy, "--arm", "users")
    first, second = analysis_of(real_copy / "report"), analysis_of(real_copy / "report" / "by-users")
    assert (first["contrast"], second["contrast"]) == ("journal", "users")
    assert second["levels"] == ["alone", "contended"]
    assert [cell["levels"] for cell in second["cells"]] == [{"journal": "delete"}, {"journal": "wal"}]

    def values(analysis: dict[str, Any]) -> dict[tuple[str, str], list[float]]:
        found = {}
        for cell in analysis["cells"]:
            for summary in cell["summaries"]["throughput_tpm"]:
                levels = {*cell["levels"].values(), summary["arm"]}
                found[" ".join(sorted(levels)), "throughput_tpm"] = sorted(summary["values"])
        return found

    assert values(first) == values(second)
    assert re.search(r"(?m)^journal +alone \(baseline\) +contended +ratio", done.stdout)
    here.fairtrial("verify", real_copy)


def test_a_factor_that_the_study_does_not_have_is_the_users_mistake(real_copy: Path, here: Desk) -> None:
    before = (real_copy / "report" / "report.json").read_bytes()
    done = here.fairtrial("report", real_copy, "--arm", "jurnal", code=2)
    assert "jurnal" in done.stderr
    assert "journal" in done.stderr
    assert (real_copy / "report" / "report.json").read_bytes() == before


def test_a_deleted_report_comes_back_from_the_record_alone_byte_for_byte(real_copy: Path, here: Desk) -> None:
    def files() -> dict[Path, bytes]:
        found = sorted((real_copy / "report").rglob("*"))
        return {path.relative_to(real_copy): path.read_bytes() for path in found if path.is_file()}

    wanted = files()
    for path in sorted((real_copy / "report").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    here.fairtrial("report", real_copy)
    found = files()
    assert list(found) == list(wanted)
    assert [name for name, content in found.items() if content != wanted[name]] == []


def test_the_page_leads_nowhere_and_names_verdicts_and_trials(real_run: Path) -> None:
    html = (real_run / "report" / "report.html").read_text(encoding="utf-8")
    assert [found for found in References(html).found if not found.startswith("#")] == []
    assert not re.search(r"@import|url\(", html.split("</style>", maxsplit=1)[0])
    assert re.search(r"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'", html)
    visible = re.sub(r"(?s)<script.*?</script>|<style.*?</style>", "", html)
    for trial in (real_run / "trials").iterdir():
        assert trial.name in visible
    for cell in analysis_of(real_run / "report")["cells"]:
        for (comparison,) in cell["comparisons"].values():
            assert comparison["verdict"] in visible


def test_verify_counts_what_it_read_and_finds_nothing(real_run: Path, here: Desk) -> None:
    done = here.fairtrial("verify", real_run)
    files = sum(1 for path in (real_run / "trials").rglob("*") if path.is_file())
    assert f"12 trials, {files} files unchanged" in done.stdout


@pytest.mark.parametrize("hashed", [False, True], ids=["changed", "changed with its hash"])
def test_verify_finds_a_changed_count_whether_or_not_the_hash_was_put_right(
    real_copy: Path, here: Desk, *, hashed: bool
) -> None:
    path = real_copy / "trials" / TRIAL / "result.json"
    content = json.loads(path.read_bytes())
    content["transactions"]["new_order"]["committed"] += 1
    path.write_text(json.dumps(content), encoding="utf-8")
    if hashed:
        adjust_hash(real_copy, TRIAL, "result.json")
    done = here.fairtrial("verify", real_copy, code=1)
    assert f"trials/{TRIAL}/{'trial.json: throughput_nopm' if hashed else 'result.json: changed'}" in done.stdout


def test_verify_finds_a_trial_that_is_gone_and_a_file_that_came(real_copy: Path, here: Desk) -> None:
    (real_copy / "trials" / TRIAL / "latency.hlog").unlink()
    (real_copy / "trials" / TRIAL / "notes.txt").write_text("mine", encoding="utf-8")
    done = here.fairtrial("verify", real_copy, code=1)
    assert f"trials/{TRIAL}/latency.hlog: missing" in done.stdout
    assert f"trials/{TRIAL}/notes.txt: not in the journal" in done.stdout
    assert "2 mismatches" in done.stdout


def test_verify_of_a_report_that_is_older_than_the_record_says_so(real_copy: Path, here: Desk) -> None:
    """The report of the whole run, beside a journal that ends before the run did."""
    journal = real_copy / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]), encoding="utf-8")
    done = here.fairtrial("verify", real_copy, code=1)
    assert "report/report.json: finished is True but recomputed False" in done.stdout
    here.fairtrial("report", real_copy)
    here.fairtrial("verify", real_copy)
    assert "no verdict" in (real_copy / "report" / "report.txt").read_text(encoding="utf-8")
    assert analysis_of(real_copy / "report")["finished"] is False


@pytest.mark.parametrize("command", ["report", "verify"])
def test_a_directory_that_is_no_record_is_told(here: Desk, command: str) -> None:
    done = here.fairtrial(command, here.directory, code=3)
    assert "is not a record" in done.stderr
