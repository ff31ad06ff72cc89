from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from fairtrial.study.catalogue import MetricDefinition
from fairtrial.tune import picture
from fairtrial.tune.result import Confirmed, Flattery, MeasuredAgain, OptionFound, ProposalTried, TuneResult
from fairtrial.tune.showing import render

CLAIM = Confirmed(
    number=2,
    blocks=9,
    ratio=1.1,
    low=1.05,
    high=1.15,
    confidence=0.95,
    verdict="faster",
    guardrails={"lag": "kept"},
    doubts=2,
)
RESULT = TuneResult(
    study="known",
    question="Which?",
    objective="score",
    metric=MetricDefinition(name="score", unit="1", better="higher", kind="wall_clock", label="score"),
    seed=7,
    budget=20,
    finished=True,
    trials=38,
    options=(OptionFound(name="x", of="system.s.x", default=None, best="64M"),),
    proposals=(
        ProposalTried(number=1, values={"x": "8M"}, state="measured", ratio=0.9, reason=""),
        ProposalTried(number=2, values={"x": "64M"}, state="measured", ratio=1.21, reason=""),
        ProposalTried(number=3, values={"x": "9M"}, state="infeasible", ratio=1.3, reason="lag"),
        ProposalTried(number=4, values={"x": "1M"}, state="failed", ratio=None, reason="did not start"),
    ),
    again=(MeasuredAgain(number=2, blocks=2, ratio=1.12),),
    confirmed=CLAIM,
    note="",
    flattery=Flattery(number=2, promised=1.21, again=1.12, factor=1.1, low=1.05, high=1.15),
)


def text(result: TuneResult) -> str:
    console = Console(file=io.StringIO(), width=200, color_system=None)
    with console.capture() as captured:
        console.print(render(result))
    return captured.get()


def test_the_claim_is_the_confirmations_and_the_flattery_is_beside_it() -> None:
    shown = text(RESULT)
    assert "4 proposals · 1 infeasible · 1 failed · 38 trials · seed 7" in shown
    assert "claim: p002 against the default is faster: 1.100 times (1.050 – 1.150, 95 %)" in shown
    assert "promised +21.0 % (p002; measured again +12.0 %), the confirmation found +10.0 %" in shown
    assert "flattered by a factor of 1.100 (1.050 – 1.150)" in shown
    assert shown.count("no claim") == 2
    assert "2 doubts about the confirmation" in shown
    assert "the system's own" in shown


def test_a_ratio_has_as_many_decimals_as_its_interval() -> None:
    claim = CLAIM.model_copy(update={"ratio": 1.00009, "low": 1.00008, "high": 1.0001})
    flattery = Flattery(number=2, promised=1.21, again=1.12, factor=0.99992, low=0.9999, high=0.99994)
    shown = text(RESULT.model_copy(update={"confirmed": claim, "flattery": flattery}))
    assert "is faster: 1.00009 times (1.00008 – 1.00010, 95 %)" in shown
    assert "1.00009  1.00008 – 1.00010  faster" in shown
    assert "flattered by a factor of 0.99992 (0.99990 – 0.99994)" in shown


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"confirmed": CLAIM.model_copy(update={"verdict": "undecided"})}, "no claim: p002 against the default is und"),
        ({"confirmed": CLAIM.model_copy(update={"guardrails": {"lag": "breached"}})}, "but breaches a guardrail"),
        ({"confirmed": None, "note": "no proposal is better"}, "no claim: no proposal is better\nthe best block"),
        ({"confirmed": None, "finished": False}, "unfinished: nothing here is a claim"),
    ],
)
def test_anything_else_is_no_claim(change: dict[str, object], expected: str) -> None:
    shown = text(RESULT.model_copy(update=change))
    assert expected in shown
    assert "\nclaim: " not in shown


def test_a_claim_names_the_guardrails_that_are_not_shown_to_be_kept() -> None:
    rails = {"lag": "kept", "p95": "unclear", "heat": "none"}
    shown = text(RESULT.model_copy(update={"confirmed": CLAIM.model_copy(update={"guardrails": rails})}))
    assert "(1.050 – 1.150, 95 %); not shown to keep its guardrails: p95, heat\n" in shown
    assert "not shown" not in text(RESULT)


def test_values_are_called_confirmed_only_where_they_are() -> None:
    undecided = RESULT.model_copy(update={"confirmed": CLAIM.model_copy(update={"verdict": "undecided"})})
    assert ("confirmed" in text(RESULT), "confirmed" in text(undecided)) == (True, False)


BREACHED = CLAIM.model_copy(update={"guardrails": {"lag": "breached"}})


def test_values_that_breach_a_guardrail_are_confirmed_nowhere() -> None:
    broken = RESULT.model_copy(update={"confirmed": BREACHED})
    assert "confirmed" not in text(broken)
    title = "known: best block +21.0 %, confirmation +10.0 %, faster"
    assert picture.figure(broken).title == f"{title} but breaches a guardrail"
    assert picture.figure(RESULT).title == title


def test_a_confirmation_without_a_ratio_is_not_one_of_no_change() -> None:
    without = CLAIM.model_copy(update={"ratio": None, "low": None, "high": None})
    result = RESULT.model_copy(update={"confirmed": without})
    assert picture.figure(result).title == "known: best block +21.0 %, confirmation without a ratio, faster"
    assert "claim: p002 against the default is faster: no ratio exists (95 %)" in text(result)


def test_the_short_list_says_why_the_best_of_it_lost() -> None:
    best = MeasuredAgain(number=4, blocks=2, ratio=1.3, breaches=True)
    listed = RESULT.model_copy(update={"again": (best, *RESULT.again), "failed_again": (3,)})
    rows = {line.split()[2]: line for line in text(listed).splitlines() if line.startswith("measured again")}
    assert rows["p004"].rstrip().endswith("no claim: breaches a guardrail")
    assert rows["p003"].rstrip().endswith("no claim: failed")
    assert rows["p002"].rstrip().endswith("no claim")
    assert "breaches" not in listed.model_dump_json()


def test_the_figure_has_every_block_and_the_confirmation(tmp_path: Path) -> None:
    picture.write(RESULT, tmp_path)
    picture.write(RESULT, tmp_path)
    drawn = ET.fromstring((tmp_path / "figures" / "tune.svg").read_text(encoding="utf-8"))
    words = "".join(drawn.itertext())
    assert "known: best block +21.0 %, confirmation +10.0 %, faster" in words
    assert words.count("p002") == 2
