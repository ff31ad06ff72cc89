"""Files that studies name, and options that runs keep; what each workload refuses is in its own tests."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, BeforeValidator, ValidationError

from fairtrial.study.tree.problems import FILE_OF
from fairtrial.workloads.text_files import TextFile, read


class Asked(BaseModel):
    script: Annotated[TextFile, BeforeValidator(read)]


def of_study(study: Path) -> dict[str, Any]:
    """What validation is told of a study whose every key stands in this file."""

    def file_of(*path: str) -> Path:
        assert path == ("script",)
        return study

    return {FILE_OF: file_of}


def test_a_path_is_seen_from_the_study_that_names_it_and_becomes_the_text(tmp_path: Path) -> None:
    (tmp_path / "own.lua").write_text("-- é", encoding="utf-8")
    found = Asked.model_validate({"script": "own.lua"}, context=of_study(tmp_path / "study.yaml")).script
    assert (found.name, found.text) == ("own.lua", "-- é")
    assert found.sha256 == hashlib.sha256("-- é".encode()).hexdigest()


def test_a_text_that_a_plan_holds_needs_no_file() -> None:
    again = Asked.model_validate({"script": {"name": "gone.lua", "text": "x"}})
    assert again.script.text == "x"


@pytest.mark.parametrize(("content", "said"), [(None, "No such file"), (b"\xff\xfe", "not UTF-8")])
def test_what_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "own.lua"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValidationError, match=f"cannot read {path}: {said}"):
        Asked.model_validate({"script": str(path)})
