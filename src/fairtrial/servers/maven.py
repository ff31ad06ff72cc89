"""Artefacts of a Maven repository, by their coordinates."""

from __future__ import annotations

import hashlib
import os
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from fairtrial.errors import PlaceError

REPOSITORY_VARIABLE = "FAIRTRIAL_MAVEN_REPOSITORY"
CENTRAL = "https://repo.maven.apache.org/maven2"
ANSWER_S = 60.0
CHUNK_BYTES = 1 << 20
FEWEST_PARTS, MOST_PARTS = 3, 5
PART = re.compile(r"[A-Za-z0-9._+-]+")
# Of a mirror's address that is none, and of an answer that is no HTTP.
FAILURES = (OSError, HTTPException, ValueError)


@dataclass(frozen=True)
class Coordinates:
    """group:artifact:version[:packaging[:classifier]] (maven.apache.org/pom.html#Maven_Coordinates)."""

    group: str
    artifact: str
    version: str
    packaging: str = "jar"
    classifier: str = ""

    @classmethod
    def parse(cls, text: str) -> Coordinates:
        """Reads coordinates.

        Raises:
            ValueError: they are none.
        """
        parts = text.split(":")
        if not FEWEST_PARTS <= len(parts) <= MOST_PARTS or not all(PART.fullmatch(part) for part in parts):
            raise ValueError(
                f"`{text}` are not Maven coordinates: expected group:artifact:version[:packaging[:classifier]]"
            )
        return cls(*parts)

    @property
    def file_name(self) -> str:
        """The artefact's own name."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classifier}.{self.packaging}"

    @property
    def path(self) -> str:
        """The artefact's path in a repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


def download(name: str, directory: Path, *, sha256: str | None) -> Path:
    """Fetches an artefact into a directory, checked against its hash: the known one, else the repository's own.

    Raises:
        PlaceError: no such artefact, no network, or other content than the hash says.
    """
    coordinates = Coordinates.parse(name)
    target = directory / coordinates.file_name
    digest = hashlib.sha256() if sha256 else hashlib.sha1()  # noqa: S324 - what repositories publish beside artefacts
    expected = sha256 or _text(f"{coordinates.path}.sha1", name=name)
    try:
        with _opened(coordinates.path) as answer, target.open("wb") as file:
            while chunk := answer.read(CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
    except FAILURES as error:
        raise _failed(name, error) from error
    if digest.hexdigest() != expected:
        raise PlaceError(
            f"the download of {name} does not match its {digest.name}: expected {expected}, found {digest.hexdigest()}",
            hint="try again, because the download may have been cut short; if it fails again, report it to the "
            "operator of the repository",
        )
    return target


def _text(path: str, *, name: str) -> str:
    try:
        with _opened(path) as answer:
            words: list[bytes] = answer.read().split()
    except FAILURES as error:
        raise _failed(name, error) from error
    return words[0].decode("ascii", "replace").lower() if words else ""


def _opened(path: str) -> HTTPResponse:
    repository = os.environ.get(REPOSITORY_VARIABLE, CENTRAL).rstrip("/")
    answer: HTTPResponse = urllib.request.urlopen(f"{repository}/{path}", timeout=ANSWER_S)  # noqa: S310 - the user's
    return answer


def _failed(name: str, error: Exception) -> PlaceError:
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        if error.code == HTTPStatus.NOT_FOUND:
            hint = "check which versions the repository has, and how they are spelled"
            return PlaceError(f"the repository does not have {name}", hint=hint)
    return PlaceError(
        f"cannot download {name}: {error}",
        hint=f"check the network, or set {REPOSITORY_VARIABLE} to a mirror of {CENTRAL}",
    )
