"""The study language: one YAML file with one base trial, whose levels are overlays.

Owns reading with positions, merging, units, errors and the JSON Schema. It imports no kind: what a study may name
comes as a `Catalogue`.
"""

from fairtrial.study.expectations import Expectation
from fairtrial.study.json_schema import schema
from fairtrial.study.loading import Factor, Study, dump, load
from fairtrial.study.locating import located, located_lack
from fairtrial.study.resolved import ResolvedTrial

__all__ = ["Expectation", "Factor", "ResolvedTrial", "Study", "dump", "load", "located", "located_lack", "schema"]
