from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from fairtrial import study
from fairtrial.errors import InputError

Load = Callable[..., study.Study]


WITHOUT_SERVER = """\
study: embedded
system: {sqlite: {}}
workload: {tpcc: {duration: 60s}}
factors: {lru: {off: {settings: {lru_gen: off}}, on: {settings: {lru_gen: on}}}}
arm: lru
metrics: {primary: server_cpu}
"""


def test_a_recorded_study_may_name_what_its_system_turned_out_to_lack(load: Load) -> None:
    with pytest.raises(InputError, match="metric `server_cpu` is not measured"):
        load(WITHOUT_SERVER)
    assert load(WITHOUT_SERVER, recorded=True).file.metrics.primary == ["server_cpu"]


def test_a_level_is_an_overlay_on_the_base_trial(load: Load, small: ModuleType) -> None:
    loaded = load(small.MGLRU)
    trial = loaded.resolve({"kernel": "mglru", "memory": "overcommitting", "users": "high"})
    guest = {"kernel": "debian-6.1", "memory": 1 << 30, "swap": 512 << 20}
    assert trial.place.root == {"vm": {**guest, "cpus": 2, "pmem": None, "accelerator": "auto"}}
    assert trial.system.root == {
        "mariadb": {"options": {"innodb_flush_method": "O_DIRECT_NO_FSYNC", "innodb_buffer_pool_size": "940MiB"}}
    }
    assert trial.workload.root["tpcc"]["virtual_users"] == 38
    assert trial.workload.root["tpcc"]["ramp_up"] == 10.0
    assert trial.settings == {"lru_gen": "on"}


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("trials: {blocks: true}", "trials.blocks"),
        ("trials: {voided_limit: false}", "trials.voided_limit"),
        ("telemetry: {diagnostic_blocks: true, probes: [perf_stat]}", "telemetry.diagnostic_blocks"),
        ("telemetry: {probes: [{perf_record: {frequency: true}}]}", "telemetry.probes.0.perf_record.frequency"),
    ],
)
def test_true_is_no_number(load: Load, small: ModuleType, *, line: str, field: str) -> None:
    with pytest.raises(InputError) as raised:
        load("\n".join(each for each in small.MGLRU.splitlines() if not each.startswith("trials:")) + f"\n{line}\n")
    (problem,) = raised.value.problems
    assert (problem.field, problem.message.partition(", found ")[0]) == (field, "expected a whole number")


def test_true_is_no_number_among_the_parameters_of_a_kind(load: Load, small: ModuleType) -> None:
    text = small.MGLRU.replace("virtual_users: 38", "virtual_users: true")
    with pytest.raises(InputError) as raised:
        load(text)
    (problem,) = raised.value.problems
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "true" in line)
    assert (problem.field, problem.line) == ("workload.tpcc.virtual_users", line)
    assert problem.message.startswith("expected a whole number, found true")


def test_a_level_that_names_another_kind_replaces_the_whole_mapping(load: Load, small: ModuleType) -> None:
    text = small.MGLRU.replace("{settings: {lru_gen: on}}", "{place: {local: {}}, settings: {lru_gen: on}}")
    loaded = load(text)
    levels = {"memory": "overcommitting", "users": "low"}
    assert loaded.resolve({"kernel": "mglru", **levels}).place.root == {"local": {}}
    assert loaded.resolve({"kernel": "baseline", **levels}).place.kind == "vm"


def test_a_null_in_a_level_removes_what_the_base_sets(load: Load, small: ModuleType) -> None:
    text = small.MGLRU.replace("{tpcc: {virtual_users: 38}}", "{tpcc: {transactions: null, duration: 1min}}")
    trial = load(text).resolve({"kernel": "mglru", "memory": "overcommitting", "users": "high"})
    assert trial.workload.root["tpcc"]["transactions"] is None
    assert trial.workload.root["tpcc"]["duration"] == 60.0


def test_an_empty_level_is_the_base_trial(load: Load, small: ModuleType) -> None:
    for empty in ("", "{}"):
        text = small.MGLRU.replace("{settings: {lru_gen: off}}", empty)
        levels = {"kernel": "baseline", "memory": "overcommitting", "users": "high"}
        assert load(text).resolve(levels).settings == {}


