"""Limits: today's defaults, what the environment changes, and what an agent is told."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from fairtrial.errors import InputError
from fairtrial.wire import Agent, Limits, PipeTransport, find_agent
from fairtrial.wire.limits import AGENTS, VARIABLE

CRATES = Path(__file__).parents[3] / "crates"
DEFAULT = r"(\w+): Duration::from_(secs|mins)\((\d+)\),"
UNITS = {"secs": 1, "mins": 60}


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def test_nothing_is_changed_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Limits.from_environment() == Limits()
    monkeypatch.setenv(VARIABLE, " silence_s=2.5, grace_s=0.5,")
    assert Limits.from_environment() == Limits(silence_s=2.5, grace_s=0.5)


@pytest.mark.parametrize("wrong", ["silense_s=2", "silence_s", "silence_s=", "silence_s=0", "grace_s=-1", "hang_s=nan"])
def test_what_is_no_limit_is_the_users_mistake(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"ping_s=1,{wrong}")
    with pytest.raises(InputError, match=re.escape(wrong)) as refused:
        Limits.from_environment()
    assert "silence_s" in str(refused.value), "the names that there are"


def test_three_pings_fit_into_a_silence() -> None:
    assert Limits().ping_every_s == 5
    assert Limits(silence_s=3).ping_every_s == 1
    assert Limits(silence_s=600).ping_every_s == 5


def test_an_emulated_guest_may_be_silent_twice_as_long_and_all_else_stays() -> None:
    assert Limits().emulated() == Limits(silence_s=30)


def test_both_sides_of_a_stream_have_the_same_defaults() -> None:
    protocol = (CRATES / "protocol" / "src" / "lib.rs").read_text(encoding="utf-8")
    for name, value in (("PING_EVERY_S", Limits().ping_s), ("SILENCE_S", Limits().silence_s)):
        assert f"pub const {name}: u64 = {value:g};" in protocol
    agents = (CRATES / "protocol" / "src" / "limits.rs").read_text(encoding="utf-8")
    found = {f"{name}_s": UNITS[unit] * int(number) for name, unit, number in re.findall(DEFAULT, agents)}
    assert found == {name: asdict(Limits())[name] for name in set(AGENTS) - {"silence_s"}}
    assert f'"{VARIABLE}"' in agents


def test_the_agent_is_told_and_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "lock_s=0.01")
    limits = Limits(silence_s=70, grace_s=0.25)
    with Agent(PipeTransport([str(find_agent()), "serve"], limits=limits), holder="a test", lock=False) as agent:
        told = dict(line.split("=", 1) for line in environment(agent).splitlines())
        assert told[VARIABLE] == (
            "silence_s=70,grace_s=0.25,hang_s=10,lock_s=1,lock_ending_s=60,connected_s=60,stall_s=30,finish_s=60"
        )
        assert agent.limits == Limits(lock_s=0.01)


def environment(agent: Agent) -> str:
    """Of a process that the agent starts: its own."""
    lines = [text for _, text in agent.spawn("env", ["env"]).lines()]
    return "\n".join(line for line in lines if "=" in line)


def test_an_agent_that_is_told_nonsense_says_so(tmp_path: Path) -> None:
    told = {"FAIRTRIAL_STATE_DIRECTORY": str(tmp_path), VARIABLE: "silense_s=2"}
    transport = PipeTransport([str(find_agent()), "serve"], environment=told)
    assert transport.read() == b""
    transport.close()
    assert "`silense_s` is not a limit of the agent" in transport.said()
