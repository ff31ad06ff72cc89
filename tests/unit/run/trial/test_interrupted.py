"""A run that is told to stop in the middle of a trial stops, whatever else fails on its way out."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from support.machines.stage import Stage

from fairtrial.errors import StreamLostError
from fairtrial.protocol.generated import Step
from fairtrial.run.trial import runner
from fairtrial.settings import Effect
from fairtrial.systems import ServerAddress


def test_a_stream_that_ends_with_the_interrupt_does_not_make_it_a_lost_trial(stage: Stage) -> None:
    """As a service manager stops a run: the controller and its agent get SIGTERM at once."""

    def stop_both(_drive: Any) -> None:
        os.kill(stage.runner.place.agent._stream._transport.pid, signal.SIGTERM)  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    stage.staged.at["drive"] = stop_both
    with pytest.raises(KeyboardInterrupt):
        stage.run()
    assert stage.committed == []
    with pytest.raises(StreamLostError):  # nobody may have been told yet, and then closing would
        stage.runner.place.require(["true"], hint="")


def test_settings_are_undone_once_the_load_has_ended(stage: Stage) -> None:
    """As a mount, whose undoing fails as long as a process of the load is there."""
    load, busy = stage.directory / "load", stage.directory / "busy"
    undo = ["sh", "-c", f"if kill -0 $(cat {load}) 2>/dev/null; then touch {busy}; exit 1; fi"]
    step = {"name": "storage.mount", "action": {"kind": "execute", "argv": ["true"]}}
    step["inverse"] = {"kind": "execute", "argv": undo}
    stage.effect(Effect(steps=(("place", Step.model_validate(step)),)))

    def interrupt(_drive: Any) -> None:
        load.write_text(str(stage.runner.place.agent.spawn("load", ["sleep", "1000"]).pid))
        raise KeyboardInterrupt

    stage.staged.at["drive"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        stage.run()
    assert stage.committed == []
    stage.runner.place.agent.close()
    assert not busy.exists()


def test_a_server_that_is_there_has_its_options_again_before_its_lock_is_free(stage: Stage) -> None:
    """Else the next study of it would take what an arm had set for the server's own."""
    parts, locked = stage.staged.parts, stage.directory / "locked"
    system: Any = parts.system
    system.there = lambda: ServerAddress("db1", None)
    stage.monkeypatch.setattr(runner, "parts_of", lambda _resolved: parts)
    lock = stage.runner.place.agent.spawn("server-lock", ["sleep", "1000"])
    step = {"name": "options of a server", "action": {"kind": "execute", "argv": ["true"]}}
    undo = ["sh", "-c", f"kill -0 {lock.pid} && touch {locked}"]
    step["inverse"] = {"kind": "execute", "argv": undo, "lasting": True}

    def interrupt(_drive: Any) -> None:
        stage.runner.place.agent.change(Step.model_validate(step))
        raise KeyboardInterrupt

    stage.staged.at["drive"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        stage.run()
    assert locked.exists()
