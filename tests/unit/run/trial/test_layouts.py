"""Programs linked at a real place: here a linker that joins its objects, so that a program shows its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support.machines.places import place_here
from support.progress import Told
from support.records import planned, tiny_plan

from fairtrial import record
from fairtrial.errors import PlaceError
from fairtrial.plan.layouts import order_of
from fairtrial.record.models import Plan
from fairtrial.run.trial import layouts, runner
from fairtrial.study.builds import Builds
from fairtrial.study.resolved import Section
from fairtrial.wire.open_place import OpenPlace

JOIN = """sh -c 'output=$1; shift; cat "$@" > "$output"' link {output} {objects}"""
OBJECTS = "abcdef"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[OpenPlace]:
    with place_here(tmp_path) as opened:
        yield opened


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    for arm in "ab":
        (tmp_path / arm).mkdir()
        for name in OBJECTS:
            (tmp_path / arm / f"{name}.o").write_text(f"{arm}{name} ")
    return with_builds(tmp_path)


def with_builds(tmp_path: Path, **more: Any) -> Plan:
    given = {
        "program": str(tmp_path / "bin" / "program"),
        "objects": {arm: str(tmp_path / arm / "*.o") for arm in "ab"},
        "link": JOIN,
        "link_orders": 3,
    }
    return tiny_plan().model_copy(update={"builds": Builds.model_validate({**given, **more})})


def run(place: OpenPlace, plan: Plan, *, arm: str, block: int) -> tuple[str, list[str]]:
    """The layout that a trial had, and the objects of its program in order."""
    name, (setting,) = layouts.put(place, plan, planned(block, arm))
    assert setting.asked == setting.read_back
    assert plan.builds is not None
    return name, Path(plan.builds.program).read_text().split()


def test_arms_of_a_block_have_their_own_objects_in_the_same_order(place: OpenPlace, plan: Plan) -> None:
    for arm in "ab":
        layouts.link(place, plan, arm=arm)
    seen = {}
    for block in (1, 2, 3):
        (name, first), (other, second) = (run(place, plan, arm=arm, block=block) for arm in "ab")
        assert name == other == f"order-{order_of(plan, planned(block, 'a')):04d}"
        assert [each[1] for each in first] == [each[1] for each in second]
        assert {each[0] for each in first} == {"a"}
        assert sorted(each[1] for each in first) == list(OBJECTS)
        seen[name] = first
    assert len({tuple(each) for each in seen.values()}) == 3


def test_each_arm_has_the_identity_of_its_own_program(place: OpenPlace, plan: Plan, tmp_path: Path) -> None:
    plan = with_builds(tmp_path, link=JOIN.replace("' link", """; chmod +x "$output"' link"""))
    assert plan.builds is not None
    system = Section({"command": {"run": plan.builds.program}})
    both = {arm: each.model_copy(update={"system": system}) for arm, each in plan.resolved["all"].items()}
    plan = plan.model_copy(update={"resolved": {"all": both}})
    writer = record.create(tmp_path / "run", plan=plan, sources={"study.yaml": ""})
    own = runner.TrialRunner(place, writer, Told(), runner.ExistingServers(place, "a test"))
    found = {}
    for arm in "ab":
        own.prepare(planned(1, arm))
        found[arm] = sha256(Path(plan.builds.program).read_bytes()).hexdigest()
    writer.close()
    assert {arm: own.identity(both[arm], arm=arm).sha256 for arm in "ab"} == found
    assert found["a"] != found["b"]


def test_a_second_run_links_nothing_again(place: OpenPlace, plan: Plan, tmp_path: Path) -> None:
    layouts.link(place, plan, arm="a")
    linked = sorted((tmp_path / "state" / "builds").glob("*/order-0001"))
    times = [path.stat().st_mtime_ns for path in linked]
    layouts.link(place, plan, arm="a")
    assert [path.stat().st_mtime_ns for path in linked] == times
    (tmp_path / "a" / "a.o").write_text("changed ")
    layouts.link(place, plan, arm="a")
    assert len(sorted((tmp_path / "state" / "builds").glob("*/order-0001"))) == 2


