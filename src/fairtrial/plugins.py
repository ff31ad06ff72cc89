"""Kinds by name: ours, and classes that installed packages name in their entry points, as plug-ins of pytest do.

```toml
[project.entry-points."fairtrial.workloads"]
ycsb = "fairtrial_ycsb:Ycsb"
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from fairtrial.errors import PlaceError, RecordError
from fairtrial.study.resolved import Section


class NamedKind(Protocol):
    """A class that is one kind; its instances hold what its `model`, a pydantic model or annotated type, validated."""

    name: ClassVar[str]
    model: ClassVar[Any]

    def __init__(self, parameters: Any, /) -> None: ...


K = TypeVar("K", bound=NamedKind)


class Kinds(Mapping[str, type[K]]):
    """Our kinds and those of installed packages, by name.

    Packages are looked at when kinds are first asked for: a package's module may import any room, this one's too.
    """

    def __init__(self, own: Iterable[type[K]], *, base: type[Any], group: str) -> None:
        """Kinds of one room.

        Args:
            own: ours.
            base: what a kind must derive from.
            group: of the entry points, such as `fairtrial.workloads`.
        """
        self._own, self._base, self._group = tuple(own), base, group

    def __getitem__(self, name: str) -> type[K]:
        """The kind of a name; raises as `known`."""
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        """Names, ours first; raises as `known`."""
        return iter(self.known)

    def __len__(self) -> int:
        """How many; raises as `known`."""
        return len(self.known)

    @cached_property
    def known(self) -> dict[str, type[K]]:
        """All of them.

        Raises:
            PlaceError: a package's kind cannot be imported, is not one, or has a name that is taken; it names the
                package.
        """
        kinds = {kind.name: kind for kind in self._own}
        for point in entry_points(group=self._group):
            package = point.dist.name if point.dist is not None else "?"
            where = f"`{point.name}` of the package {package} ({self._group})"
            if point.name in kinds:
                raise PlaceError(
                    f"{where}: the name is taken",
                    hint=f"uninstall {package}, or ask its author to rename the entry point",
                )
            kind = _loaded(point, where, package)
            if not isinstance(kind, type) or not issubclass(kind, self._base):
                raise PlaceError(
                    f"{where} is not a subclass of {self._base.__name__}", hint=f"ask the author of {package}"
                )
            ours: type[K] = kind
            if ours.name != point.name:
                raise PlaceError(
                    f"{where} calls itself `{ours.name}`", hint=f"ask the author of {package} for one name"
                )
            kinds[point.name] = ours
        return kinds


def _loaded(point: EntryPoint, where: str, package: str) -> Any:
    try:
        return point.load()
    except Exception as error:  # whatever a stranger's module does when it is imported
        raise PlaceError(
            f"{where} cannot be imported: {type(error).__name__}: {error}",
            hint=f"install a version of {package} for this version of fairtrial, or uninstall it",
        ) from error


def chosen(kinds: Mapping[str, type[K]], section: Section, *, what: str) -> K:
    """The kind of a resolved trial's section, with its parameters.

    Args:
        kinds: by name.
        section: of a resolved trial, or a setting as one.
        what: `workload`, `system` or `setting`, for messages.

    Raises:
        RecordError: this version has no such kind, or different parameters of it.
    """
    name = section.kind
    if name not in kinds:
        raise RecordError(
            f"unknown {what} `{name}`", hint="use the version of fairtrial, and the plug-ins, that ran the study"
        )
    kind = kinds[name]
    try:
        return kind(TypeAdapter(kind.model).validate_python(section.parameters))
    except ValidationError as error:
        raise RecordError(
            f"parameters of {what} `{name}` are not those of this version: {error}",
            hint="use the version of fairtrial that ran the study",
        ) from error
