"""A run that is told to stop in the middle of a trial stops, whatever else fails on its way out."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from support.machines.stage import Stage

from fairtrial.protocol.generated import Step
from fairtrial.settings import Effect


def test_a_stream_that_ends_with_the_interrupt_does_not_make_it_a_lost_trial(stage: Stage) -> None:
    """As a service manager stops a run: the controller and its agent get SIGTERM at once."""

    def stop_both(_drive: Any) -> None:
        os.kill(stage.runner.place.agent._stream._transport.pid, signal.SIGTERM)  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    stage.staged.at["drive"] = stop_both
    with pytest.raises(KeyboardInterrupt):
        stage.run()
    assert stage.committed == []


def test_settings_are_undone_once_the_load_has_ended(stage: Stage) -> None:
    """As a mount, whose undoing fails as long as a process of the load is there."""
    load, busy = stage.directory / "load", stage.directory / "busy"
    undo = ["sh", "-c", f"if kill -0 $(cat {load}) 2>/dev/null; then touch {busy}; exit 1; fi"]
    step = {"name": "storage.mount", "action": {"kind": "execute", "argv": ["true"]}}
    step["inverse"] = {"kind": "execute", "argv": undo}
    stage.effect(Effect(steps=(("place", Step.model_validate(step)),)))

    def interrupt(_drive: Any) -> None:
        load.write_text(str(stage.runner.place.agent.spawn("load", ["sleep", "60"]).pid))
        raise KeyboardInterrupt

    stage.staged.at["drive"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        stage.run()
    assert stage.committed == []
    stage.runner.place.agent.close()
    assert not busy.exists()
