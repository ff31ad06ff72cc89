"""Runs that bisections and tunings ask for: whose fault it is that one does not end."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import ALIKE

from fairtrial.errors import PlaceError
from fairtrial.queries import failure, run_whole
from fairtrial.record import Writer
from fairtrial.record.events import KEPT_VARIABLE, TrialStarted

TEXT = f"{ALIKE}trials: {{blocks: 2}}\n"


def test_other_variables_than_a_query_began_with_are_no_fault_of_the_arm_that_ran_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[str] = []

    def killed(writer: Writer) -> None:
        writer.append(TrialStarted(trial=writer.plan.trials[0]))
        began.append(writer.plan.trials[0].arm)
        raise KeyboardInterrupt

    monkeypatch.delenv(KEPT_VARIABLE, raising=False)
    with pytest.raises(KeyboardInterrupt):
        run_whole(tmp_path / "0001", lambda: TEXT, killed)
    monkeypatch.setenv(KEPT_VARIABLE, "*")
    with pytest.raises(PlaceError, match="began with not set") as refused:
        run_whole(tmp_path / "0001", lambda: TEXT, killed)
    assert failure(tmp_path / "0001", refused.value, arm=began[0]) == ""
    assert "`unset FAIRTRIAL_ENVIRONMENT`, then resume" in refused.value.hint
    assert len(began) == 1
