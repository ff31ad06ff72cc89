"""What a metric says of counters: a function of one metric, by its labels; and what a study may not say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fairtrial.errors import InputError
from fairtrial.study import Study, dump
from fairtrial.study import counter_expressions as expressions
from fairtrial.study.counter_expressions import CounterExpression

REQUESTS = {"code": "200", "method": "get"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rate(a_total)", CounterExpression("rate", "a_total")),
        (" max ( ns:b {} ) ", CounterExpression("max", "ns:b")),
        (
            r'delta(a{code="200", path!="/\"x\\",method=~"get|head",host!~"b.*",})',
            CounterExpression(
                "delta",
                "a",
                (("code", "=", "200"), ("path", "!=", '/"x\\'), ("method", "=~", "get|head"), ("host", "!~", "b.*")),
            ),
        ),
    ],
)
def test_an_expression_is_a_function_a_metric_and_labels(text: str, expected: CounterExpression) -> None:
    assert expressions.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a_total", "expected one of rate, delta, mean, max"),
        ("sum(a_total)", "expected one of rate, delta, mean, max"),
        ("rate(a_total[5m])", "expected one of rate"),
        ("rate(a_total) + rate(b_total)", "expected one of rate"),
        ("rate(a{code=200})", "expected labels such as"),
        ('rate(a{code="200" method="get"})', "expected labels such as"),
        ('rate(a{code=~"("})', "code: not a regular expression"),
    ],
)
def test_another_text_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        expressions.parse(text)


@pytest.mark.parametrize(
    ("labels", "selected"),
    [
        ("", True),
        ('code="200"', True),
        ('code="20"', False),
        ('code=~"2.."', True),
        ('code=~"2"', False),
        ('code!="500",method="get"', True),
        ('code!~"2..",method="get"', False),
        ('host=""', True),
        ('host="a"', False),
    ],
)
def test_labels_select_series_and_a_missing_one_is_empty(*, labels: str, selected: bool) -> None:
    assert expressions.parse(f"rate(a{{{labels}}})").selects(REQUESTS) == selected


def test_labels_of_a_series_are_those_that_the_exporter_wrote() -> None:
    assert expressions.labels_of("up") == {}
    assert expressions.labels_of(r'a{path="C:\\x\n",le="+Inf"}') == {"path": "C:\\x\n", "le": "+Inf"}


STUDY = """\
study: counters
workload: {tpcc: {transactions: 1}}
system: {mariadb: {}}
factors: {memory: {low: {}, high: {system: {mariadb: {options: {x: 1}}}}}}
arm: memory
metrics: {primary: requests, requests: {prometheus: rate(a_total), better: higher}}
telemetry: {prometheus: {url: 'http://h:1/metrics'}}
"""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("rate(a_total)", "rats(a_total)"), "metrics.requests.prometheus: expected one of rate, delta, mean, max"),
        (("primary: requests", "primary: request"), "unknown metric `request`"),
        ((", better: higher", ""), "metrics.requests.better: required but missing"),
        (("better: higher", "better: higher, command: mean(b)"), "exactly one of `prometheus` and `command`"),
        (("requests: {prom", "requests_error: {prom"), "names that end in _error are those of error bars"),
        (
            ("{prometheus: {url: 'http://h:1/metrics'}}", "{}"),
            "study.yaml:6:40: metrics.requests: made from `prometheus`, and",
        ),
        (("{prometheus: rate(a_total)", "{command: rate(a_total)"), "metrics.requests: made from `command`, and"),
        (("http:", "ftp:"), "telemetry.prometheus.url: expected `http://HOST:PORT/PATH`"),
        (("'}}", "', authorities: ca.pem}}"), "telemetry.prometheus.authorities: "),
        (("'}}", "', interval: 10ms}}"), "telemetry.prometheus.interval: "),
        (("'}}", "', match: [a b]}}"), "telemetry.prometheus.match"),
        (("'}}", "'}, command: {run: x, name: y, regex: '(', json_path: a}}"), "not a regular expression"),
        (
            ("'}}", "'}, command: {run: x, name: y, regex: 'a', json_path: a}}"),
            "expected one of `json_path` and `regex`",
        ),
        (
            ("'}}", "', match: [b*, a]}}"),
            "metrics.requests.prometheus: no `match` of telemetry.prometheus keeps a_total",
        ),
        (("primary: requests,", "primari: requests,"), "did you mean `primary`"),
    ],
)
def test_what_is_wrong_with_a_metric_of_the_studys_own_is_said(
    load: Callable[[str], Study], change: tuple[str, str], reason: str
) -> None:
    assert change[0] in STUDY
    with pytest.raises(InputError) as refused:
        load(STUDY.replace(*change))
    assert reason in str(refused.value)


def test_a_metric_of_the_studys_own_does_not_hide_another(load: Callable[[str], Study]) -> None:
    with pytest.raises(InputError, match="a metric of this name is measured already"):
        load(STUDY.replace("requests", "throughput_tpm"))


def test_what_grew_is_a_count_and_endpoints_are_one_or_a_list(load: Callable[[str], Study]) -> None:
    made = "made: {prometheus: delta(a_total), better: lower, unit: B}, requests: {prom"
    text = STUDY.replace("requests: {prom", made).replace("primary: requests", "primary: [requests, made]")
    study = load(text)
    kinds = {name: (each.kind, each.unit) for name, each in study.definitions.items()}
    assert kinds == {"requests": ("wall_clock", ""), "made": ("count", "B")}
    more = text.replace("{url: 'http://h:1/metrics'}", "[{url: 'http://h:1/metrics'}, {url: 'http://h:2/metrics'}]")
    assert [each.url for each in load(more).file.telemetry.prometheus] == ["http://h:1/metrics", "http://h:2/metrics"]
    again = load(dump(study))
    assert again == study
