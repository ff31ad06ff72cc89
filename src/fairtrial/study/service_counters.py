"""`telemetry.prometheus`, `telemetry.command` and the metrics of a study that are made from them.

Owns what can be said of each. How one is read and computed are the sampler's and the metrics'.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fairtrial.study import counter_expressions
from fairtrial.study.catalogue import Better, MetricDefinition
from fairtrial.study.counter_expressions import CounterExpression
from fairtrial.study.tree.nodes import Branch, Listing, Path, Scalar, Tree
from fairtrial.study.tree.quantities import CommandLine, Seconds

FASTEST_S: Final = 0.1  # the sampler refuses less
MOST_SOURCES: Final = 20  # each is a thread of the sampler's
ERROR_SUFFIX: Final = "_error"
AUTHORITIES: Final = "/etc/ssl/certs/ca-certificates.crt"  # of Debian and most others
GLOB: Final = r"^[a-zA-Z0-9_:*]+$"
# What Python's regular expressions and the sampler's have in common (crate regex-lite, "Syntax").
_ESCAPE: Final = r"\\(?:[DSWdswafnrtv!-/:;=?@\[-`{-~ ]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_NAMED: Final = r"\[:\^?(?:al(?:num|pha)|ascii|blank|cntrl|x?digit|graph|lower|p(?:rint|unct)|space|upper|word):\]"
_SET: Final = rf"\[\^?+\]?+(?:{_ESCAPE}|{_NAMED}|(?!&&|--|~~)[^\[\]\\])*+\]"
_GROUP: Final = r"\((?:\?(?:P<[a-zA-Z_][a-zA-Z0-9_]*>|[ims]*(?:-[ims]+)?:|[ims]+\))|(?!\?))"
_REPETITION: Final = r"(?:[*+?]|\{\d+(?:,\d*)?\})\??(?![*+?{])"
_COMMON: Final = re.compile(rf"(?:[^\\\[(){{*+?]|\)|\\[AbB]|{_ESCAPE}|{_SET}|{_GROUP}|{_REPETITION})*+", re.DOTALL)


def without_credentials(url: str) -> str:
    """The address.

    Raises:
        ValueError: it names a user or a password.
    """
    if re.match(r"([^/]*//)?[^/]*@", url):
        raise ValueError("names a user or a password, which every record would keep; leave out all before the `@`")
    return url


def _http(url: str) -> str:
    url = without_credentials(url)
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", url):
        raise ValueError(f"expected `http://HOST:PORT/PATH` or the same by `https`, found {url!r}")
    return url


def _pattern(text: str) -> str:
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # `[[:digit:]]`, which the sampler knows
            groups = re.compile(text).groups
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    common = _COMMON.match(text)
    if common is not None and (rest := text[common.end() :]):
        raise ValueError(
            "expected a regular expression without look-around, backreferences, atomic groups, possessive repetitions, "
            "comments, flags but i, m and s, nested sets or a bare `{`, none of which the sampler knows; found "
            f"{rest[:10]!r}"
        )
    if groups > 1:
        raise ValueError(f"expected one group ( ) at most, which holds the number, found {groups}")
    return text


def _expression(text: str) -> str:
    counter_expressions.parse(text)
    return text


Expression = Annotated[str, AfterValidator(_expression)]
MetricName = Annotated[str, Field(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")]


class CountersModel(BaseModel):
    """Frozen, and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CounterSource(CountersModel):
    """What is read again and again beside the load."""

    interval: Seconds | None = Field(
        None, ge=FASTEST_S, le=60, description="Time between two readings, from 100ms (default: `telemetry.interval`)."
    )

    def interval_ms(self, default_ms: int) -> int:
        """Time between two readings, given that of telemetry."""
        return max(default_ms, round(FASTEST_S * 1000)) if self.interval is None else round(self.interval * 1000)


