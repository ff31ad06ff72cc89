"""Settings that contradict each other are refused with the study, at the line of one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError

STUDY = """\
study: x
system: {sqlite: {}}
workload: {oltp: {duration: 1s}}
settings:
  swappiness: 10
  sysctl: {vm.dirty_bytes: 4096}
factors:
  memory:
    usual: {}
    changed:
      settings:
        sysctl:
          CHANGED
arm: memory
metrics: {primary: throughput_tps}
"""


def refused(directory: Path, text: str) -> list[str]:
    file = directory / "study.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        study.load(file, catalogue=catalogue())
    assert raised.value.exit_code == 2
    return [str(problem).replace(f"{directory}/", "") for problem in raised.value.problems]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ("vm.swappiness: 1", '"vm.swappiness": settings.swappiness and settings.sysctl both write /proc/sys/vm/swapp'),
        ("vm.dirty_ratio: 5", '"vm.dirty_ratio": two entries of settings.sysctl write /proc/sys/vm/dirty_bytes and '),
        ("vm/dirty_bytes: 8192", "vm/dirty_bytes: two entries of settings.sysctl both write /proc/sys/vm/dirty_byt"),
    ],
)
def test_two_settings_that_write_one_file_are_refused_with_the_study(tmp_path: Path, changed: str, told: str) -> None:
    (problem,) = refused(tmp_path, STUDY.replace("CHANGED", changed))
    assert problem.startswith(f"study.yaml:13:11: settings.sysctl.{told}")
    assert problem.endswith("with memory=changed (leave one of the two out)")


def test_settings_that_both_preload_are_refused_with_the_study(tmp_path: Path) -> None:
    text = STUDY.replace("CHANGED", "vm.dirty_writeback_centisecs: 1")
    both = "  locks: {kind: ticket}\n  environment: {LD_PRELOAD: other.so}\n"
    (problem,) = refused(tmp_path, text.replace("factors:\n", f"{both}factors:\n"))
    told = "settings.environment and settings.locks both set LD_PRELOAD (leave one of the two out)"
    assert problem == f"study.yaml:7:3: settings.locks: {told}"


def test_what_only_a_place_can_tell_is_left_to_the_run(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(
        STUDY.replace("CHANGED", 'vm.dirty_bytes: 8192\n        affinity: {server: "5000"}'), encoding="utf-8"
    )
    assert study.load(tmp_path / "study.yaml", catalogue=catalogue()).name == "x"