def test_defaults(load: Load, small: ModuleType) -> None:
    text = "\n".join(
        line for line in small.MGLRU.splitlines() if not line.startswith(("place", "trials", "also", "expect", "sizes"))
    )
    loaded = load(text)
    assert loaded.trials.model_dump() == {
        "blocks": 10,
        "order": "randomised_blocks",
        "seed": 1,
        "stop": "fixed",
        "margin": 0.02,
        "min_blocks": None,
        "spending": None,
        "futility": None,
        "equivalence": None,
        "precision": None,
        "time_budget": None,
        "confidence": 0.95,
        "voided_limit": None,
        "design": None,
        "resolution": None,
        "fold": None,
        "hosts": "alike",
        "reboot": "every_trial",
        "per_boot": 1,
    }
    assert loaded.file.telemetry.interval == 1.0
    trial = loaded.resolve({"kernel": "mglru", "memory": "overcommitting", "users": "low"})
    assert trial.place.root == {"local": {}}


def users_low(loaded: study.Study) -> dict[str, Any]:
    trial = loaded.resolve({"kernel": "mglru", "memory": "overcommitting", "users": "low"})
    return dict(trial.workload.root["tpcc"])


def test_include_then_study_then_size_then_set_then_levels(load: Load, small: ModuleType) -> None:
    part = "workload: {tpcc: {warehouses: 1, ramp_up: 1s, transactions: 1, virtual_users: 1}}\n"
    workload = "workload: {tpcc: {warehouses: 16, ramp_up: 10s, transactions: 3000}}"
    text = small.MGLRU.replace(workload, "workload: {tpcc: {ramp_up: 2s, transactions: 2, virtual_users: 2}}")
    text = text.replace("warehouses: 2, transactions: 200", "transactions: 3, virtual_users: 3")
    text += "include: part.yaml\n"
    files = {"part.yaml": part}
    overrides = ["workload.tpcc.virtual_users=4"]

    def values(loaded: study.Study) -> list[float]:
        found = users_low(loaded)
        return [found["warehouses"], found["ramp_up"], found["transactions"], found["virtual_users"]]

    assert values(load(text, files=files)) == [1, 2.0, 2, 6]
    assert values(load(text, files=files, size="ci")) == [1, 2.0, 3, 6]
    assert values(load(text, files=files, size="ci", overrides=["workload.tpcc.transactions=4"])) == [1, 2.0, 4, 6]
    bare = text.replace("{workload: {tpcc: {virtual_users: 6}}}", "{}")
    assert values(load(bare, files=files)) == [1, 2.0, 2, 2]
    assert values(load(bare, files=files, size="ci")) == [1, 2.0, 3, 3]
    assert values(load(bare, files=files, size="ci", overrides=overrides)) == [1, 2.0, 3, 4]


def test_set_takes_any_yaml_value_and_quoted_parts(load: Load, small: ModuleType) -> None:
    overrides = [
        'settings.sysctl."vm.swappiness"=10',
        "trials.blocks=3",
        "factors.users.low.workload.tpcc={virtual_users: 7}",
        "also_compare=[users]",
        "expect=",
        "workload.tpcc.ramp_up=500ms",
    ]
    loaded = load(small.MGLRU, overrides=overrides)
    trial = loaded.resolve({"kernel": "mglru", "memory": "overcommitting", "users": "low"})
    assert trial.settings["sysctl"] == {"vm.swappiness": 10}
    assert (trial.workload.root["tpcc"]["virtual_users"], trial.workload.root["tpcc"]["ramp_up"]) == (7, 0.5)
    assert (loaded.trials.blocks, loaded.file.also_compare, loaded.expectations) == (3, ["users"], ())


def test_names_keep_their_source_text(load: Load, small: ModuleType) -> None:
    text = small.MGLRU.replace("kernel:\n", "6.10:\n").replace("arm: kernel", "arm: 6.10")
    text = text.replace("    low:  ", "    010:  ").replace("    high: ", "    off: ")
    loaded = load(text)
    assert loaded.arm.name == "6.10"
    assert [factor.level_names for factor in loaded.conditions][1] == ("010", "off")
    assert load(study.dump(loaded)) == loaded


