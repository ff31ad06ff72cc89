"""A study of two versions, from a study of a history."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial import study as language
from fairtrial.bisect.compiling import Pair, built, read, study_text
from fairtrial.bisect.models import Answered, Bisection, Confirmed, FoundChange, Gap, Measured, Version
from fairtrial.bisect.reading import result
from fairtrial.bisect.wording import render
from fairtrial.catalogue import catalogue
from fairtrial.errors import RecordError

STUDY = """\
study: history
system: {command: {}}
workload: {command: {run: 'sleep 0.1', timeout: 9s}}
factors:
  version:
    '6.1': {workload: {command: {run: sleep 0.2}}}
    '6.10': {workload: {command: {run: sleep 0.3}}}
    '6.11': {workload: {command: {run: sleep 0.4}}}
  size: {small: {}, large: {workload: {command: {timeout: 99s}}}}
arm: version
also_compare: size
expect: {large: {elapsed_s: '>= 0'}, small: {elapsed_s: '>= 0'}}
trials: {blocks: 12, stop: sequential, margin: 3 %, seed: 4}
metrics: {primary: elapsed_s}
"""


def merged(tmp_path: Path, text: str = STUDY) -> dict[str, object]:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    return read(language.dump(language.load(path, catalogue=catalogue())))


def test_a_pair_keeps_the_study_but_for_its_arms_and_number_of_blocks(tmp_path: Path) -> None:
    complete = merged(tmp_path)
    levels = complete["factors"]["version"]  # type: ignore[index]
    pair = Pair("version", {name: levels[name] for name in ("6.1", "6.10")}, blocks=1, seed=77, question="?")
    path = tmp_path / "pair.yaml"
    path.write_text(study_text(complete, pair, pinned={"size": "large"}))
    study = language.load(path, catalogue=catalogue())
    assert study.arm.level_names == ("6.1", "6.10")
    assert [factor.level_names for factor in study.conditions] == [("large",)]
    assert (study.trials.blocks, study.trials.seed, study.trials.stop) == (1, 77, "fixed")
    assert study.trials.margin == 0.03
    assert [each.level for each in study.expectations] == ["large"]
    trial = study.resolve({"version": "6.10", "size": "large"})
    assert trial.workload.root["command"] | {"run": "sleep 0.3", "timeout": 99.0} == trial.workload.root["command"]


def test_a_build_stands_wherever_the_study_names_it_and_nowhere_else() -> None:
    study = {
        "system": {"service": {"run": "{build}/server --port {port}", "environment": {"A": "b"}}},
        "workload": {"command": {"run": "load", "exit_codes": [0], "list": ["x", "{build}"]}},
        "factors": {"f": {"l": "{build}"}},
    }
    assert built(study, "/b/1") == {
        "system": {"service": {"run": "/b/1/server --port {port}"}},
        "workload": {"command": {"list": ["x", "/b/1"]}},
    }
    assert built({"workload": {"command": {"run": "load"}}}, "/b/1") == {}


def test_the_text_names_the_change_what_was_left_out_and_what_it_cost() -> None:
    versions = [Version(name=f"v{number}", subject=f"change {number}") for number in range(5)]
    question = Bisection(
        fairtrial_version="0",
        study="history",
        over="commit",
        versions=versions,
        metric="elapsed_s",
        unit="s",
        better="lower",
        seed=1,
        margin=0.02,
        blocks=400,
    )
    change = FoundChange(after=1, at=3, probability=0.984, ratio=1.05)
    events = [
        Measured(number=1, version=4, log_ratios=[0.05, 0.04, 0.06, 0.05], seconds=2.0),
        Gap(version=2, reason="`make` ended with code 2"),
        Measured(number=2, version=3, log_ratios=[0.05], seconds=2.0),
        Answered(outcome="one_change", changes=[change]),
    ]
    found = result(question, events)
    said = render(found)
    assert "one change: one of 2 versions, from v2 (change 2) to v3 (change 3), elapsed_s +5.0 %" in said
    assert "left out: v2: `make` ended with code 2" in said
    assert "5 blocks of two trials, 4 of them of the two ends, in 10 s" in said
    narrow = {"ratio": 1.00009, "low": 1.00008, "high": 1.0001}
    confirmed = Confirmed(number=1, after=1, at=3, n=9, verdict="slower", agrees=True, **narrow)
    versions_found = [each.model_copy(update=narrow) for each in found.versions]
    said = render(found.model_copy(update={"versions": versions_found, "confirmations": [confirmed]}))
    assert "ratio 1.00009 (1.00008 – 1.00010), slower" in said
    assert "1.00009  1.00008 – 1.00010" in said
    for wrong in (events[2:], [*events[:2], Measured(number=2, version=2, log_ratios=[0.1], seconds=2.0)]):
        with pytest.raises(RecordError, match="without the end of the history, or one that is a gap"):
            result(question, wrong)
