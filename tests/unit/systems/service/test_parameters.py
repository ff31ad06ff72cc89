from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from fairtrial.systems.service.parameters import ServiceParameters

WRITTEN: dict[str, Any] = {"configuration": {"format": "equals"}, "read_back": "cat {option}"}


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"run": "d -p {htpp}", "ports": ["http"]}, "run: {htpp} is unknown (did you mean {http}?)"),
        ({"run": "d", "stop": "d {dat}"}, "stop: {dat} is unknown (did you mean {data}?)"),
        ({"run": "d", "version": "d -v {data}"}, "version: {data} is handed in when the service starts"),
        (
            {"run": "d", "ports": ["api"], "data": {"create": ["true", "init {data} {api}"]}},
            "data.create: {api} is handed in when the service starts",
        ),
        ({"run": "d", "data": {"create": ["i {config}"]}}, "data.create: {config} is handed in when the service sta"),
        ({"run": "d", "environment": {"PATH": "{work}"}}, "environment.PATH: {work} is handed in when the service"),
        ({"run": "d", "user": "root"}, "never runs as root"),
        ({"run": "d", "ports": ["http", "port"]}, "ports: port is the name of something else"),
        ({"run": "d", "ports": ["seed"]}, "ports: seed is the name of something else"),
        (
            {
                **WRITTEN,
                "run": "d",
                "ports": ["http"],
                "configuration": {"format": "template", "text": "{http}"},
                "options": {"http": 80},
            },
            "options: http is the name of what is handed in",
        ),
        ({"run": "d", "ready": {"port": "http"}}, "ready.port: http is not one of `ports`"),
        ({"run": "d", "ready": {"http": "http://u:pw@{host}/h"}}, "names a user or a password"),
        ({"run": "d", "ready": {}}, "expected exactly one of `command`, `port` and `http`"),
        ({"run": "d", "ports": ["data"]}, "ports: data is the name of something else"),
        ({"run": "d", "options": {"a": 1}, "read_back": "x"}, "`configuration` does not say how they are written"),
        ({**WRITTEN, "run": "d", "options": {"a": 1}, "read_back": None}, "`read_back` does not say"),
        ({**WRITTEN, "run": "d", "options": {"a": 1}, "read_back": {"b": "x"}}, "no command for the option a"),
        ({**WRITTEN, "run": "d", "configuration": {"format": "flags"}, "options": {"a": 1}}, "the word {options}"),
        (
            {**WRITTEN, "run": "sh -c 'd {options} x'", "configuration": {"format": "flags"}, "options": {"a": 1}},
            "the word {options}",
        ),
        (
            {**WRITTEN, "run": "d", "options": {"a": "1\nb=2"}},
            "options.a: a line break cannot be written in the format",
        ),
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
        ({}, "expected exactly one of `run` and `at`"),
        ({"run": "d", "at": {"host": "h"}}, "expected exactly one of `run` and `at`"),
        ({"at": {"host": "h"}, "user": "bench"}, "user: a service that is there already is not started"),
        (
            {"at": {"host": "h", "ports": {"http": 1}}, "ready": {"port": "http"}},
            "nothing is known of another's process",
        ),
        ({"at": {"host": "h"}, "options": {"a": 1}, "read_back": "r"}, "`set_by` does not say how they are set"),
        ({"run": "d", "set_by": "s {option} {value}"}, "set_by: a service that is started has its options from"),
        ({"at": {"host": "h", "ports": {"http": 1}}, "set_by": "s {htpp}"}, "set_by: {htpp} is unknown"),
        ({"run": "d", "user": "-root"}, "user"),
        ({"at": {"host": "h"}, "ready": {"command": "r {data}"}}, "ready: {data} is handed in to a service that is st"),
        ({"at": {"host": "h"}, "version": "v {work}"}, "version: {work} is handed in when the service starts"),
        ({"at": {"host": "h"}, "version": "v {hots}"}, "version: {hots} is unknown (did you mean {host}?)"),
        ({"at": {"host": "h", "restore": {"command": "r {hots}"}}}, "at.restore: {hots} is unknown"),
    ],
)
def test_what_could_not_reach_the_service_is_refused_with_the_fix(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as error:
        ServiceParameters.model_validate(parameters)
    assert says in str(error.value)


def test_what_is_there_before_a_start_may_be_named_before_it() -> None:
    data = {"create": ["init --host {host} {data} {work}"]}
    ServiceParameters.model_validate({"run": "/opt/d", "data": data, "environment": {"PATH": "{work}"}})


def test_the_version_of_one_that_is_there_is_asked_at_its_address() -> None:
    ServiceParameters.model_validate({"at": {"host": "h", "ports": {"redis": 1}}, "version": "v -h {host} -p {redis}"})


def test_braces_that_are_no_placeholder_stay() -> None:
    """As nginx has them around blocks, and JSON around everything."""
    text = 'events {\n}\nserver { listen {http}; } {"a": 1}'
    configuration = {"format": "template", "text": text}
    reading = {"read_back": "awk '{print $2}'", "options": {}}
    ServiceParameters.model_validate({"run": "d", "ports": ["http"], "configuration": configuration, **reading})


def test_a_template_takes_options_by_any_name() -> None:
    configuration = {"format": "template", "text": "{max-conn} {Log.Level}"}
    options = {"max-conn": 1, "Log.Level": "x"}
    ServiceParameters.model_validate({**WRITTEN, "run": "d", "configuration": configuration, "options": options})
