"""What a comparison says of the layouts that its programs were linked in: a random factor, as hosts are."""

from __future__ import annotations

from fairtrial.analyse.hosts.models import OverHosts


class OverLayouts(OverHosts):
    """One comparison's blocks by layout, and what they say of layouts like these.

    Attributes as of `OverHosts`, whose hosts here are layouts.

    Attributes:
        share: of the variance of a single block's log ratio that lies between layouts; None where no layout has two
            blocks.
    """

    share: float | None = None
