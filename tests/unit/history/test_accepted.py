"""The ledger of accepted regressions: what it excuses at a gate, what it does not, and its mistakes."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from support.inference.series import noisy, series

from fairtrial.errors import InputError
from fairtrial.history import HistoryOptions, examine, gate_text
from fairtrial.history.accepted import applied, read
from fairtrial.history.gating import Gate, GateCheck, by_history

TODAY = date(2026, 11, 26)
ENTRY = "- {metric: tps, worse_by: 6 %, because: the new checksum, by: Ada, until: 2026-11-26}\n"


def gate(*, worse_by: float | None = 0.05, series: str = "head") -> Gate:
    check = GateCheck(series=series, metric="tps", status="failed", message="−5.0 %: slower", worse_by=worse_by)
    other = GateCheck(series="head", metric="p99", status="passed", message="+0.1 %")
    return Gate(against="base", checks=(check, other))


def judged(text: str, directory: Path, found: Gate | None = None, *, today: date = TODAY) -> Gate:
    file = directory / "fairtrial-accepted.yaml"
    file.write_text(text, encoding="utf-8")
    return applied(found or gate(), read(file), today=today)


def test_an_entry_excuses_what_is_no_worse_until_its_last_day(tmp_path: Path) -> None:
    found = judged(ENTRY, tmp_path)
    assert (found.outcome, found.checks[0].status) == ("passed", "accepted")
    assert found.checks[0].message == "−5.0 %: slower; accepted up to 6 % until 2026-11-26 by Ada: the new checksum"
    assert [(entry.at.rpartition(":")[2], entry.state) for entry in found.ledger] == [("1", "used")]


def test_an_entry_that_accepts_less_than_measured_excuses_nothing(tmp_path: Path) -> None:
    found = judged(ENTRY.replace("6 %", "4 %"), tmp_path)
    assert (found.outcome, found.checks[0].status, found.ledger[0].state) == ("failed", "failed", "exceeded")
    assert "more than the accepted 4 %" in found.checks[0].message


@pytest.mark.parametrize("worse_by", [0.060001, None])
def test_what_is_worse_by_more_or_by_no_share_is_not_excused(worse_by: float | None, tmp_path: Path) -> None:
    assert judged(ENTRY, tmp_path, gate(worse_by=worse_by)).outcome == "failed"


def test_shares_are_written_as_fractions_or_with_their_sign(tmp_path: Path) -> None:
    assert judged(ENTRY.replace("6 %", "0.06"), tmp_path).ledger[0].worse_by == pytest.approx(0.06)
    assert judged(ENTRY.replace("6 %", "600 %"), tmp_path).ledger[0].worse_by == pytest.approx(6)


def test_a_check_without_a_share_is_not_called_more_than_accepted(tmp_path: Path) -> None:
    lost = GateCheck(series="head", metric="tps", status="failed", message="head has no value")
    found = judged(ENTRY, tmp_path, Gate(against="base", checks=(lost,)))
    assert found.checks[0].message == "head has no value, which no entry excuses"
    assert (found.outcome, found.ledger[0].state) == ("failed", "unused")


def test_an_expired_entry_fails_though_nothing_is_worse(tmp_path: Path) -> None:
    steady = Gate(against="base", checks=gate().checks[1:])
    found = judged("\n" + ENTRY, tmp_path, steady, today=date(2026, 11, 27))
    assert (found.outcome, found.ledger[0].state) == ("failed", "expired")
    assert found.checks[-1].series == f"{tmp_path / 'fairtrial-accepted.yaml'}:2"
    assert "by Ada until 2026-11-26, which is over" in found.checks[-1].message
    assert judged(ENTRY, tmp_path, steady).outcome == "passed"
    assert judged(ENTRY, tmp_path, steady).ledger[0].state == "unused"


@pytest.mark.parametrize(("extra", "outcome"), [("series: head", "passed"), ("series: base", "failed")])
def test_an_entry_with_a_series_is_about_that_one(extra: str, outcome: str, tmp_path: Path) -> None:
    assert judged(ENTRY.replace("}", f", {extra}}}"), tmp_path).outcome == outcome
    assert judged(ENTRY.replace("tps", "p99"), tmp_path).outcome == "failed"


def test_the_most_generous_of_several_entries_counts(tmp_path: Path) -> None:
    found = judged(ENTRY.replace("6 %", "1 %") + ENTRY, tmp_path)
    assert [entry.state for entry in found.ledger] == ["exceeded", "used"]
    assert found.outcome == "passed"


def test_every_form_of_a_gate_has_the_whole_ledger(tmp_path: Path) -> None:
    found = judged(ENTRY.replace("the new checksum", "'`x` | <b>\n\n# y'"), tmp_path)
    text, table = "\n".join(gate_text.text(found)), gate_text.markdown(found)
    assert "ledger: tps worse by up to 6 % until 2026-11-26: used: `x` | <b> # y (by Ada," in " ".join(text.split())
    (line,) = [line for line in table.splitlines() if line.startswith("- ledger: ")]
    assert "`tps worse by up to 6 % until 2026-11-26`: used: `` `x` | <b> # y `` by `Ada` (" in line
    (suite,) = ET.fromstring(gate_text.junit(found)).findall("testsuite")
    assert (suite.findtext("system-out") or "").startswith("ledger: tps worse by up to 6 % until 2026-11-26: used: `x`")
    assert json.loads(found.model_dump_json())["ledger"][0]["until"] == "2026-11-26"
    assert "accepted" in gate_text.summary(found)


def test_a_series_of_a_history_is_excused_by_its_share(tmp_path: Path) -> None:
    values = noisy(20, seed=3)
    values[-1] *= 0.9
    found = by_history(examine([series(values)], options=HistoryOptions()))
    worse = found.checks[0].worse_by
    assert worse == pytest.approx(0.1, abs=0.02)
    entry = ENTRY.replace("tps", found.checks[0].metric)
    assert judged(entry, tmp_path, found).outcome == "failed"
    assert judged(entry.replace("6 %", "13 %"), tmp_path, found).outcome == "passed"


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        (ENTRY.replace("2026-11-26", "soon"), ":1:", "0.until: expected a day such as 2030-01-31, found 'soon'"),
        (ENTRY + ENTRY.replace("6 %", "-6 %"), ":2:", "1.worse_by: expected a share such as 2 % or 0.02, found '-6 %'"),
        (ENTRY.replace("6 %", "6"), ":1:", "0.worse_by: write a percentage with its sign: 6 %, not 6"),
        (ENTRY.replace("6 %", "'1.0'"), ":1:", "0.worse_by: write a percentage with its sign: 1.0 %, not 1.0"),
        (ENTRY.replace("6 %", "0 %"), ":1:", "0.worse_by: expected a value greater than 0"),
        (ENTRY.replace("by: Ada, ", ""), ":1:", "0.by: required but missing"),
        (ENTRY.replace("by: Ada", "by: ' '"), ":1:", "0.by: expected "),
        (ENTRY.replace("worse_by", "worse-by"), ":1:", "did you mean `worse_by`?"),
        ("metric: tps\n", ":1:", "expected a list, found a mapping"),
        ("- [\n", ":2:", "not YAML"),
    ],
)
def test_a_malformed_ledger_says_where_and_what(*, text: str, where: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        judged(text, tmp_path)
    assert refused.value.exit_code == 2
    assert f"fairtrial-accepted.yaml{where}" in str(refused.value)
    assert said in str(refused.value)
    assert "fairtrial schema" not in refused.value.hint


def test_a_ledger_that_is_not_there_is_an_error_and_an_empty_one_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "none.yaml")
    assert judged("# nothing yet\n", tmp_path).ledger == ()
