"""What a study says of a service: its command lines, how its options reach it, and how they are read back."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fairtrial.study.service_counters import without_credentials
from fairtrial.study.tree.quantities import PLACEHOLDER, CommandLine, Seconds, bare_program
from fairtrial.systems.existing.parameters import RestoreCommand

Option = str | int | float | bool
Format = Literal["space", "equals", "ini", "yaml", "toml", "json", "flags", "environment", "template"]
PortName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]

HANDED_IN: Final = ("config", "data", "host", "work")  # beside the ports, by their names
OF_FILES: Final = {"config", "data"}  # of these: where a service that is started finds what is made for it
WORK: Final = "work"
OPTIONS: Final = "options"  # in `run`: a word for each option
OPTION: Final = "option"  # in `read_back`: the name of one
VALUE: Final = "value"  # in `set_by`: what it is set to
LINES: Final = {"space", "equals", "ini"}  # formats in which a line break begins another option
OF_A_START: Final = ("configuration", "data", "environment", "ports", "stop", "user")
TAKEN: Final = ("metrics_file", "seed", "trial_directory")  # a load's FAIRTRIAL_ variables of these names are others
NEAR: Final = 0.7  # as alike as a slip of the pen makes two names (difflib)


def _address(value: object) -> object:
    return without_credentials(value) if isinstance(value, str) else value


class Ready(BaseModel):
    """How one sees that a service can be used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: CommandLine | None = Field(None, description="Command line that succeeds once it is ready.")
    port: PortName | None = Field(None, description="Name of the port on which it listens once it is ready.")
    http: Annotated[str, BeforeValidator(_address)] | None = Field(
        None,
        pattern="^http://",
        description="URL that answers with a status of 200 to 299 once it is ready: `http://{host}:{api}/health`.",
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(way is not None for way in (self.command, self.port, self.http)) != 1:
            raise ValueError("expected exactly one of `command`, `port` and `http`")
        return self


class Configuration(BaseModel):
    """How options are written for a service."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Format = Field(
        description="`space` (`key value`), `equals` (`key=value`), `ini` (`section.key`), `yaml`, `toml` and `json` "
        "(`table.key`), `flags` (`--key=value`, where `run` says `{options}`), `environment`, or `template`."
    )
    text: str = Field(
        "",
        description="Lines before the options; a document below them for yaml and json; for `template` the whole file, "
        "with `{NAME}` for each option.",
    )


class Data(BaseModel):
    """Data that are made once, kept, and restored for every trial."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    create: tuple[CommandLine, ...] = Field((), description="Command lines run in turn before the service starts.")
    load: tuple[CommandLine, ...] = Field((), description="Command lines run in turn while it runs, to fill it.")
    options: tuple[str, ...] = Field((), description="Names of options that it has while data are made.")


class ServiceAt(BaseModel):
    """A service that is there already: it is neither started nor stopped, and its options are restored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field(min_length=1, description="Host name or address, as the place sees it.")
    ports: dict[PortName, Annotated[int, Field(ge=1, le=65535)]] = Field(
        default_factory=dict, description="Ports on which it listens, by name."
    )
    restore: Literal["none"] | RestoreCommand = Field(
        "none", description="State before every trial: a command's, or `none`: what the trial before left."
    )


class ServiceParameters(BaseModel):
    """A program that runs before, during and after a trial's load. Command lines may name what is handed in.

    `{data}` and `{work}` are directories, `{config}` the file made from the options, `{host}` the address of the
    loopback, and every entry of `ports` is a free port by its name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: CommandLine | None = Field(
        None,
        description="Command line of the service in the foreground, split as a shell would but run without one.",
    )
    at: ServiceAt | None = Field(None, description="Where it is, if it is there already, instead of `run`.")
    ready: Ready | None = Field(None, description="How one sees that it is ready (default: at once).")
    ready_timeout: Seconds = Field(60.0, gt=0, description="Time limit for it to become ready.")
    stop: CommandLine | None = Field(None, description="Command line that stops it (default: SIGTERM).")
    version: CommandLine | None = Field(None, description="Command line that prints its version, for the record.")
    environment: dict[str, str] = Field(default_factory=dict, description="Variables added to its environment.")
    user: str | None = Field(
        None,
        pattern=r"^[a-z_][a-z0-9_-]*$",
        description="User that it runs as, where the agent is root (default: as servers do, never root).",
    )
    ports: tuple[PortName, ...] = Field((), description="Names of ports that it listens on.")
    configuration: Configuration | None = Field(None, description="How options are written for it.")
    options: dict[str, Option] = Field(default_factory=dict, description="Options by name, for levels to overlay.")
    read_back: CommandLine | dict[str, CommandLine] | None = Field(
        None,
        description="Command line whose last line is the value that is in effect, with `{option}` for the name, or one "
        "for each option.",
    )
    set_by: CommandLine | None = Field(
        None,
        description="Command line that sets an option of a service that is there already, with `{option}` and "
        "`{value}`; it also restores the value that was read back before.",
    )
    data: Data | None = Field(None, description="Data that it starts from (default: an empty directory).")

    @model_validator(mode="after")
    def _is_started_or_there(self) -> Self:
        if (self.run is None) == (self.at is None):
            raise ValueError("expected exactly one of `run` and `at`")
        if self.at is not None and (started := [name for name in OF_A_START if getattr(self, name)]):
            raise ValueError(f"{started[0]}: a service that is there already is not started: remove it")
        if self.at is not None and self.ready is not None and self.ready.port is not None:
            raise ValueError("ready.port: nothing is known of another's process: use `command` or `http`")
        if self.at is None and self.set_by is not None:
            raise ValueError("set_by: a service that is started has its options from `configuration`")
        return self

    @property
    def port_names(self) -> tuple[str, ...]:
        """Of a service that is started or there, in the study's order."""
        return self.ports if self.at is None else tuple(self.at.ports)

    @model_validator(mode="after")
    def _names_what_is_handed_in(self) -> Self:
        taken = {*HANDED_IN, *TAKEN, OPTIONS, OPTION, VALUE}
        if clash := taken.intersection(self.port_names) | {"port"}.intersection(self.port_names[1:]):
            raise ValueError(f"ports: {min(clash)} is the name of something else: choose another")
        if self.user == "root":
            raise ValueError("user: a service never runs as root: name another user")
        if self.ready is not None and self.ready.port is not None and self.ready.port not in self.ports:
            raise ValueError(f"ready.port: {self.ready.port} is not one of `ports`")
        for field, text, known in self._texts():
            for name in PLACEHOLDER.findall(text):
                near = difflib.get_close_matches(name, known, n=1, cutoff=NEAR)
                if near and name not in known:
                    raise ValueError(f"{field}: {{{name}}} is unknown (did you mean {{{near[0]}}}?)")
                if self.at is not None and name in OF_FILES:
                    raise ValueError(
                        f"{field}: {{{name}}} is handed in to a service that is started, and this one is there"
                    )
        for field, text, late in self._early():
            if early := late.intersection(PLACEHOLDER.findall(text)):
                raise ValueError(f"{field}: {{{min(early)}}} is handed in when the service starts, and this is before")
        return self

    def _early(self) -> Iterator[tuple[str, str, set[str]]]:
        """Every text that is used before a start, with its field and what it cannot name."""
        late = {*HANDED_IN, *self.ports} if self.at is None else {WORK}
        yield "version", self.version or "", late
        if self.run is not None and bare_program(self.run):
            yield "environment.PATH", self.environment.get("PATH", ""), late  # where the program is looked for
        for text in self.data.create if self.data is not None else ():
            yield "data.create", text, {"config", *self.ports}

    @model_validator(mode="after")
    def _options_arrive(self) -> Self:
        if not self.options:
            return self
        if self.at is not None and self.set_by is None:
            raise ValueError("options are given, and `set_by` does not say how they are set")
        if self.at is None and self.configuration is None:
            raise ValueError("options are given, and `configuration` does not say how they are written")
        if self.read_back is None:
            raise ValueError("options are given, and `read_back` does not say how to see that they are in effect")
        if isinstance(self.read_back, dict) and (missing := self.options.keys() - self.read_back.keys()):
            raise ValueError(f"read_back: no command for the option {min(missing)}")
        return self

    @model_validator(mode="after")
    def _options_are_written(self) -> Self:
        if self.configuration is None or not self.options:
            return self
        if self._format == "flags" and f"{{{OPTIONS}}}" not in shlex.split(self.run or ""):
            raise ValueError("configuration.format is flags: say in `run` where they stand, by the word {options}")
        if self._format in LINES:
            for name, value in self.options.items():
                if {"\n", "\r"}.intersection(f"{name}{value}"):
                    raise ValueError(f"options.{name}: a line break cannot be written in the format {self._format}")
        if self._format == "template":
            if clash := self.options.keys() & {*HANDED_IN, *self.ports}:
                raise ValueError(f"options: {min(clash)} is the name of what is handed in: rename the port")
            named = set(PLACEHOLDER.findall(self.configuration.text))
            if missing := set(self.options) - named:
                name = min(missing)
                raise ValueError(f"configuration.text: no place for the option {name}: write {{{name}}}")
        return self

    @property
    def _format(self) -> Format | None:
        return None if self.configuration is None else self.configuration.format

    def _texts(self) -> Iterator[tuple[str, str, set[str]]]:
        """Every text that may name what is handed in, with its field and what it may name."""
        known = {*HANDED_IN, *self.port_names} - (set() if self.at is None else OF_FILES)
        yield "run", self.run or "", known | {OPTIONS}
        yield "stop", self.stop or "", known
        yield "set_by", self.set_by or "", known | {OPTION, VALUE}
        if self.ready is not None:
            yield "ready", self.ready.command or self.ready.http or "", known
        if self.at is not None:
            yield "version", self.version or "", known
            yield "at.restore", "" if self.at.restore == "none" else self.at.restore.command, known
        for name, text in self.environment.items():
            yield f"environment.{name}", text, known
        if self.configuration is not None:
            yield "configuration.text", self.configuration.text, known | set(self.options)
        each: Mapping[str, str] = self.read_back if isinstance(self.read_back, dict) else {"": self.read_back or ""}
        for name, text in each.items():
            yield f"read_back.{name}".rstrip("."), text, known | {OPTION}
        if self.data is not None:
            for text in self.data.create:
                yield "data.create", text, known
            for text in self.data.load:
                yield "data.load", text, known
