"""`fairtrial schema`: the JSON Schema that an editor completes study files from."""

from __future__ import annotations

import json

from fairtrial import study
from fairtrial.study.catalogue import Catalogue


def render(catalogue: Catalogue) -> str:
    """The schema as indented JSON."""
    return json.dumps(study.schema(catalogue), indent=2, ensure_ascii=False)


def schema() -> None:
    """Prints the schema of every kind that this version knows."""
    from fairtrial.catalogue import catalogue

    print(render(catalogue()))
