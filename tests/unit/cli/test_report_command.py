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
        found = json.loads((real_copy / "report" / "report.json").read_text(encoding="utf-8"))["analysis"]
        assert (found["contrast"], found["levels"]) == (other, plan["factors"][other])
        done = here.fairtrial("report", real_copy, "--arm", "disk", code=2)
    assert f"no factor `disk`; factors: {', '.join(plan['factors'])}" in done.stderr
    assert "hint: " in done.stderr
