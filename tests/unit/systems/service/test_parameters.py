from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from fairtrial.systems.service.parameters import ServiceParameters

WRITTEN: dict[str, Any] = {"configuration": {"format": "equals"}, "read_back": "cat {option}"}


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"run": "d -p {http}"}, "run: {http} is unknown; expected one of {config}, {data}, {host}, {options}, {work}"),
        ({"run": "d", "stop": "d {option}"}, "stop: {option} is unknown"),
        ({"run": "d", "ready": {"port": "http"}}, "ready.port: http is not one of `ports`"),
        ({"run": "d", "ready": {}}, "expected exactly one of `command` and `port`"),
        ({"run": "d", "ports": ["data"]}, "ports: data is the name of something else"),
        ({"run": "d", "options": {"a": 1}, "read_back": "x"}, "`configuration` does not say how they are written"),
        ({**WRITTEN, "run": "d", "options": {"a": 1}, "read_back": None}, "`read_back` does not say"),
        ({**WRITTEN, "run": "d", "options": {"a": 1}, "read_back": {"b": "x"}}, "no command for the option a"),
        ({**WRITTEN, "run": "d", "configuration": {"format": "flags"}, "options": {"a": 1}}, "the word {options}"),
        (
            {
                **WRITTEN,
                "run": "d",
                "configuration": {"format": "template", "text": "b {b}"},
                "options": {"a": 1, "b": 2},
            },
            "no place for the option a: write {a}",
        ),
        ({"run": "d 'open"}, "run"),
        ({"run": "d", "user": "-root"}, "user"),
    ],
)
def test_what_could_not_reach_the_service_is_refused_with_the_fix(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as error:
        ServiceParameters.model_validate(parameters)
    assert says in str(error.value)


def test_braces_that_are_no_placeholder_stay() -> None:
    """As nginx has them around blocks, and JSON around everything."""
    text = 'events {\n}\nserver { listen {http}; } {"a": 1}'
    configuration = {"format": "template", "text": text}
    ServiceParameters.model_validate({"run": "d", "ports": ["http"], "configuration": configuration})
