"""From a study and two versions to a study of these two, as the text of a study file. Pure."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from fairtrial.errors import InputError, Problem
from fairtrial.study.tree.merging import SECTIONS

BUILD: Final = "{build}"  # in a study: the directory in which a commit was built
KEPT_OF_TRIALS: Final = ("margin", "confidence")
OF_OTHER_DESIGNS: Final = ("also_compare", "expect", "design", "curve", "tune")
SPARE_BLOCKS: Final = 3  # a query that loses more of its blocks to invalid trials ends
_LINE_WIDTH: Final = 4096


@dataclass(frozen=True)
class Pair:
    """A version against another.

    Attributes:
        over: the factor's name.
        levels: name → overlay, the baseline first.
        blocks: how many.
        seed: of their order and load.
        question: in one sentence.
        explained: whether probes run in diagnostic trials, as the study has them.
    """

    over: str
    levels: Mapping[str, Mapping[str, Any]]
    blocks: int
    seed: int
    question: str
    explained: bool = False


def study_text(merged: Mapping[str, Any], pair: Pair, *, pinned: Mapping[str, str]) -> str:
    """The study of a pair.

    Args:
        merged: the user's study, complete (`study.dump`).
        pair: which versions, and how often.
        pinned: the level of every other factor.
    """
    study = {key: value for key, value in merged.items() if key not in OF_OTHER_DESIGNS}
    trials = dict(merged.get("trials", {}))
    others = {name: {level: merged["factors"][name][level]} for name, level in pinned.items()}
    study |= {
        "question": pair.question,
        "factors": {**others, pair.over: dict(pair.levels)},
        "arm": pair.over,
        "trials": {
            **{key: trials[key] for key in KEPT_OF_TRIALS if key in trials},
            "order": "randomised_blocks",
            "blocks": pair.blocks,
            "seed": pair.seed,
            "voided_limit": pair.blocks + SPARE_BLOCKS,
        },
    }
    if expect := _expected(merged, pinned):
        study["expect"] = expect
    if not pair.explained:
        telemetry = dict(merged.get("telemetry", {}))
        study["telemetry"] = {
            key: value for key, value in telemetry.items() if key not in ("probes", "diagnostic_blocks")
        }
    return written(study)


def built(merged: Mapping[str, Any], directory: str) -> dict[str, Any]:
    """A level that puts the directory of a build where the base trial names `{build}`; empty if it does nowhere."""
    overlay = {section: _filled(merged[section], directory) for section in SECTIONS if section in merged}
    return {section: found for section, found in overlay.items() if found is not None}


def require_built(merged: Mapping[str, Any], study: Path) -> None:
    """Raises why commits cannot be a study's versions.

    Raises:
        InputError: its base trial does not name `{build}`, or does not run on this machine, where commits are built.
    """
    message, suggestion = "", ""
    if not built(merged, "/"):
        message = f"nothing in the study names `{BUILD}`, the directory in which a commit is built"
        suggestion = f"for example workload: {{command: {{run: '{BUILD}/prog'}}}}"
    elif (place := next(iter(merged["place"]))) != "local":
        message = f"commits are built on this machine, and trials run at a place of kind `{place}`"
        suggestion = "use `place: {local: {}}`"
    if message:
        raise InputError([Problem(message, str(study), suggestion=suggestion)], hint="see `--help` of this command")


def written(study: Mapping[str, Any]) -> str:
    """A study as YAML."""
    yaml = YAML()
    yaml.width = _LINE_WIDTH
    yaml.default_flow_style = False
    stream = io.StringIO()
    yaml.dump(dict(study), stream)
    return stream.getvalue()


def read(text: str) -> dict[str, Any]:
    """A study that was written, as plain values."""
    return dict(YAML(typ="safe").load(text))


def _filled(value: Any, directory: str) -> Any:
    """Only what names the build: mappings merge key by key, everything else replaces. None if nothing does."""
    if isinstance(value, str):
        return value.replace(BUILD, directory) if BUILD in value else None
    if isinstance(value, list):
        filled = [_filled(item, directory) for item in value]
        if all(item is None for item in filled):
            return None
        return [item if new is None else new for item, new in zip(value, filled, strict=True)]
    if isinstance(value, dict):
        found = {key: new for key, item in value.items() if (new := _filled(item, directory)) is not None}
        return found or None
    return None


def _expected(merged: Mapping[str, Any], pinned: Mapping[str, str]) -> dict[str, Any]:
    """Expectations of the pinned levels."""
    known = {*pinned.values(), *(f"{factor}.{level}" for factor, level in pinned.items())}
    return {level: metrics for level, metrics in merged.get("expect", {}).items() if level in known}