def test_programs_are_on_the_disk_before_their_directory_has_its_name(
    place: OpenPlace, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    require = OpenPlace.require

    def noted(here: OpenPlace, argv: Sequence[str], **options: Any) -> str:
        ran.append(argv[0])
        return require(here, argv, **options)

    monkeypatch.setattr(OpenPlace, "require", noted)
    layouts.link(place, plan, arm="a")
    assert ran[ran.index("mv") - 1] == "sync"


def test_programs_of_an_earlier_library_are_linked_again(place: OpenPlace, plan: Plan, tmp_path: Path) -> None:
    del plan
    library = tmp_path / "libx.a"
    linked = with_builds(tmp_path, link=f"{JOIN} {library}")
    for version in ("old", "new"):
        library.write_text(version)
        layouts.link(place, linked, arm="a")
        assert version in run(place, linked, arm="a", block=1)[1]


def test_a_map_that_linking_writes_is_no_reason_to_look_for_other_programs(
    place: OpenPlace, plan: Plan, tmp_path: Path
) -> None:
    del plan
    map_too = """sh -c 'output=$1; map=$2; shift 2; cat "$@" | tee "$output" > "$map"' link"""
    linked = with_builds(tmp_path, link=f"{map_too} {{output}} {tmp_path}/map {{objects}}")
    for _run in range(2):
        for arm in "ab":
            layouts.link(place, linked, arm=arm)
        for block in (1, 2, 3):
            for arm in "ab":
                assert {each[0] for each in run(place, linked, arm=arm, block=block)[1]} == {arm}


@pytest.mark.parametrize(
    "words",
    [
        "-L{0} -lx",
        "-L {0} -L /nowhere -lm -lx",
        "-Wl,-L{0},-lx",
        "-T{0}/libx.a",
        "{0}/libx.a",
        "-Wl,--script={0}/libx.a",
    ],
)
def test_programs_are_kept_by_what_the_command_names(
    place: OpenPlace, plan: Plan, tmp_path: Path, *, words: str
) -> None:
    del plan
    linked = with_builds(tmp_path, link=f"cc {words.format(tmp_path)} -o {{output}} {{objects}}")
    (tmp_path / "state" / "builds").mkdir(parents=True, exist_ok=True)
    kept = set()
    for version in ("old", "new", "old"):
        (tmp_path / "libx.a").write_text(version)
        kept.add(layouts._directory(place, linked, arm="a"))
    assert len(kept) == 2


def test_another_linker_links_again(place: OpenPlace, plan: Plan, tmp_path: Path) -> None:
    del plan
    linker = tmp_path / "linker"
    linked = with_builds(tmp_path, link=f"{linker} {{output}} {{objects}}")
    (tmp_path / "state" / "builds").mkdir(parents=True, exist_ok=True)
    kept = set()
    for version in ("old", "new"):
        linker.write_text(version)
        kept.add(layouts._directory(place, linked, arm="a"))
    assert len(kept) == 2


def test_what_is_in_the_way_is_not_replaced(place: OpenPlace, plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "program").write_text("somebody's")
    with pytest.raises(PlaceError, match="exists, and trials would replace it"):
        layouts.link(place, plan, arm="a")
    assert (tmp_path / "bin" / "program").read_text() == "somebody's"


def test_what_somebody_put_there_after_a_run_is_not_replaced(place: OpenPlace, plan: Plan, tmp_path: Path) -> None:
    layouts.link(place, plan, arm="a")
    layouts.link(place, plan, arm="b")
    assert run(place, plan, arm="b", block=2)
    layouts.link(place, plan, arm="a")
    (tmp_path / "bin" / "program").write_text("somebody's")
    with pytest.raises(PlaceError, match="exists, and trials would replace it"):
        layouts.link(place, plan, arm="a")
    assert (tmp_path / "bin" / "program").read_text() == "somebody's"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"objects": {"a": "/nowhere/*.o", "b": "/nowhere/*.o"}}, r"no object file is called /nowhere/\*\.o"),
        ({"link": "sh -c 'echo same > \"$1\"' link {output} {objects}"}, "3 orders of linking a give 1 different"),
        ({"link": "false {output} {objects}"}, "`false .*` failed"),
    ],
)
def test_what_cannot_be_linked_is_said(
    place: OpenPlace, plan: Plan, tmp_path: Path, *, more: dict[str, Any], said: str
) -> None:
    del plan
    with pytest.raises(PlaceError, match=said):
        layouts.link(place, with_builds(tmp_path, **more), arm="a")


def test_sections_are_listed_in_random_order(place: OpenPlace, tmp_path: Path) -> None:
    """`readelf` lists those of a real object: this interpreter's, which has `.text` alone, so one is made."""
    source = tmp_path / "a.c"
    source.write_text("\n".join(f"int f{number}(void) {{ return {number}; }}" for number in range(6)))
    if place.execute(["cc", "-ffunction-sections", "-c", str(source), "-o", str(tmp_path / "x.o")]).code != 0:
        pytest.skip("no compiler here")
    objects = {arm: str(tmp_path / "x.o") for arm in "ab"}
    plan = with_builds(tmp_path, objects=objects, link="cp {sections} {output}")
    layouts.link(place, plan, arm="a")
    found = [run(place, plan, arm="a", block=block)[1] for block in (1, 2, 3)]
    assert {tuple(sorted(each)) for each in found} == {tuple(f".text.f{number}" for number in range(6))}
    assert len({tuple(each) for each in found}) == 3


def test_without_builds_nothing_happens(place: OpenPlace, tmp_path: Path) -> None:
    layouts.link(place, tiny_plan(), arm="a")
    assert layouts.put(place, tiny_plan(), planned(1, "a")) == ("", [])
    assert not (tmp_path / "state" / "builds").exists()
