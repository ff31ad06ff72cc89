"""The page beside a run: on which processors it runs, that it is a process of its own, what the record says of it."""

from __future__ import annotations

import os
import urllib.request
from pathlib import Path

import pytest
from support.command_line import PATIENCE_S
from support.records import RESOLVED, tiny_plan

from fairtrial import record
from fairtrial.analyse.doubts import page as doubts
from fairtrial.cli.running import page as beside
from fairtrial.cli.running.page import Page, _processors
from fairtrial.record.events import PageServed
from fairtrial.record.models import Plan
from fairtrial.study.resolved import Section

HERE = {0, 1, 2, 3}


def plan(*, place: str = "local", **settings: object) -> Plan:
    trial = RESOLVED.model_copy(update={"place": Section({place: {}}), "settings": settings})
    return tiny_plan().model_copy(update={"resolved": {"all": {"a": trial, "b": trial}}})


@pytest.mark.parametrize(
    ("of", "own", "shared"),
    [
        (plan(), [], True),
        (plan(affinity={"server": "0-1"}), [], True),
        (plan(affinity={"server": "0-1", "client": "2"}), [3], False),
        (plan(affinity={"server": "0-1", "client": "2-3"}), [], True),
        (plan(place="vm", affinity={"server": "0", "client": "1"}), [], True),
        (plan(place="ssh"), [], False),
    ],
)
def test_a_page_takes_what_trials_leave_and_says_where_they_leave_nothing(
    *, of: Plan, own: list[int], shared: bool
) -> None:
    assert _processors(of, HERE) == (own, shared)


@pytest.mark.parametrize(("kinds", "shared"), [(["ssh"], False), (["ssh", "local"], True), ([], True)])
def test_beside_a_farm_its_hosts_are_where_trials_run(*, kinds: list[str], shared: bool) -> None:
    assert _processors(plan(), HERE, hosts=[Section({kind: {}}) for kind in kinds]) == ([], shared)


def test_a_page_is_a_process_of_its_own_whose_time_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "STARTED_S", PATIENCE_S)
    writer = record.create(tmp_path / "one", plan=tiny_plan(), sources={"study.yaml": "study: tiny\n"})
    page = Page.started(writer.directory, writer.plan)
    try:
        assert os.getsid(page.process.pid) == page.process.pid
        assert "token" not in Path(f"/proc/{page.process.pid}/cmdline").read_text(encoding="utf-8")
        with pytest.raises(urllib.error.HTTPError, match="403"):  # the page itself needs the cookie that comes next
            urllib.request.urlopen(page.address.partition("?")[0])
        served = page.served()
        assert served is not None
        assert 0 <= served.processor_s < page.began_ticks  # its start is before the run
        assert served.elapsed_s > 0
        assert served.shared
    finally:
        page.process.kill()
        page.process.wait()
        writer.close()
    assert page.served() is None


@pytest.mark.parametrize(
    ("processor_s", "shared", "codes"), [(0.6, True, ["page_shared"]), (0.6, False, []), (0.4, True, [])]
)
def test_more_than_half_a_percent_of_a_shared_processor_is_a_doubt(
    *, processor_s: float, shared: bool, codes: list[str]
) -> None:
    quiet = PageServed(processor_s=0.0, elapsed_s=1000.0, shared=True)
    found = list(doubts.about([quiet, PageServed(processor_s=processor_s, elapsed_s=100.0, shared=shared)]))
    assert [doubt.code for doubt in found] == codes
    assert all("0.60 %" in doubt.message for doubt in found)
