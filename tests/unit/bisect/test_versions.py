"""What a bisection is over, and where: levels as the command line names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial.bisect.versions import Request, asked
from fairtrial.errors import InputError

STUDY = """\
study: growth
system: {mariadb: {}}
workload: {oltp: {duration: 1s}}
factors:
  pages: {values: [0.25, 0.50, 1.00], of: system.mariadb.options.x}
  depth: {values: [2.00, 4.00], of: system.mariadb.options.y}
arm: pages
metrics: {primary: throughput_tps}
"""


def test_levels_of_numbers_are_named_in_any_way_to_write_them(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY, encoding="utf-8")
    question, _ = asked(Request(study, over="pages", first="1", last="0.50", at=["depth=4.00"]))
    assert [version.name for version in question.versions] == ["1.0", "0.5"]
    assert question.pinned == {"depth": "4.0"}
    assert question.alpha == pytest.approx(0.05)
    with pytest.raises(InputError, match=r"`0\.7` is not a level of pages"):
        asked(Request(study, over="pages", first="0.25", last="0.7"))
    with pytest.raises(InputError, match=r"`depth=8\.0` is not a level of another factor"):
        asked(Request(study, over="pages", first="0.25", last="1.0", at=["depth=8.0"]))
    strict = STUDY.replace("primary: throughput_tps", "primary: [throughput_tps, latency_ns_p99]")
    study.write_text(strict + "trials: {confidence: 99%}\n", encoding="utf-8")
    question, _ = asked(Request(study, over="pages", first="1", last="0.50", at=["depth=4.00"]))
    assert question.alpha == pytest.approx(0.005), "two metrics share it"
