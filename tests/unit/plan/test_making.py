from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from pydantic import JsonValue
from rich.console import Console

from fairtrial import plan as planning
from fairtrial.cli.running import plan as command
from fairtrial.errors import InputError
from fairtrial.plan import ordering
from fairtrial.plan.costs import RECORD_BYTES_PER_TRIAL, TRIAL_OVERHEAD_S
from fairtrial.plan.differences import differences
from fairtrial.record.files import PARTIAL_PREFIX
from fairtrial.record.models import COMPONENT_BYTES, Difference, Plan
from fairtrial.study import ResolvedTrial

Make = Callable[..., Plan]
GOLDEN = Path(__file__).parents[2] / "golden" / "plan.txt"


def printed(plan: Plan) -> str:
    console = Console(file=io.StringIO(), width=command.MINIMUM_WIDTH * 3 // 2, color_system=None)
    console.print(command.render(plan))
    file = console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def test_the_whole_plan_as_printed(make: Make) -> None:
    """To accept a change: FAIRTRIAL_ACCEPT=1 pytest tests/unit/plan/test_making.py, then read the difference."""
    rendered = printed(make(size="ci", overrides=["factors.users="]))
    if os.environ.get("FAIRTRIAL_ACCEPT"):
        GOLDEN.write_text(rendered, encoding="utf-8")
    assert rendered == GOLDEN.read_text(encoding="utf-8")


def test_cells_are_the_product_of_the_conditions_in_study_order(make: Make) -> None:
    plan = make()
    assert [cell.name for cell in plan.cells] == [
        "underutilizing+low",
        "underutilizing+high",
        "overcommitting+low",
        "overcommitting+high",
    ]
    assert plan.cells[1].levels == {"memory": "underutilizing", "users": "high"}
    assert set(plan.resolved) == {cell.name for cell in plan.cells}
    assert plan.resolved["overcommitting+high"]["mglru"].workload.root["tpcc"]["virtual_users"] == 38


def test_without_conditions_the_one_cell_is_all(make: Make, small: ModuleType) -> None:
    plan = make(small.MGLRU, overrides=["factors.memory=", "factors.users=", "also_compare=", "expect="])
    assert [(cell.name, cell.levels) for cell in plan.cells] == [("all", {})]
    assert plan.trials[0].id.startswith("all.b01.")


def test_cells_that_differ_in_nothing_but_their_names_are_warned_of(make: Make) -> None:
    overrides = ["also_compare=", "factors.memory=", "expect="]
    assert not [warning for warning in make(overrides=overrides).warnings if "equal trials" in warning]
    found = make(overrides=[*overrides, "factors.when={first: {}, last: {settings: {}}}"]).warnings
    assert [warning.partition(" resolve to equal trials")[0] for warning in found if "equal trials" in warning] == [
        "cells low+first, low+last",
        "cells high+first, high+last",
    ]


def test_levels_whose_names_no_file_name_holds_together_are_refused(make: Make) -> None:
    long = [f"factors.c{number}.{'a' * 78}={{}}" for number in range(4)]
    with pytest.raises(InputError, match=r"factors: the names of a trial's levels are 34[0-9] bytes together"):
        make(overrides=long)
    assert "a" * 78 in make(overrides=long[:1]).trials[0].cell


def test_levels_whose_names_make_one_name_of_two_trials_are_refused(make: Make) -> None:
    cells = ["factors.memory=", "factors.users=", "also_compare=", "expect=", "factors.when={p: {}, p.b01: {}}"]
    arm = 'factors.kernel."b01.baseline"={settings: {sysctl: {vm.swappiness: 1}}}'
    with pytest.raises(InputError, match=r"factors: the levels' names make one name, p\.b01\.b01\.baseline, of 2"):
        make(overrides=[*cells, arm])
    assert make(overrides=cells).trials


def test_the_longest_names_that_are_allowed_fit_the_directory_of_an_unfinished_trial_of_an_aa_run(
    make: Make, small: ModuleType
) -> None:
    def planned(length: int) -> Plan:
        names = [f"factors.c{number}.{'a' * 70}={{}}" for number in range(2)]
        plain = ["factors.memory=", "factors.users=", "also_compare=", "expect="]
        return make(overrides=[*plain, *names, f"factors.c2.{'a' * length}={{}}"])

    longest = 224 - len("+".join(["a" * 70] * 2) + "+" + ".baseline")
    aa = planning.against_itself(planned(longest), catalogue=small.SMALL)
    (trial, *_) = (each for each in aa.trials if each.arm == "baseline-again")
    final = ordering.Slot(trial.cell, trial.arm, block=20_000, round=1, repeat=100)
    assert len(PARTIAL_PREFIX + ordering.planned(final, seed=1, position=1).id) <= COMPONENT_BYTES
    with pytest.raises(InputError, match="225 bytes together"):
        planned(longest + 1)


def test_trials_are_numbered_in_order_and_named_once(make: Make) -> None:
    plan = make()
    assert [trial.position for trial in plan.trials] == list(range(4 * 10 * 2))
    assert len({trial.id for trial in plan.trials}) == 80


def test_the_plan_survives_json(make: Make) -> None:
    plan = make()
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_the_same_study_gives_the_same_plan_and_another_seed_another(make: Make) -> None:
    assert make() == make()
    assert make().trials != make(overrides=["trials.seed=8"]).trials


def test_any_factor_can_be_the_arm(make: Make) -> None:
    plan = make(overrides=["arm=users", "also_compare="])
    assert [trial.arm for trial in plan.trials[:2]] in (["low", "high"], ["high", "low"])
    assert plan.differences == [Difference(path="workload.tpcc.virtual_users", values={"low": 6, "high": 38})]


def test_what_differs_is_shown_after_validation_with_defaults(make: Make, small: ModuleType) -> None:
    text = small.MGLRU.replace("{settings: {lru_gen: on}}", "{place: {local: {}}, settings: {lru_gen: off}}")
    assert make(text).differences == [
        Difference(path="place.vm.kernel", values={"baseline": "debian-6.1"}),
        Difference(path="place.vm.memory", values={"baseline": 1 << 30}),
        Difference(path="place.vm.cpus", values={"baseline": 2}),
        Difference(path="place.vm.swap", values={"baseline": 512 << 20}),
        Difference(path="place.vm.pmem", values={"baseline": None}),
        Difference(path="place.vm.accelerator", values={"baseline": "auto"}),
        Difference(path="place.local", values={"mglru": {}}),
    ]


def test_a_path_with_a_dot_in_a_name_is_quoted_as_set_takes_it(make: Make) -> None:
    override = 'factors.kernel.mglru.settings.sysctl."vm.swappiness"=1'
    assert 'settings.sysctl."vm.swappiness"' in [
        difference.path for difference in make(overrides=[override]).differences
    ]


def test_an_empty_mapping_is_no_difference_beside_what_another_arm_has_below_it() -> None:
    def trial(settings: dict[str, JsonValue]) -> ResolvedTrial:
        return ResolvedTrial(place={"local": {}}, system={"sqlite": {}}, workload={"tpcc": {}}, settings=settings)

    def found(*settings: dict[str, JsonValue]) -> list[Difference]:
        return differences({"all": {str(number): trial(each) for number, each in enumerate(settings)}})

    assert found({}, {"swappiness": 1}) == [Difference(path="settings.swappiness", values={"1": 1})]
    assert found({}, {"locks": {}}) == [Difference(path="settings.locks", values={"1": {}})]


def test_a_difference_that_depends_on_the_cell_names_the_cell() -> None:
    def trial(users: int, warehouses: int) -> ResolvedTrial:
        workload = {"tpcc": {"users": users, "warehouses": warehouses}}
        return ResolvedTrial(place={"local": {}}, system={"sqlite": {}}, workload=workload)

    resolved = {
        "low": {"a": trial(1, 5), "b": trial(2, 5)},
        "high": {"a": trial(1, 5), "b": trial(2, 9)},
    }
    assert differences(resolved) == [
        Difference(path="workload.tpcc.users", values={"a": 1, "b": 2}),
        Difference(path="workload.tpcc.warehouses [high]", values={"a": 5, "b": 9}),
    ]


def test_expected_duration_is_the_sum_over_trials(make: Make) -> None:
    plan = make(overrides=["trials.blocks=2"])
    drive_s = 10 + 3000 / 100
    assert plan.duration_s == pytest.approx(16 * (TRIAL_OVERHEAD_S + drive_s + 3 + 4))
    assert make(overrides=["trials.blocks=4"]).duration_s == pytest.approx(2 * plan.duration_s)


def test_expected_disk_is_prepared_data_a_working_copy_and_the_record(make: Make, small: ModuleType) -> None:
    plan = make(overrides=["trials.blocks=1"])
    assert plan.disk_bytes == 2 * 16 * small.BYTES_PER_WAREHOUSE + 8 * RECORD_BYTES_PER_TRIAL


def test_the_voided_limit_is_the_number_of_blocks_unless_said(make: Make) -> None:
    assert make(overrides=["trials.blocks=4"]).design.voided_limit == 4
    assert make(overrides=["trials.blocks=4", "trials.voided_limit=1"]).design.voided_limit == 1


@pytest.mark.parametrize(
    ("override", "warning"),
    [
        ("trials.order=sequential", "falls on one arm alone and looks like its effect"),
        ("trials={order: abba, blocks: 3}", "an odd number leaves one direction in the majority"),
        ("trials.blocks=1", "one block per cell gives no interval"),
    ],
)
def test_a_weaker_design_is_warned_about(make: Make, override: str, warning: str) -> None:
    plan = make(overrides=[override])
    assert any(warning in line for line in plan.warnings)
    assert "warning: " in printed(plan)
    assert make().warnings == []


def test_a_replacement_is_a_new_block_with_its_own_order_and_seed(make: Make) -> None:
    plan = make()
    replaced = planning.replacement(plan, cell="overcommitting+low", block=11, round_=4, position=80)
    assert [(trial.position, trial.round, trial.block) for trial in replaced] == [(80, 4, 11), (81, 4, 11)]
    assert {trial.arm for trial in replaced} == {"baseline", "mglru"}
    assert {trial.id for trial in replaced} == {"overcommitting+low.b11.baseline", "overcommitting+low.b11.mglru"}
    assert {trial.seed for trial in replaced} & {trial.seed for trial in plan.trials} == set()
    assert replaced == planning.replacement(plan, cell="overcommitting+low", block=11, round_=4, position=80)


@pytest.mark.parametrize(
    ("seconds", "text"), [(45, "45 s"), (119, "119 s"), (720, "12 min"), (7199, "120 min"), (12_000, "3 h 20 min")]
)
def test_durations_as_printed(seconds: float, text: str) -> None:
    assert command.duration(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(10, "10 B"), (2048, "2.0 KiB"), (3 << 29, "1.5 GiB")])
def test_sizes_as_printed(count: int, text: str) -> None:
    assert command.size(count) == text
