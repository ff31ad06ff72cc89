"""`numa`: on which nodes server and load run and have their memory (control groups' cpuset).

Source: Documentation/admin-guide/cgroup-v2.rst, "Cpuset"; cpuset(7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fairtrial.errors import PlaceError
from fairtrial.protocol.generated import Step
from fairtrial.settings.affinity import ProcessorList, processors
from fairtrial.settings.setting import Setting
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect, GroupLimit, Side
from fairtrial.settings.steps.groups import controller
from fairtrial.settings.steps.shared import write_group
from fairtrial.wire.facts import Facts

CONTROLLER = "cpuset"


class Binding(BaseModel):
    """Nodes of one side."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    processors: ProcessorList | None = Field(None, description="It runs on these nodes' processors; else on all.")
    memory: ProcessorList | None = Field(None, description="It gets memory of these nodes only; else of all.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.processors is None and self.memory is None:
            raise ValueError("give `processors`, `memory` or both")
        return self


def _binding(value: object) -> object:
    """Nodes alone are those of processors and memory."""
    if value is None or isinstance(value, Mapping):
        return value
    return {"processors": value, "memory": value}


BindingOf = Annotated[Binding | None, BeforeValidator(_binding, json_schema_input_type=Binding | ProcessorList | None)]


class Numa(BaseModel):
    """Nodes of the two sides, as `0`, `0-1` or apart for processors and memory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: BindingOf = Field(None, description="Of the system under test.")
    client: BindingOf = Field(None, description="Of the load.")


def listed(numbers: Iterable[int]) -> str:
    """(0, 1, 2, 5) as the kernel writes it: `0-2,5`."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


class NumaSetting(Setting[Numa]):
    """Both files of a group, as version 1 lets no process in before it has both; and the processors of each side."""

    name = "numa"
    summary = "NUMA nodes that server and load are bound to, by control groups of their own."
    model = Numa
    example = MappingProxyType({"server": 0, "client": {"processors": 1, "memory": "0-1"}})
    privilege = "CAP_DAC_OVERRIDE"

    def effect(self, facts: Facts, _trial: TrialContext) -> Effect:
        """The files and the processors.

        Raises:
            PlaceError: nodes that the place does not have, no such controller, or not root.
        """
        controller(CONTROLLER, facts, setting=self.name)
        nodes = {int(number): tuple(numbers) for number, numbers in facts.nodes.items()}
        limits: list[GroupLimit] = []
        sets: dict[str, tuple[int, ...] | None] = {"server": None, "client": None}
        sides: tuple[tuple[Side, Binding | None], ...] = (("server", self.value.server), ("client", self.value.client))
        for side, binding in sides:
            if binding is None:
                continue
            run_on = _nodes(f"{side}.processors", binding.processors, nodes)
            memory = _nodes(f"{side}.memory", binding.memory, nodes)
            numbers = tuple(sorted(number for node in run_on for number in nodes[node]))
            if not numbers:
                raise PlaceError(
                    f"settings.numa.{side}: nodes {list(run_on)} have no processors", hint="some nodes are memory only"
                )
            if binding.processors is not None:
                sets[side] = numbers
            limits.append(GroupLimit(side, CONTROLLER, _written(f"numa.{side}.processors", "cpuset.cpus", numbers)))
            limits.append(GroupLimit(side, CONTROLLER, _written(f"numa.{side}.memory", "cpuset.mems", memory)))
        return Effect(limits=tuple(limits), server_processors=sets["server"], client_processors=sets["client"])


def _nodes(field: str, text: str | None, nodes: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    chosen = processors(text) if text is not None else tuple(sorted(nodes))
    missing = sorted(set(chosen) - set(nodes))
    if missing:
        raise PlaceError(
            f"settings.numa.{field}: this place has no nodes {missing}",
            hint=f"it has {sorted(nodes)}; a guest has as many as `nodes` of `place: {{vm: ...}}` says",
        )
    return chosen


def _written(name: str, file: str, numbers: Sequence[int]) -> Callable[[str, str], Step]:
    text = listed(numbers)
    return lambda directory, _data: write_group(f"{directory}/{file}", text, name=name, expect=text)
