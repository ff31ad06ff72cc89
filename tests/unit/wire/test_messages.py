"""Every message has an example that the Rust tests read too: both sides mean the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from fairtrial.protocol import generated
from fairtrial.wire import messages

EXAMPLES = Path(__file__).parents[2] / "messages"
PROTOCOL = Path(__file__).parents[3] / "crates" / "protocol" / "src" / "lib.rs"
ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "request": messages.REQUEST,
    "event": messages.EVENT,
    "step": TypeAdapter(generated.Step),
    "chunk": TypeAdapter(generated.ChunkHeader),
}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_an_example_survives_a_round_trip(path: Path) -> None:
    adapter = ADAPTERS[path.stem.split("-")[0]]
    message = adapter.validate_json(path.read_bytes())
    assert json.loads(adapter.dump_json(message)) == json.loads(path.read_bytes())


@pytest.mark.parametrize(("union", "tag"), [(messages.Request, "request"), (messages.Event, "event")])
def test_every_variant_has_an_example(union: Any, tag: str) -> None:
    variants: set[type[BaseModel]] = {
        variant for member in get_args(union) for variant in (get_args(member) or (member,))
    }
    tags = {variant.model_fields[tag].default for variant in variants}
    assert tags == {path.stem.removeprefix(f"{tag}-") for path in EXAMPLES.glob(f"{tag}-*.json")}


def test_an_unknown_field_is_refused() -> None:
    event = json.loads((EXAMPLES / "event-pong.json").read_bytes()) | {"later": 1}
    with pytest.raises(ValidationError, match="later"):
        messages.EVENT.validate_python(event)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VERSION", messages.VERSION),
        ("CHUNK_BYTES", messages.CHUNK_BYTES),
    ],
)
def test_both_sides_have_the_same_limits(name: str, value: object) -> None:
    found = re.search(rf"pub const {name}: [^=]+ = (.+);", PROTOCOL.read_text())
    assert found is not None
    assert value == eval(found[1])  # literals and products of them
