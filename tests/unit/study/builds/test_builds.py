"""Builds as a study names them, and what is refused before anything is linked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairtrial import study
from fairtrial.study.builds import Builds

Load = Callable[..., study.Study]
Mistakes = Callable[..., list[str]]
GIVEN = {
    "program": "/opt/program",
    "objects": {"baseline": "/opt/a/*.o", "mglru": ["/opt/b/*.o", "/opt/main.o"]},
    "link": "cc -o {output} {objects}",
}


def test_objects_are_one_pattern_or_several_and_five_orders_are_linked() -> None:
    builds = Builds.model_validate(GIVEN)
    assert builds.objects == {"baseline": ["/opt/a/*.o"], "mglru": ["/opt/b/*.o", "/opt/main.o"]}
    assert builds.link_orders == 5


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("link", "cc -o program {objects}", r"expected \{output\}, and \{objects\} or \{sections\}"),
        ("link", "cc -o {output} a.o b.o", r"expected \{output\}, and \{objects\} or \{sections\}"),
        ("link", "cc -o {output} {objets}", r"found \{objets\}"),
        ("program", "program", "should match pattern"),
        ("program", "/opt/", "should match pattern"),
        ("link_orders", 0, "greater than or equal to 1"),
    ],
)
def test_what_could_not_link_is_refused(key: str, value: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Builds.model_validate({**GIVEN, key: value})


@pytest.mark.parametrize(
    ("objects", "order", "said"),
    [
        ("{baseline: /a/*.o}", "randomised_blocks", "expected one entry for each level of the arm"),
        ("{baseline: /a/*.o, mglru: /b/*.o}", "duet", "`order: duet` cannot"),
        ("{baseline: /a/*.o, mglru: /b/*.o}", "sequential", "`order: sequential` cannot"),
    ],
)
def test_arms_and_blocks_must_fit(mistakes: Mistakes, small: Any, *, objects: str, order: str, said: str) -> None:
    builds = f"builds: {{program: /p, objects: {objects}, link: 'cc -o {{output}} {{objects}}'}}\n"
    text = small.MGLRU.replace("order: randomised_blocks", f"order: {order}")
    assert any(said in mistake for mistake in mistakes(text + builds))


def test_a_study_with_builds_loads(load: Load, small: Any) -> None:
    builds = "builds: {program: /p, objects: {baseline: /a/*.o, mglru: /b/*.o}, link: 'cc -o {output} {objects}'}\n"
    found = load(small.MGLRU + builds).file.builds
    assert found is not None
    assert found.program == "/p"
