"""`fairtrial report` as installed, on a real record."""

from __future__ import annotations

import json
from pathlib import Path

from support.command_line import desk


def test_a_report_is_made_again_from_the_record_alone(real_copy: Path) -> None:
    before = (real_copy / "report" / "report.json").read_text(encoding="utf-8")
    for path in (real_copy / "report").iterdir():
        if path.is_file():
            path.unlink()
    with desk() as here:
        done = here.fairtrial("report", real_copy)
    assert f"report: {real_copy}/report/report.html" in done.stdout
    assert json.loads((real_copy / "report" / "report.json").read_text(encoding="utf-8")) == json.loads(before)


def test_another_factor_is_compared_and_an_unknown_one_refused(real_copy: Path) -> None:
    plan = json.loads((real_copy / "plan.json").read_text(encoding="utf-8"))
    other = next(name for name in plan["factors"] if name != plan["arm"])
    with desk() as here:
        here.fairtrial("report", real_copy, "--arm", other)
        own = real_copy / "report" / f"by-{other}"
        found = json.loads((own / "report.json").read_text(encoding="utf-8"))["analysis"]
        assert (found["contrast"], found["levels"]) == (other, plan["factors"][other])
        done = here.fairtrial("report", real_copy, "--arm", "disk", code=2)
    assert f"`disk` is not a factor of the study: expected one of {', '.join(plan['factors'])}" in done.stderr
    assert "hint: " in done.stderr


def test_factors_to_compare_too_get_a_report_of_their_own(real_copy: Path) -> None:
    path = real_copy / "plan.json"
    plan = json.loads(path.read_text(encoding="utf-8"))
    other = next(name for name in plan["factors"] if name != plan["arm"])
    path.write_text(json.dumps({**plan, "also_compare": [other]}), encoding="utf-8")
    with desk() as here:
        done = here.fairtrial("report", real_copy)
    assert f"also compared: {other}" in done.stdout
    own = json.loads((real_copy / "report" / f"by-{other}" / "report.json").read_text(encoding="utf-8"))["analysis"]
    study = json.loads((real_copy / "report" / "report.json").read_text(encoding="utf-8"))["analysis"]
    assert (own["contrast"], study["contrast"]) == (other, plan["arm"])
