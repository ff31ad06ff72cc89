"""What `trials.design` asks of a study, and refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fairtrial import study

Mistakes = Callable[..., list[str]]
Load = Callable[..., study.Study]

SCREENING = """\
study: screened
system: {mariadb: {}}
workload: {tpcc: {duration: 60s}}
factors:
  users: {few: {}, many: {workload: {tpcc: {virtual_users: 8}}}}
  scale: {small: {}, large: {workload: {tpcc: {warehouses: 2}}}}
  lru: {off: {settings: {lru_gen: off}}, on: {settings: {lru_gen: on}}}
trials: {design: plackett_burman}
metrics: {primary: throughput_tpm}
"""


def test_a_screening_has_no_arm_and_one_replicate(load: Load) -> None:
    loaded = load(SCREENING)
    assert (loaded.file.arm, loaded.trials.blocks) == (None, 1)
    assert load(SCREENING, overrides=["trials.blocks=3"]).trials.blocks == 3


def test_written_out_it_is_the_same(load: Load) -> None:
    loaded = load(SCREENING)
    assert load(study.dump(loaded)) == loaded


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("metrics:", "arm: lru\nmetrics:", ":9:1: arm: `trials.design: plackett_burman` screens all factors at once"),
        ("metrics:", "arm: lru\nmetrics:", "(leave `arm` out; `fairtrial screen RUN --confirm 3` compares"),
        ("metrics:", "also_compare: lru\nmetrics:", ":9:1: also_compare: `trials.design: plackett_burman` screens"),
        ("metrics:", "expect: {on: {cpu_user_share: '> 3'}}\nmetrics:", ":9:1: expect: `trials.design"),
        ("metrics:", "curve: {over: users, model: linear}\nmetrics:", ":9:1: curve: `trials.design"),
        ("_tpm}", "_tpm, covariates: time_since_boot_s}", "metrics.covariates: covariates compare the arms of a"),
        ("trials: {design: plackett_burman}\n", "", "arm: required but missing"),
        ("plackett_burman}", "plackett}", ":8:18: trials.design: expected 'plackett_burman', 'fractional'"),
        ("_burman}", "_burman, order: abba}", ":8:42: trials.order: `order: abba` does not go with `design: plack"),
        ("_burman}", "_burman, stop: sequential}", "trials.stop: `stop: sequential` does not go with `design"),
        ("_burman}", "_burman, resolution: 4}", "trials.resolution: has no effect without `design: fractional`"),
        ("plackett_burman}", "fractional, fold: true}", "trials.fold: has no effect without `design: plackett_burman`"),
        ("plackett_burman}", "definitive}", ":5:3: factors.users: `design: definitive` needs three levels (low, "),
        ("off}}, on", "off}}, half: {}, on", ":7:3: factors.lru: `design: plackett_burman` needs two levels"),
        ("large: {workload: {tpcc: {warehouses: 2}}}", "large: {}", "factors.scale.large: levels `small` and `large`"),
        ("virtual_users: 8", "virtual_users: 0", ":5:60: workload.tpcc.virtual_users: expected a value greater than "),
        ("virtual_users: 8", "virtual_users: 0", ", with users=many"),
        ("users: 8", "users: 8, warehouses: 3", "factors `users` and `scale` both set it: 3 in users.many"),
    ],
)
def test_one_wrong_line(mistakes: Mistakes, *, old: str, new: str, expected: str) -> None:
    assert old in SCREENING
    found = mistakes(SCREENING.replace(old, new, 1))
    assert any(expected in problem for problem in found), found


def test_too_few_factors(mistakes: Mistakes) -> None:
    text = "\n".join(line for line in SCREENING.splitlines() if "users:" not in line and "lru:" not in line)
    assert any("factors: `design: plackett_burman` screens 2 to 63 factors, found 1" in one for one in mistakes(text))


def test_many_factors_are_checked_one_at_a_time(load: Load) -> None:
    """All combinations of twenty options would be a million."""
    options = "\n".join(
        f"  o{n}: {{off: {{}}, on: {{system: {{mariadb: {{options: {{option_{n}: 1}}}}}}}}}}" for n in range(20)
    )
    lines = [line for line in SCREENING.splitlines() if not line.startswith("  ")]
    text = "\n".join(lines).replace("factors:", f"factors:\n{options}")
    assert len(load(text).factors) == 20
