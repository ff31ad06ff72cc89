"""This machine as a place: the real agent behind a pipe, with a state directory of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from support.command_line import shell_program

from fairtrial.errors import AgentError, PlaceError
from fairtrial.places import open_place
from fairtrial.places.local import Local, LocalParameters
from fairtrial.wire import Limits
from fairtrial.wire.messages import CHUNK_BYTES

WAIT_S = 60.0


@pytest.mark.parametrize("size", [0, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1])
def test_the_real_agent_takes_and_gives_files_at_the_edges_of_chunks(tmp_path: Path, size: int) -> None:
    """What the fake does in the tests of the wire, the real one does here."""
    content = bytes(index % 251 for index in range(size))
    there = tmp_path / "new" / "file"
    with open_place("local", {"state_directory": str(tmp_path / "state")}, holder="a test") as agent:
        agent.put(str(there), content, mode=0o600)
        assert there.read_bytes() == content
        assert there.stat().st_mode & 0o777 == 0o600
        assert agent.get(str(there)) == content
        agent.get_to(str(there), tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content


def test_a_file_that_shrinks_on_its_way_to_the_real_agent_breaks_nothing_else(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * (CHUNK_BYTES + 1))
    with open_place("local", {"state_directory": str(tmp_path / "state")}, holder="a test") as agent:
        send = agent._stream.send

        def shrink_then_send(frame: bytes) -> None:
            source.write_bytes(b"x")
            send(frame)

        agent._stream.send = shrink_then_send  # type: ignore[method-assign]
        with pytest.raises(PlaceError, match="shorter while it was copied"):
            agent.put(str(tmp_path / "there"), source)
        del agent._stream.send
        agent.put(str(tmp_path / "after"), b"in step")
        assert agent.get(str(tmp_path / "after")) == b"in step"


def test_the_state_directory_is_the_one_that_was_asked_for(tmp_path: Path) -> None:
    with open_place("local", {"state_directory": str(tmp_path / "state")}, holder="a test") as agent:
        assert agent.hello.state_directory == str(tmp_path / "state")
        assert (tmp_path / "state").is_dir()


def test_a_place_that_is_held_names_its_holder_and_can_still_be_looked_at(tmp_path: Path) -> None:
    parameters = {"state_directory": str(tmp_path / "state")}
    with open_place("local", parameters, holder="the first study"):
        with pytest.raises(AgentError, match="the first study") as refused:
            open_place("local", parameters, holder="the second study")
        assert refused.value.code == "busy"
        with open_place("local", parameters, holder="a look", lock=False) as looking:
            assert looking.spawn("echo", ["echo", "hello"]).wait(WAIT_S).code == 0
    with open_place("local", parameters, holder="the second study"):
        """It is free again."""


def test_without_an_agent_every_place_tried_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTRIAL_AGENT", str(tmp_path / "none"))
    with pytest.raises(PlaceError, match=f"FAIRTRIAL_AGENT names {tmp_path}/none") as missing:
        Local(LocalParameters()).connect(Limits())
    assert "make setup" in missing.value.hint


def test_a_program_that_is_no_agent_is_not_listened_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    impostor = shell_program(tmp_path / "fairtrial-agent", "echo 'usage: something else' ; echo 'I am no agent' >&2")
    monkeypatch.setenv("FAIRTRIAL_AGENT", str(impostor))
    with pytest.raises(PlaceError, match=r"not a message of this protocol|ended the stream|no longer accepts requests"):
        open_place("local", {}, holder="a test")


@pytest.mark.parametrize("given", [{"state_directory": 1}, {"state_dir": "/x"}, []])
def test_parameters_that_are_none_of_its_own_are_refused(given: object) -> None:
    with pytest.raises(ValidationError):
        Local.model.model_validate(given)
