"""What browsers that follow a run are sent: all of it once, whenever it comes and whatever they had seen."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.progress import Told
from support.records import tiny_plan, trial_record

from fairtrial import record
from fairtrial.errors import RecordError
from fairtrial.live.followed import FollowedRun
from fairtrial.protocol.generated import RateProgress
from fairtrial.protocol.progress import TelemetryProgress
from fairtrial.record import Writer, live
from fairtrial.record.events import RunFinished
from fairtrial.record.live import Feed, Live, LiveTrial
from fairtrial.record.models import TrialStarted
from fairtrial.report.concerns import Concern
from fairtrial.run.progress import LiveProgress
from fairtrial.serve import following, run_page
from fairtrial.serve.following import Following, Seen
from fairtrial.serve.rendering import environment
from fairtrial.serve.run_page import RunPage

SECOND_NS = 1_000_000_000


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    monkeypatch.setattr(live, "MEMORY", tmp_path)
    found = record.create(tmp_path / "runs" / "one", plan=tiny_plan(), sources={"study.yaml": "study: tiny\n"})
    yield found
    found.close()


def page(writer: Writer) -> RunPage:
    return RunPage(FollowedRun(writer.directory), environment())


class Browser:
    """Keeps a chart's medians as page.js does."""

    def __init__(self) -> None:
        self.seen = Seen()
        self.medians: dict[str, list[float | None]] = {}

    def take(self, shown: RunPage) -> None:
        news = Following._news(shown, self.seen).get("charts")
        if news is None:
            return
        assert isinstance(news, dict)
        for name, chart in news["charts"].items():
            kept = self.medians.get(name, [])[: news["first"]]
            self.medians[name] = kept + [None] * (news["first"] - len(kept)) + chart["median"]


@pytest.mark.parametrize("phase_s", [0.05, 0.5, 0.95])
def test_telemetry_out_of_phase_reaches_who_follows_as_whoever_comes_late(writer: Writer, phase_s: float) -> None:
    trial = writer.plan.trials[0]
    writer.append(TrialStarted(trial=trial))
    with LiveProgress(writer.directory, Told()).shown():
        feed, shown, browser = Feed(writer.directory), page(writer), Browser()
        feed.begin()
        for second in range(30):
            feed.say(trial.id, RateProgress(per_s=second + 1, errors=0), at_s=1000.0 + second)
            every_s = 1 if second < 15 else 5  # and a sampler that looks less often
            if second % every_s == 0:
                busy = {"user": 10 * max(0, second - 8), "idle": 100 * second}
                said = TelemetryProgress(source="cpu", time_ns=second * SECOND_NS, values=busy)
                feed.say(trial.id, said, at_s=1000.0 + second + phase_s)
            shown.refresh()
            browser.take(shown)
        late = Browser()
        late.take(shown)
        feed.end()
    assert {"throughput", "cpu-user"} <= browser.medians.keys()
    for name, medians in late.medians.items():
        assert [each for each in browser.medians[name] if each is not None] == [m for m in medians if m is not None]
        assert browser.medians[name][: len(medians)] == medians


def test_a_run_that_was_forgotten_and_read_again_is_sent_to_whoever_had_seen_it(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "KEPT", 1)
    runs = writer.directory.parent
    record.create(runs / "two", plan=tiny_plan(), sources={"study.yaml": "study: tiny\n"}).close()
    every = Following(runs, environment(), "e")

    async def look() -> dict[str, object]:
        seen = Seen.parsed(every.seen(await every.page("one")))
        await every.page("two")
        writer.begin(writer.plan.trials[0].id)
        writer.commit(trial_record(writer.plan.trials[0]))
        return Following._news(await every.page("one"), seen)

    html = asyncio.run(look())["html"]
    assert isinstance(html, dict)
    assert "1 of 4 trials" in html["now"]


def test_a_page_that_takes_long_to_put_together_rests_but_for_the_runs_end(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, times = page(writer), [0.0]
    monkeypatch.setattr(run_page, "time", SimpleNamespace(monotonic=lambda: times[0]))
    put = shown._journalled

    def slow() -> None:
        times[0] += 2 * run_page.LONG_S
        put()

    monkeypatch.setattr(shown, "_journalled", slow)

    def parts_after(*, waited_s: float) -> int:
        times[0] += waited_s
        shown.refresh()
        return shown.parts.version

    first = parts_after(waited_s=0)
    writer.begin(writer.plan.trials[0].id)
    writer.commit(trial_record(writer.plan.trials[0]))
    rest_s = 2 * run_page.LONG_S / run_page.SHARE
    parts_after(waited_s=0.5 * rest_s)
    assert shown.stale
    assert parts_after(waited_s=0.5 * rest_s) > first
    assert not shown.stale
    writer.append(RunFinished())
    parts_after(waited_s=0)
    assert not shown.stale, "an end is shown at once"


def test_files_that_contradict_each_other_are_refused_and_not_a_fault_of_ours(writer: Writer) -> None:
    trial = LiveTrial(id="all.b01.a", number=1, total=4, left_s=9, began="2026-01-01T00:00:00")
    live.write(writer.directory, Live(process=os.getpid(), trial=trial))
    with pytest.raises(RecordError, match="contradict each other"):
        page(writer).refresh()


def test_doubts_of_one_kind_are_counted(writer: Writer) -> None:
    shown = page(writer)
    shown.doubts.found = (Concern(code="outlier", message="One is far off.", advice="Look.", spots=(), alike=2),)
    shown.show_analysis()
    assert "One is far off. (2 more like this in the report) <" in shown.parts.html("doubts")


def test_a_valid_trial_without_the_primary_metric_is_in_no_block(writer: Writer) -> None:
    for trial in writer.plan.trials:
        writer.begin(trial.id)
        done = trial_record(trial)
        writer.commit(done.model_copy(update={"scalars": {}}) if trial.id == "all.b02.b" else done)
    shown = page(writer)
    shown.refresh()
    assert "<td>1</td>" in shown.parts.html("cell-0").replace(' class="n"', "")


def test_once_a_value_is_0_the_row_says_why_there_is_no_ratio(writer: Writer) -> None:
    for trial in writer.plan.trials:
        writer.begin(trial.id)
        writer.commit(trial_record(trial).model_copy(update={"scalars": {"elapsed_s": float(trial.arm == "b")}}))
    shown = page(writer)
    shown.refresh()
    assert "block 1 has a value that is not above 0" in shown.parts.html("cells")


def test_a_ratio_has_as_many_decimals_as_its_interval(writer: Writer) -> None:
    for trial in writer.plan.trials:
        writer.begin(trial.id)
        value = 1.00009 + trial.block / 1e7 if trial.arm == "b" else 1.0
        writer.commit(trial_record(trial).model_copy(update={"scalars": {"elapsed_s": value}}))
    shown = page(writer)
    shown.refresh()
    html = " ".join(shown.parts.html(part) for part in ("cells", "cell-0"))
    assert "after 2 blocks: 1.000090, interval 1.000090 – 1.000091" in html
    assert html.count(">1.000090<") == html.count(">1.000090 – 1.000091<") == 2  # the cell's row and its table's last
