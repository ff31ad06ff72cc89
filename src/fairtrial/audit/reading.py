"""Publications as package data: which there are, and their raw values, descriptions and claims."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from io import StringIO
from itertools import product
from typing import Final

from ruamel.yaml import YAML

from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.audit.claims.models import Claim, ClaimsFile
from fairtrial.audit.models import Levels, PublicationDescription, Rerun, ROutput
from fairtrial.errors import InputError, Problem
from fairtrial.study.tree.problems import listed

CLAIMS: Final = "claims.yaml"
RERUN: Final = "rerun.yaml"


@dataclass(frozen=True)
class Dataset:
    """One publication.

    Attributes:
        rows: of data.csv, in its order: a column for each factor, `trial`, and a column for each metric.
        claims: figures printed in tables and prose.
        r_output: what R printed, in the publication's order; empty if it prints none.
        files: the number of the file that each row comes from; empty where there is one only.
    """

    name: str
    description: PublicationDescription
    rows: tuple[dict[str, str], ...]
    claims: tuple[Claim, ...]
    r_output: tuple[ROutput, ...]
    files: tuple[int, ...] = ()

    def chosen(self, levels: Levels) -> list[dict[str, str]]:
        """Rows where every factor has the level given, in the publication's order."""
        return [row for row in self.rows if all(row[factor] == level for factor, level in levels.items())]

    def values(self, metric: str, levels: Levels) -> Values:
        """Values of one metric in those rows."""
        return t_tests.array([float(row[metric]) for row in self.chosen(levels)])

    def missing(self, metric: str, levels: Levels) -> str:
        """Why there are no values of a metric at these levels; empty if there are some."""
        if not self.rows:
            return "the publication has no raw data"
        if metric not in self.description.metrics:
            return f"the data have no column `{metric}`"
        for factor, level in levels.items():
            if factor not in self.description.factors:
                return f"the data have no column `{factor}`"
            if level not in self.levels(factor):
                return f"the data have no level `{level}` of {factor}"
        return "" if len(self.values(metric, levels)) else "the data have no rows at these levels"

    def levels(self, factor: str) -> tuple[str, ...]:
        """Levels in order, baseline first."""
        return tuple(self.description.factors[factor].levels)

    def combinations(self, *, without: str = "") -> list[Levels]:
        """Every combination of levels of all factors, or of all but one."""
        factors = [factor for factor in self.description.factors if factor != without]
        return [
            dict(zip(factors, chosen, strict=True)) for chosen in product(*(self.levels(factor) for factor in factors))
        ]


def names() -> list[str]:
    """Publications with raw data, in alphabetical order."""
    return sorted(entry.name for entry in _folder().iterdir() if (entry / "publication.yaml").is_file())


def load(name: str) -> Dataset:
    """Reads one publication.

    Raises:
        InputError: there is none of that name.
    """
    if name not in names():
        problem = Problem(message=f"unknown publication `{name}`; expected one of {listed(names())}", file="published")
        raise InputError([problem], hint="`fairtrial studies` lists the publications")
    files = folder(name)
    return Dataset(
        name=name,
        description=PublicationDescription.model_validate(_yaml(files / "publication.yaml")),
        rows=tuple(_csv(files / "data.csv")),
        claims=tuple(ClaimsFile.model_validate(_yaml(files / CLAIMS)).claims),
        r_output=tuple(ROutput.model_validate(row) for row in _csv(files / "r_output.csv")),
    )


def rerun_by(study: str) -> tuple[str, Rerun] | None:
    """The publication with raw data that a study re-runs, by the study's name, and how; None if there is none."""
    for name in names():
        path = folder(name) / RERUN
        rerun = Rerun.model_validate(_yaml(path)) if path.is_file() else None
        if rerun is not None and rerun.study == study:
            return name, rerun
    return None


def audited() -> list[str]:
    """Publications with claims, with raw data or without, in alphabetical order."""
    return sorted(entry.name for entry in _folder().iterdir() if (entry / CLAIMS).is_file())


def folder(name: str) -> Traversable:
    """Where one publication's files are."""
    return _folder() / name


def _folder() -> Traversable:
    return resources.files("fairtrial.studies") / "published"


def _yaml(path: Traversable) -> object:
    parsed: object = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    return parsed


def _csv(path: Traversable) -> list[dict[str, str]]:
    """Rows by column name; none if the file is not there."""
    if not path.is_file():
        return []
    return list(csv.DictReader(StringIO(path.read_text(encoding="utf-8"))))
