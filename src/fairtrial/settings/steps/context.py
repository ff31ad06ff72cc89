"""What a setting may go by beside the facts of its place: the trial that it is set for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Literal

Load = Literal["beside", "within", "elsewhere"]


@dataclass(frozen=True)
class TrialContext:
    """A trial as its settings see it.

    Attributes:
        directory: the trial's own at the place; names of what settings make there are derived from it.
        load: runs `beside` a server, `within` the system's process, or `elsewhere`, at another place.
        client_processors: online at that other place; None as long as it is closed, or if there is none.
    """

    directory: PurePosixPath
    load: Load = "beside"
    client_processors: tuple[int, ...] | None = None


# For who asks what settings need, before there are trials.
ANY_TRIAL: Final = TrialContext(PurePosixPath("/var/lib/fairtrial/work/trial"))
