"""What the options of `fairtrial analyse` and `fairtrial compare` become, and what they refuse."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fairtrial.cli import compare, main
from fairtrial.cli.reading.analyse import AnalyseOptions
from fairtrial.compare.compiling import CompareOptions
from fairtrial.errors import InputError
from fairtrial.imports import Numerals

OPTIONS = AnalyseOptions(
    values=["tpm"],
    arm="kernel",
    by=["memory, users", "disk"],
    block="b",
    cluster="run",
    time=None,
    baseline=None,
    better=["lower"],
    margin="3 %",
    confidence="0.9",
    decimal=",",
    thousands=".",
)
RESULTS = compare.CompareOutputs(save=None, export=[], fail_if=[], output=None, runs=None)
WISHES = CompareOptions(("true", "true"))


def test_options_become_a_question() -> None:
    question = OPTIONS.question()
    assert question.by == ("memory", "users", "disk")
    assert (question.margin, question.confidence) == (0.03, 0.9)
    assert question.better == ("lower",)
    assert replace(OPTIONS, better=["hits{a=b}=higher"]).question().better_of == {"hits{a=b}": "higher"}
    assert (question.block, question.cluster) == ("b", "run")
    assert question.numerals == Numerals(",", ".")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"margin": "much"}, "--margin: expected a share such as 2 % or 0.02, found 'much'"),
        ({"margin": "0"}, "--margin: expected a share above 0 % and below 100 %, found '0'"),
        ({"margin": "2"}, "--margin: expected a share above 0 % and below 100 %, found '2'"),
        ({"confidence": "40%"}, "--confidence: expected a share from 50 % to below 100 %, found '40%'"),
        ({"better": ["more"]}, "--better: expected higher or lower, found 'more'"),
        ({"better": ["tpm=more"]}, "--better: expected higher or lower, found 'more'"),
        ({"better": ["hihger"]}, "did you mean `higher`?"),
        ({"decimal": ";"}, "--decimal: expected a point or a comma, found ';'"),
        ({"thousands": ","}, "--thousands: expected one of . a space ' ’ _, found ','"),
        ({"thousands": "x"}, "--thousands: expected one of . a space ' ’ _, found 'x'"),
    ],
)
def test_wrong_options_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        replace(OPTIONS, **changes).question()
    assert message in str(caught.value)


OUTPUTS = Path(__file__).parents[2] / "imports" / "data"


def ended(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["fairtrial", "analyse", *arguments])
    with pytest.raises(SystemExit) as code:
        main()
    return int(code.value.code or 0)


def test_an_output_is_analysed_with_what_it_loses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, str(OUTPUTS / "hyperfine.json"), "--format", "hyperfine") == 0
    assert "the commands are not interleaved" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wrk.txt", "--format", "go"], "wrk.txt:1:1: expected the output of `go test -bench`, found no line of a"),
        (["wrk.txt", "--format", "wkr"], "--format: expected one of `fio`"),
        (["wrk.txt", "go.txt"], "wrk.txt: expected files of one kind"),
        (["jmh.json", "--format", "hyperfine"], "expected the file of `hyperfine --export-json`"),
    ],
)
def test_a_wrong_format_is_the_users_mistake(
    *, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(OUTPUTS)
    assert ended(monkeypatch, *arguments) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert message in said
    assert "hint: " in said


def test_a_table_of_a_colleague_is_read_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "werte.csv"
    rows = "".join(f"{arm};1.00{turn},5\n" for arm in ("alt", "neu") for turn in range(6))
    table.write_bytes(f"Größe;Durchsatz\n{rows}".encode("utf-16"))
    asked = ["--value", "Durchsatz", "--arm", "Größe", "--decimal", ",", "--thousands", ".", "--json"]
    assert ended(monkeypatch, str(table), *asked) == 0
    (cell,) = json.loads(capsys.readouterr().out)["analysis"]["cells"]
    assert cell["summaries"]["Durchsatz"][0]["values"] == [1000.5 + turn for turn in range(6)]


def typed(**changes: object) -> CompareOptions:
    given = {"timeout": "1min", "better": None, "names": (), "margin": "2%", "confidence": "95%"} | changes
    return compare.compare_options(["a", "b"], **given)


def test_options_become_wishes_where_the_user_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = typed(better="higher", warm_ups=0)
    assert (found.directory, found.timeout_s, found.better, found.warm_ups) == (str(tmp_path), 60.0, "higher", 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"timeout": "soon"}, "--timeout: expected a time"),
        ({"margin": "some"}, "--margin: expected a share"),
        ({"margin": "2"}, "--margin: expected a share above 0 % and below 100 %, found '2'"),
        ({"confidence": "sure"}, "--confidence: expected a share"),
        ({"confidence": "95"}, "--confidence: expected a share from 50 % to below 100 %, found '95'"),
        ({"better": "less"}, "--better: expected higher or lower"),
    ],
)
def test_wrong_wishes_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        typed(**changes)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fail_if": ["slow"]}, "--fail-if: unknown verdict `slow`"),
        ({"export": ["results.xml"]}, "--export: expected a name that ends in .csv, .json, .md, found `results.xml`"),
        ({"export": ["nowhere/results.csv"]}, "nowhere/results.csv: no directory nowhere"),
        ({"save": Path("nowhere/study.yaml")}, "nowhere/study.yaml: no directory nowhere"),
    ],
)
def test_results_that_could_go_nowhere_are_refused_before_a_command_is_started(
    changes: dict[str, object], message: str, tmp_path: Path, *, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    touching = replace(WISHES, commands=("touch started", "true"), directory=str(tmp_path))
    with pytest.raises(InputError) as caught:
        compare.compare(touching, replace(RESULTS, **changes))
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "started").exists()
