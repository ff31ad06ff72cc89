"""The studies that come with fairtrial: their plans, and at which sizes a place can run them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fairtrial.doctor import PlaceObservation
    from fairtrial.record.models import Plan
    from fairtrial.run.feasibility.study import Lack, StudyFeasibility
    from fairtrial.study.resolved import Section
    from fairtrial.wire.open_place import OpenPlace

AS_WRITTEN: Final = "as written"


@dataclass(frozen=True)
class BundledStudy:
    """A study file, as far as it can be told without a place.

    Attributes:
        sizes: that it names.
    """

    file: Path
    question: str
    sizes: tuple[str, ...]

    @property
    def name(self) -> str:
        """As commands know it."""
        return self.file.stem


@dataclass(frozen=True)
class ReadyStudy:
    """A study at a place.

    Attributes:
        by_size: whether it can run there; `as written` of a study without sizes.
    """

    study: BundledStudy
    by_size: dict[str, StudyFeasibility]

    @property
    def here(self) -> list[str]:
        """Sizes that the place can run."""
        return [size for size, each in self.by_size.items() if each.can_run]

    @property
    def lacks(self) -> dict[str, Lack]:
        """What is in the way of the others first."""
        return {size: each.lacks[0] for size, each in self.by_size.items() if each.lacks}


def bundled() -> list[Path]:
    """The studies that come with fairtrial."""
    folder = Path(str(resources.files("fairtrial.studies")))
    return sorted(folder.glob("*.yaml"))


def described(file: Path) -> BundledStudy:
    """What a study's file says of itself."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - commands that read no study start without it

    document: dict[str, Any] = YAML(typ="safe", pure=True).load(file)
    return BundledStudy(file, str(document.get("question", "")), tuple(document.get("sizes", {})))


def planned(file: Path, *, size: str | None = None) -> Plan:
    """A study's plan, at a size that it names; without one as it stands.

    Raises:
        InputError: the study is wrong.
    """
    from fairtrial import plan as planning  # noqa: PLC0415 - as above
    from fairtrial import study as language  # noqa: PLC0415
    from fairtrial.catalogue import catalogue  # noqa: PLC0415

    known = catalogue()
    return planning.make(language.load(file, catalogue=known, size=size), catalogue=known)


def ready(place: OpenPlace, observation: PlaceObservation, *, at: Section) -> Iterator[ReadyStudy]:
    """Every study with what the place lacks for each of its sizes.

    Raises:
        StreamLostError: the stream to the place ended.
    """
    from fairtrial.run.feasibility.study import feasibility  # noqa: PLC0415 - as above

    found: dict[str, list[Lack]] = {}
    for study in map(described, bundled()):
        plans = {size: planned(study.file, size=size) for size in study.sizes} or {AS_WRITTEN: planned(study.file)}
        yield ReadyStudy(
            study,
            {size: feasibility(plan, place, observation, at=at, known=found) for size, plan in plans.items()},
        )
