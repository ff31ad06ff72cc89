"""What a study has downloaded without saying which content it must have. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairtrial.study.resolved import ResolvedTrial, Section

DIGEST = "@sha256:"  # of an image that is named by content


def warnings(resolved: Mapping[str, Mapping[str, ResolvedTrial]]) -> list[str]:
    """One for each artefact and image, in the order of the trials."""
    trials = [trial for cell in resolved.values() for trial in cell.values()]
    return list(dict.fromkeys(warning for trial in trials for warning in _of(trial)))


def _of(trial: ResolvedTrial) -> Iterator[str]:
    own = "the run prints it after the download"
    if (artefact := _text(trial.system, "maven")) and not _text(trial.system, "sha256"):
        yield f"system.{trial.system.kind}.maven: `{artefact}` is downloaded without a `sha256` to check it by; {own}"
    for place in (trial.place, *trial.clients):
        image = _text(place, "image")
        if _text(place, "pull") == "missing" and DIGEST not in image and not _text(place, "sha256"):
            yield f"place.{place.kind}.image: `{image}` is pulled without a digest or `sha256` to check it by"


def _text(section: Section, key: str) -> str:
    """A parameter that is text; empty if there is none of this name."""
    parameters = section.parameters
    value = parameters.get(key) if isinstance(parameters, dict) else None
    return value if isinstance(value, str) else ""
