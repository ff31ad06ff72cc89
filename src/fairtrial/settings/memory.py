"""`memory`: how much memory server and load may have, and how much is kept for them (control groups).

Sources: Documentation/admin-guide/cgroup-v2.rst, "Memory"; Documentation/admin-guide/cgroup-v1/memory.rst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fairtrial.errors import PlaceError
from fairtrial.protocol.generated import Step
from fairtrial.settings.setting import Setting
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect, GroupLimit, Requirement, Side
from fairtrial.settings.steps.groups import controller
from fairtrial.settings.steps.shared import write_group
from fairtrial.study.tree.quantities import Bytes
from fairtrial.wire.facts import Facts

CONTROLLER = "memory"
LIMIT_1, WITH_SWAP_1 = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
FILES_2 = {
    "limit": "memory.max",
    "high": "memory.high",
    "min": "memory.min",
    "low": "memory.low",
    "swap": "memory.swap.max",
}
ONLY_2 = ("high", "min", "low")
PAGE_BYTES = 4096  # the smallest that kernels have


def _of_pages(size: int) -> int:
    """A size without its unit would be rounded down to nothing, and that be read back as asked."""
    if 0 < size < PAGE_BYTES:
        raise ValueError(f"expected at least a page of {PAGE_BYTES} bytes, found {size} bytes: add a unit such as MiB")
    return size


Pages = Annotated[Bytes, AfterValidator(_of_pages)]


class Share(BaseModel):
    """What one side gets; the kernel counts pages, so every size is rounded down to one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    limit: Pages | None = Field(None, gt=0, description="It gets no more; the kernel reclaims, then kills.")
    high: Pages | None = Field(None, gt=0, description="Above this it is slowed down and reclaimed from. Version 2.")
    min: Pages | None = Field(None, gt=0, description="This much is never reclaimed from it. Version 2.")
    low: Pages | None = Field(None, gt=0, description="Reclaimed from it only if nothing else is left. Version 2.")
    swap: Pages | None = Field(None, ge=0, description="Swap space it may use; version 1 needs `limit` beside it.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if all(getattr(self, name) is None for name in FILES_2):
            raise ValueError(f"give one of {', '.join(FILES_2)}")
        return self


def _share(value: object) -> object:
    return value if isinstance(value, Mapping) or value is None else {"limit": value}


def _sides(value: object) -> object:
    """A size alone is the server's limit."""
    return value if isinstance(value, Mapping) else {"server": {"limit": value}}


ShareOf = Annotated[Share | None, BeforeValidator(_share, json_schema_input_type=Share | Bytes | None)]


class Memory(BaseModel):
    """Memory of the two sides; a size alone is the server's limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: ShareOf = Field(None, description="Of the system under test.")
    client: ShareOf = Field(None, description="Of the load, which `min` protects from a server that takes all.")


class MemorySetting(Setting[Memory]):
    """Files of the sides' groups."""

    name = "memory"
    summary = (
        "Memory that server and load may have, and that is kept for them, by control groups of their own. Pages that "
        "were in memory before stay where they are counted."
    )
    model = Annotated[Memory, BeforeValidator(_sides, json_schema_input_type=Memory | Bytes)]
    example = MappingProxyType({"server": {"limit": "512MiB", "swap": "1GiB"}, "client": {"min": "64MiB"}})
    privilege = "CAP_DAC_OVERRIDE"

    def effect(self, facts: Facts, _trial: TrialContext) -> Effect:
        """The files, in the words of the place's version.

        Raises:
            PlaceError: no such controller, not root, or protection asked of version 1.
        """
        group = controller(CONTROLLER, facts, setting=self.name)
        limits: list[GroupLimit] = []
        needs: list[Requirement] = []
        sides: tuple[tuple[Side, Share | None], ...] = (("server", self.value.server), ("client", self.value.client))
        for side, share in sides:
            if share is None:
                continue
            files = _version_1(side, share) if group.version == 1 else _version_2(share)
            limits += [
                GroupLimit(side, CONTROLLER, _written(f"memory.{side}.{name}", file, size, page=facts.page_bytes))
                for name, file, size in files
            ]
            if group.version == 1 and share.swap is not None:
                hint = "boot its kernel with `swapaccount=1`"
                needs.append(Requirement(f"memory.{side}.swap", f"{group.directory}/{WITH_SWAP_1}", hint))
        return Effect(limits=tuple(limits), needs=tuple(needs))


def _version_1(side: Side, share: Share) -> Iterator[tuple[str, str, int]]:
    later = [name for name in ONLY_2 if getattr(share, name) is not None]
    if later:
        raise PlaceError(
            f"settings.memory.{side}: {', '.join(later)} is not in control groups of version 1, which this place has",
            hint="boot it with `systemd.unified_cgroup_hierarchy=1`, or take `place: {vm: {kernel: debian-6.1}}`",
        )
    if share.limit is not None:
        yield "limit", LIMIT_1, share.limit
    if share.swap is not None:
        if share.limit is None:
            raise PlaceError(
                f"settings.memory.{side}.swap: version 1 of control groups limits memory and swap together",
                hint="give `limit`, too",
            )
        yield "swap", WITH_SWAP_1, share.limit + share.swap  # after the limit, which may not exceed it


def _version_2(share: Share) -> Iterator[tuple[str, str, int]]:
    for name, file in FILES_2.items():
        if (size := getattr(share, name)) is not None:
            yield name, file, size


def _written(name: str, file: str, size: int, *, page: int) -> Callable[[str, str], Step]:
    whole = str(size // page * page)
    return lambda directory, _data: write_group(f"{directory}/{file}", str(size), name=name, expect=whole)
