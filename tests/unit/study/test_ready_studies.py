from __future__ import annotations

from pathlib import Path

import jsonschema

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.study.tree.nodes import plain
from fairtrial.study.tree.problems import Problems
from fairtrial.study.tree.reading import parse

ROOT = Path(__file__).parents[3]


def test_every_ready_study_loads_in_every_size_and_fits_the_schema() -> None:
    known = catalogue()
    validator = jsonschema.Draft202012Validator(study.schema(known))
    paths = sorted((ROOT / "studies").glob("*.yaml"))
    assert paths
    for path in paths:
        node = parse(path.read_text(encoding="utf-8"), file=str(path), problems=Problems())
        assert node is not None
        document = plain(node)
        assert list(validator.iter_errors(document)) == [], path
        for size in (None, *document.get("sizes", {})):
            loaded = study.load(path, catalogue=known, size=size)
            assert loaded.name == document["study"]
