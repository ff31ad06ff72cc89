"""A trial with nothing left to resolve: what a study says, once a level of every factor is chosen."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel


class Section(RootModel[Annotated[dict[str, JsonValue], Field(min_length=1, max_length=1)]]):
    """What one section of a trial says: a kind and its parameters, validated, as JSON values in base units.

    Equal to any that says the same, whatever the order of its keys. The rooms of the kinds make a model of it, once:
    `places.place_of`, `systems.system_of`, `workloads.workload_of`, `settings.setting_of`.
    """

    model_config = ConfigDict(frozen=True)

    @property
    def kind(self) -> str:
        """The kind's name."""
        return next(iter(self.root))

    @property
    def parameters(self) -> JsonValue:
        """What the kind's model validates."""
        return self.root[self.kind]

    @cached_property
    def _text(self) -> str:
        return json.dumps(self.root, sort_keys=True)

    def __eq__(self, other: object) -> bool:
        """Whether both say the same."""
        return isinstance(other, Section) and self._text == other._text

    def __hash__(self) -> int:
        """Of what it says."""
        return hash(self._text)

    def __str__(self) -> str:
        """As JSON, with sorted keys."""
        return self._text


class Network(BaseModel):
    """How clients at other places reach the system."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str | None = Field(
        None,
        pattern=r"^[0-9A-Za-z:.-]+$",
        description="Address at which clients reach the system's host, and on which its server listens "
        "(default: the one that SSH uses).",
    )
    tls: bool = Field(
        default=False,
        description="Whether connections of clients are encrypted, by a certificate that is made for the trial.",
    )


class ResolvedTrial(BaseModel):
    """Everything one arm in one cell means, merged and validated, in base units (bytes, seconds).

    Each section but `settings` holds exactly one key, the kind.

    Attributes:
        settings: values by kind.
        workload_place: where the workload runs, if that is elsewhere than its system.
        further_places: of the other clients, where several drive together; empty otherwise.
        network: how clients elsewhere reach the system.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    place: Section
    system: Section
    workload: Section
    settings: dict[str, JsonValue] = {}
    workload_place: Section | None = None
    further_places: Annotated[tuple[Section, ...], Field(exclude_if=lambda places: not places)] = ()
    network: Annotated[Network, Field(exclude_if=lambda network: network == Network())] = Network()

    @property
    def clients(self) -> tuple[Section, ...]:
        """Places of all clients, as the study names them; empty if it names none."""
        return () if self.workload_place is None else (self.workload_place, *self.further_places)