class Exporter(CounterSource):
    """A text endpoint of counters and gauges, in the format of Prometheus or OpenMetrics."""

    url: Annotated[str, AfterValidator(_http)] = Field(
        description="Address of the endpoint, as the system's place sees it; may name what a `service` is handed in: "
        "`http://{host}:{metrics}/metrics`."
    )
    authorities: str = Field(
        AUTHORITIES,
        pattern="^/",
        description="PEM file at the place, with the authorities that may have signed the certificate of an `https` "
        "address.",
    )
    match: list[Annotated[str, Field(pattern=GLOB)]] = Field(
        [], description="Names of metrics to keep, `*` standing for any part of one (default: all)."
    )

    def keeps(self, metric: str) -> bool:
        """Whether a metric of this name is kept."""
        return not self.match or any(fnmatchcase(metric, pattern) for pattern in self.match)


class CounterCommand(CounterSource):
    """A command at the system's place whose output gives one value at each reading."""

    run: CommandLine = Field(
        description="Command line, split as a shell would but run without one; may name what a `service` is handed in."
    )
    name: MetricName = Field(description="What the value is called in expressions.")
    type: Literal["gauge", "counter"] = Field("gauge", description="Whether the value only grows (`counter`).")
    json_path: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_.$\[\]-]+$",
        description="Path to the number in the output, which is a JSON document: `pool[0].used`.",
    )
    regex: Annotated[str, AfterValidator(_pattern)] | None = Field(
        None,
        description="Regular expression that finds the number in the output: its group, else the whole match. Without "
        "`json_path` and `regex` the output is the number.",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.json_path is not None and self.regex is not None:
            raise ValueError("expected one of `json_path` and `regex`, found both")
        return self


class CounterMetric(CountersModel):
    """A metric of the study's own, made from counters and gauges that others tell: exactly one of these two."""

    prometheus: Expression | None = Field(
        None,
        description="`rate`, `delta`, `mean` or `max` over the measurement window of one metric of the endpoints: "
        '`rate(http_requests_total{code="200"})`. Series that differ in labels not named are summed.',
    )
    command: Expression | None = Field(None, description="The same of a value of `telemetry.command`.")
    unit: str = Field("", description="Unit, printed beside values.")
    better: Better = Field(description="Direction in which the metric gets better.")
    label: str | None = Field(None, description="Name in reports (default: the metric's name).")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.prometheus is None) == (self.command is None):
            raise ValueError("expected exactly one of `prometheus` and `command`")
        return self

    @property
    def expression(self) -> CounterExpression:
        """What it says."""
        return counter_expressions.parse(self.prometheus or self.command or "")

    @property
    def source(self) -> Literal["prometheus", "command"]:
        """Where it is read."""
        return "command" if self.prometheus is None else "prometheus"

    def definition(self, name: str) -> MetricDefinition:
        """It as every metric of a study is defined: what grew is a count, as long as readings leave no error."""
        return MetricDefinition(
            name=name,
            label=self.label or name,
            unit=self.unit,
            better=self.better,
            kind="count" if self.expression.function == "delta" else "wall_clock",
            source=f"telemetry-{self.source}-*.parquet: {self.prometheus or self.command}",
        )


def _one_or_list(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [{"type": "array", "items": schema["items"]}, schema.pop("items")]
    schema.pop("type")


def one_or_more(description: str) -> Any:
    """A field for a list, of which one mapping stands for a list of one."""
    return Field([], max_length=MOST_SOURCES, description=description, json_schema_extra=_one_or_list)


_listed: Callable[[Any], Any] = lambda value: [value] if isinstance(value, Mapping) else value  # noqa: E731
Exporters = Annotated[list[Exporter], BeforeValidator(_listed)]
CounterCommands = Annotated[list[CounterCommand], BeforeValidator(_listed)]


def with_placeholders(telemetry: Branch) -> Iterator[tuple[Path, Scalar]]:
    """Every text of a study's telemetry that may name what a system is handed in, with its path."""
    for section, key in (("prometheus", "url"), ("command", "run")):
        node = telemetry.node.entries.get(section)
        below = (
            [((str(index),), item) for index, item in enumerate(node.items)]
            if isinstance(node, Listing)
            else [((), node)]
        )
        for path, item in below:
            text = item.entries.get(key) if isinstance(item, Tree) else None
            if isinstance(text, Scalar):
                yield (*telemetry.field(section), *path, key), text
