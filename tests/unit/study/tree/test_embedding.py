"""Files that a kind's parameters name become part of the study that names them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter

from fairtrial import study
from fairtrial.errors import InputError
from fairtrial.study.catalogue import Catalogue, Kind, MetricDefinition
from fairtrial.study.tree.nodes import Branch
from fairtrial.study.tree.problems import Problems

SPEED = MetricDefinition(name="speed", label="speed", unit="", better="higher", kind="count")


class Recipe(BaseModel):
    model_config = ConfigDict(extra="forbid")

    flour: int
    water: int = 1
    notes: dict[str, str] = {}


class Baking(BaseModel):
    model_config = ConfigDict(extra="forbid")

    heat: int = 200
    file: str | None = None
    recipe: Recipe | None = None


def note_dry(baking: Baking, branch: Branch, problems: Problems) -> None:
    if baking.recipe is not None and baking.recipe.water == 0:
        recipe = branch.below("recipe")
        problems.add("too dry", recipe.node.where("water"), field=recipe.field("water"))


def kind(name: str, model: type[BaseModel], **rest: Any) -> Kind:
    return Kind(name=name, summary="", parameters=TypeAdapter(model), **rest)


class Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


CATALOGUE = Catalogue(
    places={"local": kind("local", Nothing)},
    systems={"command": kind("command", Nothing)},
    workloads={
        "bake": kind("bake", Baking, metrics=lambda _baking: {"speed": SPEED}, files={"file": "recipe"}, check=note_dry)
    },
    settings={},
    telemetry_metrics={},
)
STUDY = """\
study: bread
workload: {bake: {file: recipes/rye.yaml}}
factors:
  what:
    rye: {}
    hotter: {workload: {bake: {heat: 240}}}
    wetter: {workload: {bake: {recipe: {water: 3}}}}
    wheat: {workload: {bake: {file: recipes/wheat.yaml}}}
arm: what
metrics: {primary: speed}
sizes:
  large: {workload: {bake: {file: recipes/large.yaml}}}
"""
FILES = {
    "rye.yaml": "flour: 5\nnotes: {oven: stone}\n",
    "wheat.yaml": "flour: 7\nwater: 2\n",
    "large.yaml": "flour: 500\n",
}
Load = Callable[..., study.Study]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    (tmp_path / "recipes").mkdir()

    def found(text: str = STUDY, files: dict[str, str] | None = None, **options: Any) -> study.Study:
        for name, content in (FILES | (files or {})).items():
            (tmp_path / "recipes" / name).write_text(content, encoding="utf-8")
        (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
        return study.load(tmp_path / "study.yaml", catalogue=CATALOGUE, **options)

    return found


def recipe(loaded: study.Study, level: str) -> dict[str, Any]:
    found: dict[str, Any] = loaded.resolve({"what": level}).workload.root["bake"]["recipe"]
    return found


def test_a_file_s_content_stands_for_its_name_and_levels_overlay_it(load: Load) -> None:
    loaded = load()
    assert recipe(loaded, "rye") == {"flour": 5, "water": 1, "notes": {"oven": "stone"}}
    assert recipe(loaded, "wetter") == {"flour": 5, "water": 3, "notes": {"oven": "stone"}}
    assert loaded.resolve({"what": "hotter"}).workload.root["bake"]["heat"] == 240


def test_another_file_replaces_the_whole_of_the_first(load: Load) -> None:
    assert recipe(load(), "wheat") == {"flour": 7, "water": 2, "notes": {}}
    loaded = load(size="large")
    assert recipe(loaded, "rye") == {"flour": 500, "water": 1, "notes": {}}
    assert recipe(loaded, "wheat") == {"flour": 7, "water": 2, "notes": {}}, "a level is over its size"


def test_the_command_line_names_files_from_where_it_is_typed(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "recipes")
    loaded = load(overrides=["workload.bake.file=large.yaml", "workload.bake.recipe.water=9"])
    assert recipe(loaded, "rye") == {"flour": 500, "water": 9, "notes": {}}


def test_a_file_is_looked_for_beside_the_included_file_that_names_it(load: Load) -> None:
    shared = {"shared.yaml": "workload: {bake: {file: wheat.yaml}}\n"}
    text = STUDY.replace("workload: {bake: {file: recipes/rye.yaml}}\n", "include: recipes/shared.yaml\n", 1)
    text = text.replace("recipes/wheat.yaml", "recipes/large.yaml").partition("sizes:")[0]
    assert recipe(load(text, shared), "rye")["flour"] == 7


def test_a_change_of_the_file_is_a_change_of_the_study(load: Load) -> None:
    first = load()
    assert load() == first
    assert load(files={"rye.yaml": "flour: 6\n"}) != first
    assert load(files={"rye.yaml": "# the same\nnotes:\n  oven: stone\nflour: 5\n"}).base == first.base


def mistakes(load: Load, *arguments: Any) -> list[str]:
    with pytest.raises(InputError) as raised:
        load(*arguments)
    directory = str(Path(raised.value.problems[-1].file).parent)
    return [str(problem).replace(directory.removesuffix("/recipes") + "/", "") for problem in raised.value.problems]


def test_mistakes_in_files_are_named_at_their_own_lines_together_with_the_study_s(load: Load) -> None:
    wrong = {"rye.yaml": "flour: many\n\nwatr: 2\n", "wheat.yaml": "flour: 7\nwater: 0\n"}
    assert mistakes(load, STUDY.replace("heat: 240", "heat: hot"), wrong) == [
        (
            "recipes/rye.yaml:1:8: workload.bake.recipe.flour: expected a whole number, found 'many', "
            "with what=rye|hotter|wetter"
        ),
        (
            "recipes/rye.yaml:3:1: workload.bake.recipe.watr: unknown key; expected one of `flour`, `water`, `notes`, "
            "with what=rye|hotter|wetter (did you mean `water`?)"
        ),
        "recipes/wheat.yaml:2:1: workload.bake.recipe.water: too dry, with what=wheat",
        "study.yaml:6:38: workload.bake.heat: expected a whole number, found 'hot', with what=hotter",
    ]


def test_every_file_that_cannot_be_read_is_named_where_it_was_asked_for(load: Load) -> None:
    text = STUDY.replace("rye.yaml", "barley.yaml").replace("wheat.yaml", "oats.yaml")
    first, second = mistakes(load, text)
    assert first.startswith("study.yaml:2:25: workload.bake.file: cannot read ")
    assert second.startswith("study.yaml:8:37: workload.bake.file: cannot read ")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("flour: [\n", "recipes/rye.yaml:2:1: not YAML: "),
        ("- flour\n", "recipes/rye.yaml:1:1: expected a mapping, found a list"),
        ("", "recipes/rye.yaml: expected a mapping, found nothing"),
    ],
)
def test_a_file_that_holds_no_mapping_is_named_itself(load: Load, content: str, expected: str) -> None:
    (problem,) = mistakes(load, STUDY, {"rye.yaml": content})
    assert problem.startswith(expected)


def test_a_file_and_its_content_in_one_place_contradict_each_other(load: Load) -> None:
    text = STUDY.replace("file: recipes/rye.yaml", "file: recipes/rye.yaml, recipe: {flour: 1}")
    assert mistakes(load, text)[0].startswith(
        "study.yaml:2:43: workload.bake.recipe: `file` and `recipe` are both present"
    )
