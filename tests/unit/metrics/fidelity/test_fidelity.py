"""What TPC-C drives drew against the specification: faithful counts keep to it, and each way to be unfaithful shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.inference.drawn import CONSTANTS, faithful
from support.records import change_workload

from fairtrial.errors import RecordError
from fairtrial.metrics import fidelity
from fairtrial.metrics.fidelity import Fidelity, assess
from fairtrial.metrics.fidelity.points import LEVEL, FidelityPoint
from fairtrial.metrics.fidelity.tpcc import MIX, TpccSpecification
from fairtrial.record import read
from fairtrial.workloads.engine.tpcc import TpccParameters

DECKS = 2000  # 90,000 new orders: enough for a percent of them to be known to a tenth


def specification(**chosen: Any) -> TpccSpecification:
    asked = TpccParameters(**{"warehouses": 10, "virtual_users": 100, "duration": 60.0, **chosen})
    return TpccSpecification.model_validate(asked.model_dump())


def assessed(drawn: Mapping[str, int], **chosen: Any) -> Fidelity:
    return assess("tpcc", {"a": (1, drawn)}, specification(**chosen))


def point(found: Fidelity, name: str) -> FidelityPoint:
    return next(each for each in found.points if each.name == name)


def test_a_faithful_drive_keeps_every_point() -> None:
    found = assessed(faithful(DECKS))
    assert {each.verdict for each in found.points} == {"kept"}
    assert found.broken == ()
    assert point(found, "remote payments").value == pytest.approx(0.15)
    assert point(found, "remote payments").low == 0.14, "so many draws keep to the specification's bounds"
    assert point(found, "remote order lines").low is None, "a tenth of a percent of them is more than chance leaves"


def test_with_one_warehouse_nothing_may_be_remote() -> None:
    drawn = faithful(DECKS, warehouses=1)
    found = assessed(drawn, warehouses=1, virtual_users=10)
    assert found.broken == ()
    for count, name in (("order_lines_remote", "remote order lines"), ("payment_remote", "remote payments")):
        broken = assessed(drawn | {count: 1}, warehouses=1, virtual_users=10)
        assert [each.name for each in broken.broken] == [name]


@pytest.mark.parametrize(
    ("broken", "changes"),
    [
        (["remote order lines"], {"order_lines_remote": 0}),  # a client that never leaves its warehouse
        (["remote payments"], {"payment_remote": 0}),
        (["new orders rolled back"], {"new_order_rollback": 0}),
        (["payment by last name"], {"payment_by_last_name": 43 * DECKS}),
        (["order status by last name"], {"order_status_by_last_name": 0}),
        (["NURand, item numbers"], {"nurand_items_odd": faithful(DECKS)["nurand_items"] // 2}),  # a uniform choice
        (["NURand, customer numbers"], {"nurand_customers_odd": faithful(DECKS)["nurand_customers"] // 2}),
        (["NURand, last names"], {"nurand_last_names_odd": faithful(DECKS)["nurand_last_names"] // 2}),
        (["skipped districts"], {"delivery_skipped_districts": 1000, "delivered_orders": 80_000 - 1000}),
        (["skipped districts"], {"delivered_orders": 80_000 - 3}),  # a delivery that served seven districts
        (["NURand, constants"], {"nurand_c_last_name_run": CONSTANTS["nurand_c_last_name_load"] + 96}),
        (["NURand, constants"], {"nurand_c_last_name_run": CONSTANTS["nurand_c_last_name_load"] + 64}),
        (["NURand, constants"], {"nurand_c_customer": 1025}),
    ],
)
def test_each_way_to_be_unfaithful_is_named(broken: list[str], changes: dict[str, int]) -> None:
    assert [each.name for each in assessed(faithful(DECKS) | changes).broken] == broken


def test_a_mix_drawn_by_dice_is_no_deck() -> None:
    """Shares of the long run, without the decks that keep them: too few payments for clause 5.2.3 now and then."""
    drawn = faithful(DECKS) | {"payment": 43 * DECKS - 900, "new_order": 45 * DECKS + 900}
    found = assessed(drawn, virtual_users=10)
    assert {"payment", "new order"} <= {each.name for each in found.broken}
    assert point(found, "payment").p is not None
    assert float(point(found, "payment").p or 0) > LEVEL, "chance alone would allow it"


def test_decks_that_were_not_finished_are_no_fault() -> None:
    """A hundred users whose first 40 cards happened to hold no payment at all."""
    drawn = {"new_order": 2900, "payment": 900, "order_status": 68, "delivery": 66, "stock_level": 66}
    found = assessed(drawn, virtual_users=100)
    payment = point(found, "payment")
    assert payment.low is not None
    assert payment.value is not None
    assert payment.low < payment.value, "one deck per user may hold so many back"
    assert payment.verdict == "broken", "though chance does not"


def test_orders_of_equal_length_are_no_spread() -> None:
    counts = {f"new_order_lines_{lines:02}": 0 for lines in range(5, 16)} | {"new_order_lines_10": 45 * DECKS}
    drawn = faithful(DECKS) | counts | {"order_lines": 450 * DECKS, "order_lines_remote": 9 * DECKS // 2}
    assert point(assessed(drawn), "lines of an order, spread").verdict == "broken"
    assert point(assessed(drawn), "lines of an order, mean").verdict == "kept", "their mean is right"


def test_shorter_orders_have_another_mean() -> None:
    drawn = faithful(DECKS)
    found = assessed(drawn | {"order_lines": drawn["order_lines"] - 45 * DECKS // 2})
    assert point(found, "lines of an order, mean").verdict == "broken"


def test_what_was_never_drawn_is_untested_and_not_kept() -> None:
    found = assessed({})
    assert {each.verdict for each in found.points} == {"untested"}
    old = {name: count for name, count in faithful(DECKS).items() if not name.startswith("nurand")}
    untested = [each.name for each in assessed(old).points if each.verdict == "untested"]
    assert untested == ["NURand, item numbers", "NURand, customer numbers", "NURand, last names", "NURand, constants"]


def test_the_constant_decides_whether_joined_numbers_are_odd_or_even() -> None:
    drawn = faithful(DECKS)
    even = drawn | {"nurand_c_item": 7910, "nurand_items_odd": drawn["nurand_items"] - drawn["nurand_items_odd"]}
    assert point(assessed(even), "NURand, item numbers").verdict == "kept"
    assert point(assessed(drawn | {"nurand_c_item": 7910}), "NURand, item numbers").verdict == "broken"


def test_thinking_times_are_held_against_their_means() -> None:
    thinking = {"new_order": 12, "payment": 12, "order_status": 10, "delivery": 5, "stock_level": 5}
    times = {f"{kind}_thinking_times": 10_000 for kind in thinking}
    sums = {f"{kind}_thinking_ms": round(mean * 10_000 * 1000 * 0.5) for kind, mean in thinking.items()}
    found = assessed(faithful(DECKS) | times | sums, think_time_scale=0.5)
    assert found.broken == ()
    assert point(found, "payment, thinking").value == pytest.approx(6)
    hasty = assessed(faithful(DECKS) | times | sums | {"payment_thinking_ms": 50_000_000}, think_time_scale=0.5)
    assert [each.name for each in hasty.broken] == ["payment, thinking"]


def test_trials_of_one_seed_draw_the_same_and_count_once() -> None:
    drives = {"a": (1, faithful(10)), "b": (1, faithful(12)), "c": (2, faithful(20))}
    found = assess("tpcc", drives, specification())
    assert (found.trials, found.seeds) == (("a", "b", "c"), 2)
    assert point(found, "payment").count == 43 * (12 + 20)


def test_one_unfaithful_trial_among_faithful_ones_is_counted() -> None:
    drives = {str(seed): (seed, faithful(DECKS)) for seed in range(50)}
    drives["7"] = (7, faithful(DECKS) | {"payment_by_last_name": 43 * DECKS * 58 // 100})
    found = assess("tpcc", drives, specification())
    assert [(each.name, each.verdict, each.trials_broken) for each in found.broken] == [
        ("payment by last name", "broken" if point(found, "payment by last name").verdict == "broken" else "kept", 1)
    ]


def test_faithful_drives_are_not_called_broken_by_chance() -> None:
    random = np.random.default_rng(3)
    for _ in range(300):
        drawn = faithful(100)
        for count, of, share in (
            ("payment_by_last_name", "payment", 0.6),
            ("payment_remote", "payment", 0.15),
            ("new_order_rollback", "new_order", 0.01),
            ("order_lines_remote", "order_lines", 0.01),
        ):
            drawn[count] = int(random.binomial(drawn[of], share))
        assert assessed(drawn).broken == ()


def test_what_the_study_chose_is_a_deviation_and_no_fault() -> None:
    chosen = [deviation.clause for deviation in assessed(faithful(DECKS), virtual_users=4).deviations]
    assert chosen == ["5.2.5", "2.4.1.1, 2.5.1.1, 2.6.1.1, 2.7.1.1, 2.8.1.1", "4.2.1", "5.5.2"]
    by_the_book = {"think_time_scale": 1.0, "all_warehouses": False, "duration": 7200.0}
    assert assessed(faithful(DECKS), **by_the_book).deviations == ()


def test_a_result_that_does_not_say_what_was_drawn_is_an_error(tmp_path: Path) -> None:
    for content in ("{}", '{"drawn": [1]}', '{"drawn": {"payment": "many"}}', "{"):
        (tmp_path / "result.json").write_text(content, encoding="utf-8")
        with pytest.raises(RecordError, match=r"result\.json cannot be read"):
            fidelity.read(tmp_path)


def test_more_transactions_than_were_drawn_contradict_the_counts(tmp_path: Path) -> None:
    ended = {"committed": 43, "rolled_back": 0, "failed": 0, "retried": 9}
    result = {"window": {"start_ns": 0, "end_ns": 1}, "errors": [], "transactions": {"payment": ended}}
    (tmp_path / "result.json").write_text(json.dumps(result | {"drawn": faithful(1)}), encoding="utf-8")
    assert fidelity.contradictions(tmp_path) == []
    (tmp_path / "result.json").write_text(json.dumps(result | {"drawn": {"payment": 42}}), encoding="utf-8")
    (found,) = fidelity.contradictions(tmp_path)
    assert "43 transactions payment ended, but only 42 were drawn" in found


def test_a_real_record_is_faithful(real_run: Path) -> None:
    record = read(real_run)
    found = fidelity.of_record(record)
    assert sum(len(each.trials) for each in found) == sum(trial.valid for trial in record.trials)
    for each in found:
        assert each.broken == ()
        assert point(each, "NURand, item numbers").verdict == "kept"
        assert each.deviations[0].clause == "5.2.5"
    drives = [(trial, fidelity.read(record.trial_directory(trial.trial.id))) for trial in record.trials]
    wanted = {name for name in faithful(1) if not name.startswith("new_order_lines")}  # short trials lack some lengths
    assert wanted <= {name for _, drawn in drives for name in drawn}
    for trial, drawn in drives:
        assert sum(drawn[kind] for kind in MIX if kind in drawn) >= trial.scalars["transactions"]


def test_a_workload_of_any_name_with_these_parameters_is_held_against_them(real_copy: Path) -> None:
    change_workload(real_copy, lambda workload: {"another": workload["tpcc"]})
    assert {each.workload for each in fidelity.of_record(read(real_copy))} == {"another"}
