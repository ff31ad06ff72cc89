"""A workload's own place: written inside the workload, merged beside it, resolved to a field of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError
from fairtrial.study import Study
from fairtrial.study.tree.nodes import Position, from_plain, plain
from fairtrial.study.tree.problems import Problems
from fairtrial.study.workload_place import NETWORK, SECTION, aside, back, back_everywhere

STUDY = """\
study: two-places
system: {mariadb: {}}
workload:
  oltp: {table_size: 100, duration: 1s}
  place: {ssh: {host: client-1, user: me}}
factors:
  load:
    one: {}
    many: {workload: {oltp: {virtual_users: 8}}}
  where:
    as_said: {}
    beside: {workload: {place: null}}
    other: {workload: {place: {ssh: {host: client-2}}}}
    here: {workload: {place: {local: {}}}}
arm: load
trials: {blocks: 2}
metrics: {primary: throughput_tps}
sizes:
  ci: {workload: {place: {ssh: {user: you}}}}
"""


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Study]:
    def read(text: str = STUDY, **options: Any) -> Study:
        file = tmp_path / "study.yaml"
        file.write_text(text, encoding="utf-8")
        return study.load(file, catalogue=catalogue(), **options)

    return read


def place(loaded: Study, *, load: str = "one", where: str = "as_said") -> dict[str, Any] | None:
    found = loaded.resolve({"load": load, "where": where}).workload_place
    if found is None:
        return None
    ((kind, parameters),) = found.root.items()
    return {kind: {name: value for name, value in parameters.items() if value is not None}}


def test_a_workload_has_its_kind_and_its_place_apart(load: Callable[..., Study]) -> None:
    trial = load().resolve({"load": "one", "where": "as_said"})
    assert trial.workload.kind == "oltp"
    assert trial.workload_place is not None
    assert trial.workload_place.root["ssh"]["host"] == "client-1"
    assert trial.place.kind == "local"


def test_levels_merge_replace_and_remove_it_and_leave_it_alone(load: Callable[..., Study]) -> None:
    loaded = load()
    assert place(loaded) == {"ssh": {"host": "client-1", "user": "me"}}
    assert place(loaded, load="many") == place(loaded), "another number of users is no other place"
    assert place(loaded, where="beside") is None
    assert place(loaded, where="other") == {"ssh": {"host": "client-2", "user": "me"}}
    assert place(loaded, where="here") == {"local": {}}


def test_another_kind_of_workload_keeps_the_place(load: Callable[..., Study]) -> None:
    text = STUDY.replace("{workload: {oltp: {virtual_users: 8}}}", "{workload: {tpcc: {duration: 1s}}}")
    trial = load(text.replace("throughput_tps", "cpu_user_share")).resolve({"load": "many", "where": "as_said"})
    assert trial.workload.kind == "tpcc"
    assert trial.workload_place is not None


def test_sizes_and_assignments_reach_it(load: Callable[..., Study]) -> None:
    assert place(load(size="ci")) == {"ssh": {"host": "client-1", "user": "you"}}
    assigned = load(overrides=["workload.place.ssh.host=client-9"])
    assert place(assigned) == {"ssh": {"host": "client-9", "user": "me"}}


def test_a_study_that_says_none_has_none(load: Callable[..., Study]) -> None:
    text = STUDY.replace("  place: {ssh: {host: client-1, user: me}}\n", "").replace("sizes:\n", "sizes: {}\n#")
    assert place(load(text)) is None


def test_a_dump_says_it_where_a_person_would_and_loads_to_an_equal_study(
    load: Callable[..., Study], tmp_path: Path
) -> None:
    loaded = load()
    text = study.dump(loaded)
    written = YAML(typ="safe", pure=True).load(text)
    assert written["workload"]["place"] == {"ssh": {"host": "client-1", "user": "me"}}
    assert written["factors"]["where"]["here"] == {"workload": {"place": {"local": {}}}}
    assert SECTION not in text.replace("workload.place:", "") or SECTION not in written
    again = tmp_path / "again.yaml"
    again.write_text(text, encoding="utf-8")
    assert study.load(again, catalogue=catalogue()) == loaded


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("{ssh: {host: client-1, user: me}}", "{shh: {host: client-1}}", 5, "did you mean `ssh`?"),
        ("{ssh: {host: client-1, user: me}}", "{ssh: {user: me}}", 5, "workload.place.ssh.host"),
        ("{ssh: {host: client-1, user: me}}", "{ssh: {host: a}, local: {}}", 5, "exactly one kind"),
        ("study: two-places", "study: two-places\nworkload.place: {local: {}}", 2, "workload"),
        ("study: two-places", "study: two-places\nworkload.network: {tls: true}", 2, "workload"),
        ("{ssh: {host: client-1, user: me}}", "[{ssh: {host: a}}]", 5, "expected one place, or a list of 2 to 64"),
        ("{ssh: {host: client-1, user: me}}", "[{ssh: {host: a}}, {shh: {}}]", 5, "did you mean `ssh`?"),
        ("{ssh: {host: client-1, user: me}}", "[{ssh: {host: a}}, far]", 5, "found 'far'; expected exactly one kind"),
        ("{ssh: {host: client-1, user: me}}", "client-1", 5, "workload.place: found 'client-1'; expected exactly one"),
        (
            "{ssh: {host: client-1, user: me}}",
            "[{ssh: {host: a}}, {ssh: {host: a, port: null}}]",
            5,
            "clients 1 and 2 have the same place",
        ),
        ("{ssh: {host: client-1, user: me}}", "{ssh: {host: a}}\n  tls: maybe", 6, "workload.tls"),
        ("{ssh: {host: client-1, user: me}}", "{ssh: {host: a}}\n  address: a b", 6, "workload.address"),
    ],
)
def test_mistakes_are_told_with_their_line(
    load: Callable[..., Study], *, old: str, new: str, line: int, said: str
) -> None:
    with pytest.raises(InputError) as refused:
        load(STUDY.replace(old, new, 1))
    assert said in str(refused.value)
    assert line in {problem.line for problem in refused.value.problems}


FLEET = STUDY.replace(
    "place: {ssh: {host: client-1, user: me}}",
    "place: [{ssh: {host: a}}, {ssh: {host: a, state_directory: /b}}]\n  address: 10.0.0.1",
).replace("{place: {ssh: {host: client-2}}}", "{tls: true, address: null}")


def test_a_list_is_the_places_of_several_clients(load: Callable[..., Study]) -> None:
    loaded = load(FLEET.replace("sizes:\n", "sizes: {}\n#"))
    trial = loaded.resolve({"load": "one", "where": "as_said"})
    assert [place.root["ssh"]["state_directory"] for place in trial.clients] == [None, "/b"]  # type: ignore[index, call-overload]
    assert (trial.network.address, trial.network.tls) == ("10.0.0.1", False)
    assert loaded.resolve({"load": "one", "where": "beside"}).clients == ()
    assert len(loaded.resolve({"load": "one", "where": "here"}).clients) == 1, "a level's place replaces the list"
    encrypted = loaded.resolve({"load": "many", "where": "other"})
    assert (encrypted.network.address, encrypted.network.tls, len(encrypted.clients)) == (None, True, 2)


def test_a_list_of_places_is_written_back_where_it_stood(load: Callable[..., Study], tmp_path: Path) -> None:
    loaded = load(FLEET.replace("sizes:\n", "sizes: {}\n#"))
    text = study.dump(loaded)
    written = YAML(typ="safe", pure=True).load(text)
    assert [list(place) for place in written["workload"]["place"]] == [["ssh"], ["ssh"]]
    assert written["workload"]["address"] == "10.0.0.1"
    assert NETWORK not in written
    again = tmp_path / "again.yaml"
    again.write_text(text, encoding="utf-8")
    assert study.load(again, catalogue=catalogue()) == loaded


def test_two_factors_may_not_both_say_where(load: Callable[..., Study]) -> None:
    text = STUDY.replace("    one: {}\n", "    one: {workload: {place: {ssh: {host: client-3}}}}\n")
    with pytest.raises(InputError, match="both set it"):
        load(text)


def test_editors_know_it() -> None:
    document = YAML(typ="safe", pure=True).load(STUDY)
    schema = study.schema(catalogue())
    jsonschema.Draft202012Validator(schema).validate(document)
    document["workload"] |= {"place": [{"ssh": {"host": "a"}}, {"local": {}}], "tls": True, "address": "db-1"}
    jsonschema.Draft202012Validator(schema).validate(document)
    document["workload"]["place"] = {"shh": {}}
    assert not jsonschema.Draft202012Validator(schema).is_valid(document)


def test_going_aside_and_back_again_changes_nothing() -> None:
    written = {
        "workload": {"oltp": {"a": 1}, "place": {"local": {}}},
        "factors": {"f": {"l": {"workload": {"place": {"ssh": {"host": "x"}}}}, "m": {}}},
    }
    tree = aside(from_plain(written, Position("study.yaml")), Problems())  # type: ignore[arg-type]
    moved = plain(tree)
    assert moved["workload"] == {"oltp": {"a": 1}}
    assert moved[SECTION] == {"local": {}}
    assert moved["factors"]["f"]["l"] == {SECTION: {"ssh": {"host": "x"}}}
    assert back_everywhere(moved) == written


def test_what_is_no_mapping_is_left_for_others_to_refuse() -> None:
    for odd in ({"workload": 3}, {"factors": 3, "workload": {"oltp": {}}}, {"factors": {"f": 3}}):
        tree = aside(from_plain(odd, Position("study.yaml")), Problems())  # type: ignore[arg-type]
        assert back_everywhere(plain(tree)) == odd
    assert back({"system": {}}) == {"system": {}}