def test_expectations_are_ranges_by_level(load: Load, small: ModuleType) -> None:
    ranges = "{swapped_out_share: 8..12 %, cpu_user_share: '>= 3'}, users.low: {cpu_user_share: '<= 0.1', "
    text = small.MGLRU.replace(
        "{overcommitting: {swapped_out_share: 8..12 %}}",
        f"{{overcommitting: {ranges}throughput_tpm: '10 .. 2e1'}}}}",
    )
    found = [(e.factor, e.level, e.metric, e.low, e.high, e.text) for e in load(text).expectations]
    assert found == [
        ("memory", "overcommitting", "swapped_out_share", 0.08, 0.12, "8..12 %"),
        ("memory", "overcommitting", "cpu_user_share", 3.0, None, ">= 3"),
        ("users", "low", "cpu_user_share", None, 0.1, "<= 0.1"),
        ("users", "low", "throughput_tpm", 10.0, 20.0, "10 .. 2e1"),
    ]


def test_the_definition_of_every_named_metric_is_kept(load: Load, small: ModuleType) -> None:
    definitions = load(small.MGLRU).definitions
    assert set(definitions) == {"refaults_per_transaction", "throughput_tpm", "latency_ns_p99", "swapped_out_share"}


def test_resolving_an_unknown_level_names_the_known_ones(load: Load, small: ModuleType) -> None:
    with pytest.raises(InputError, match="factor `users` has no level 'lo'") as raised:
        load(small.MGLRU).resolve({"kernel": "mglru", "memory": "overcommitting", "users": "lo"})
    assert raised.value.hint == "it has low, high"


@pytest.mark.parametrize("size", [None, "ci"])
def test_loading_a_dump_gives_an_equal_study(load: Load, small: ModuleType, size: str | None) -> None:
    loaded = load(small.MGLRU, size=size, overrides=["trials.margin=0.1 %", "telemetry.interval=10ms"])
    text = study.dump(loaded)
    again = load(text)
    assert again == loaded
    assert study.dump(again) == text
    assert "margin: 0.1%" in text
    assert "interval: 10ms" in text


def test_studies_that_differ_in_one_level_are_not_equal(load: Load, small: ModuleType) -> None:
    assert load(small.MGLRU) != load(small.MGLRU.replace("virtual_users: 6}", "virtual_users: 7}"))
    reordered = "    mglru:    {settings: {lru_gen: on}}\n"
    assert load(small.MGLRU) != load(
        small.MGLRU.replace(reordered, "").replace("    baseline:", reordered + "    baseline:")
    )


texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12)
options = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9_.]{0,8}", fullmatch=True),
    st.one_of(
        texts,
        st.integers(-(2**63), 2**63),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.sampled_from(["on", "off", "1:30", "2026-11-20", "010", "~", "null", "1e3", "=", "<<", "yes", "0o7"]),
    ),
    max_size=5,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(base=options, level=options)
def test_any_option_values_round_trip(
    tmp_path: Path, small: ModuleType, *, base: dict[str, Any], level: dict[str, Any]
) -> None:
    """Whatever YAML could mistake for something else (dates, octals, `on`) is written so that it reads back."""
    document = {
        "study": "any",
        "system": {"mariadb": {"options": base}},
        "workload": {"tpcc": {"duration": "1s"}},
        "factors": {
            "f": {"none": {}, "some": {"system": {"mariadb": {"options": level}}, "settings": {"lru_gen": "on"}}}
        },
        "arm": "f",
        "metrics": {"primary": "throughput_tpm"},
    }
    path = tmp_path / "any.yaml"
    with path.open("w", encoding="utf-8") as file:
        YAML().dump(document, file)
    loaded = study.load(path, catalogue=small.SMALL)
    assert loaded.resolve({"f": "some"}).system.root["mariadb"]["options"] == base | level
    path.write_text(study.dump(loaded), encoding="utf-8")
    assert study.load(path, catalogue=small.SMALL) == loaded
