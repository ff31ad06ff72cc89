"""What the options of `fairtrial analyse` and `fairtrial compare` become, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fairtrial.cli import compare
from fairtrial.cli.reading.analyse import AnalyseOptions
from fairtrial.compare.compiling import CompareOptions
from fairtrial.errors import InputError

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
)
RESULTS = compare.CompareOutputs(save=None, export=[], fail_if=[], output=None, runs=None)
WISHES = CompareOptions(("true", "true"))


def test_options_become_a_question() -> None:
    question = OPTIONS.question()
    assert question.by == ("memory", "users", "disk")
    assert (question.margin, question.confidence) == (0.03, 0.9)
    assert question.better == ("lower",)
    assert (question.block, question.cluster) == ("b", "run")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"margin": "much"}, "--margin: expected a share such as 2 % or 0.02, found 'much'"),
        ({"margin": "0"}, "--margin: expected a share above 0 % and below 100 %, found '0'"),
        ({"margin": "2"}, "--margin: expected a share above 0 % and below 100 %, found '2'"),
        ({"confidence": "40%"}, "--confidence: expected a share from 50 % to below 100 %, found '40%'"),
        ({"better": ["more"]}, "--better: expected higher or lower, found 'more'"),
        ({"better": ["hihger"]}, "did you mean `higher`?"),
    ],
)
def test_wrong_options_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        replace(OPTIONS, **changes).question()
    assert message in str(caught.value)


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
        ({"confidence": "sure"}, "--confidence: expected a share"),
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
