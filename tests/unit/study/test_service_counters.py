"""What telemetry's addresses and commands name in braces is what the system is handed in, whatever the levels."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError, Problem
from fairtrial.study.service_counters import CounterCommand

STUDY = """\
study: counters
system: {service: {run: "serve --listen {metrics}", ports: [metrics]}}
workload: {command: {run: sleep 1}}
factors: {arm: {a: {}, b: {workload: {command: {run: sleep 2}}}}}
arm: arm
metrics: {primary: elapsed_s}
telemetry:
  prometheus: {url: "http://{host}:{metrics}/metrics"}
  command: {run: "cat {data}/depth", name: depth}
"""
THERE = "b: {system: {service: {run: null, ports: null, at: {host: h, ports: {metrics: 9100}}}}}"


def problems(directory: Path, *change: str) -> list[Problem]:
    text = STUDY.replace(*change) if change else STUDY
    assert (text == STUDY) == (not change)
    path = directory / "study.yaml"
    path.write_text(text)
    try:
        study.load(path, catalogue=catalogue())
    except InputError as error:
        return error.problems
    return []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            ("{metrics}/", "{metrik}/"),
            (
                "8:21 telemetry.prometheus.url",
                "the system is not handed in `{metrik}`; expected one of `config`, `data`, `host`, `metrics`, `work`",
                "did you mean `metrics`?",
            ),
        ),
        (
            ("{data}", "{Port}"),
            (
                "9:18 telemetry.command.run",
                "the system is not handed in `{Port}`; expected one of `config`, `data`, `host`, `metrics`, `work`",
                "name one of its ports, or write the address itself",
            ),
        ),
        (
            ('{url: "http://{host}:{metrics}/metrics"}', "[{url: 'http://h:1/'}, {url: 'http://h:{q}/'}]"),
            (
                "8:44 telemetry.prometheus.1.url",
                "the system is not handed in `{q}`; expected one of `config`, `data`, `host`, `metrics`, `work`",
                "name one of its ports, or write the address itself",
            ),
        ),
        (
            ("b: {workload: {command: {run: sleep 2}}}", THERE),
            (
                "9:18 telemetry.command.run",
                "the system is not handed in `{data}`, with arm=b; expected one of `host`, `metrics`, `work`",
                "name one of its ports, or write the address itself",
            ),
        ),
    ],
)
def test_what_a_system_is_not_handed_in_is_refused_at_its_line(
    tmp_path: Path, change: tuple[str, str], problem: tuple[str, str, str]
) -> None:
    (found,) = problems(tmp_path, *change)
    assert (f"{found.line}:{found.column} {found.field}", found.message, found.suggestion) == problem


def test_a_system_that_is_not_a_service_is_handed_in_nothing(tmp_path: Path) -> None:
    assert problems(tmp_path) == []
    found = problems(tmp_path, STUDY.splitlines()[1], "system: {command: {}}")
    assert [each.message for each in found] == [
        f"the system is not handed in `{{{name}}}`; only a service is handed in anything"
        for name in ("host", "metrics", "data")
    ]


def test_an_address_is_one_of_http_or_https(tmp_path: Path) -> None:
    assert problems(tmp_path, "http:", "https:") == []
    (found,) = problems(tmp_path, "http:", "unix:")
    assert found.message.startswith("expected `http://HOST:PORT/PATH` or the same by `https`, found 'unix:")


@pytest.mark.parametrize(
    ("text", r"found"),
    [
        (r"used: (?=\d+)", r"(?=\d+)"),
        (r"(?<!\d)1", r"(?<!\d)1"),
        (r"(a)\1", r"\1"),
        (r"(?P<n>a)(?P=n)", r"(?P=n)"),
        (r"(a)?(?(1)b|c)", r"(?(1)b|c)"),
        (r"(?>a+)b", r"(?>a+)b"),
        (r"a*+b", r"*+b"),
        (r"a(?#why)b", r"(?#why)b"),
        (r"(?a)\d", r"(?a)\d"),
        (r"\d\Z", r"\Z"),
        (r"\012", r"\012"),
        (r"\<\d", r"\<\d"),
        (r"[[a]]", r"[[a]]"),
        (r"[a-z&&b]", r"[a-z&&b]"),
        (r"[\b]", r"[\b]"),
        (r"[]a[[:digit:]]", r"[]a[[:digit:]]"),
        (r"(?x) a", r"(?x) a"),
        (r"a{x}", r"{x}"),
        (r"a{,3}", r"{,3}"),
    ],
)
def test_a_regular_expression_that_only_python_knows_is_refused_when_it_is_loaded(text: str, found: str) -> None:
    with pytest.raises(ValueError, match="none of which the sampler knows") as refused:
        CounterCommand.model_validate({"run": "cat x", "name": "x", "regex": text})
    assert f"found {found[:10]!r}" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        r"^used\[\d\]: *(?:-|\+)?(\d+(?:\.\d{1,3})?)\b",
        r"(?im)^(?P<n>[]\w.\-^]+?)$|\x41{2,}",
        r"[[:digit:]_]+}?",
        "(?s:.)é/",
    ],
)
def test_a_regular_expression_that_the_sampler_knows_is_accepted(text: str) -> None:
    assert CounterCommand.model_validate({"run": "cat x", "name": "x", "regex": text}).regex == text


@pytest.mark.parametrize("url", ["http://me:secret@h/metrics", "https://secret@h:1", "me:secret@h:1/metrics"])
def test_an_address_with_a_password_is_refused_without_showing_it(tmp_path: Path, url: str) -> None:
    (found,) = problems(tmp_path, "http://{host}:{metrics}/metrics", url)
    assert found.field == "telemetry.prometheus.url"
    assert found.message == "names a user or a password, which every record would keep; leave out all before the `@`"
