"""Runs that are long, records that mean harm: the page stays small, quick and text."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect
from support.command_line import Desk, desk, eventually
from support.machines.browser import CHROMIUM, MISSING, chromium
from support.machines.machine import number_of_process
from support.machines.page import Served, reader, served
from support.progress import Told
from support.records import planned, tiny_plan, trial_record

from fairtrial.protocol.generated import MeasuringProgress, RateProgress
from fairtrial.protocol.progress import TelemetryProgress
from fairtrial.record import Writer, create
from fairtrial.record.events import RunFinished
from fairtrial.record.live import Feed
from fairtrial.record.models import BlockVoided, CellLook, LookTaken, Plan, PlannedTrial, TrialStarted
from fairtrial.run.progress import LiveProgress

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)

BLOCKS, HOUR_S = 500, 3600
HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e</script><script>alert(2)</script>"
HEAP = "(gc(), performance.memory.usedJSHeapSize)"
DRAWN = """([title, name]) => {  // pixels of a colour between the axes of a chart
  const chart = [...document.querySelectorAll("#charts figure")].find((each) => each.innerText.includes(title));
  const canvas = chart.querySelector("canvas");
  const colour = document.createElement("canvas").getContext("2d");
  colour.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  colour.fillRect(0, 0, 1, 1);
  const [red, green, blue] = colour.getImageData(0, 0, 1, 1).data;
  const { data } = canvas.getContext("2d").getImageData(70, 0, canvas.width - 70, canvas.height - 40);
  let count = 0;
  for (let at = 0; at < data.length; at += 4) {
    const off = Math.abs(data[at] - red) + Math.abs(data[at + 1] - green) + Math.abs(data[at + 2] - blue);
    count += off < 30 && data[at + 3] > 200;
  }
  return count;
}"""
MEBI = 1 << 20


@pytest.fixture(scope="module")
def here() -> Iterator[Desk]:
    with desk() as found:
        (found.directory / "runs").mkdir()
        yield found


@pytest.fixture(scope="module")
def page_of(here: Desk) -> Iterator[Served]:
    with served(here) as found:
        yield found


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def long_plan() -> Plan:
    trials = [planned(block, arm) for block in range(1, BLOCKS + 1) for arm in "ab"]
    plan = tiny_plan()
    return plan.model_copy(update={"trials": trials, "design": plan.design.model_copy(update={"blocks": BLOCKS})})


def commit(writer: Writer, trial: PlannedTrial, *, log: bytes = b"", level: float = 100.0) -> None:
    (metric,) = writer.plan.metrics.primary
    record = trial_record(trial)
    value = level + trial.block % 7 + (5.0 if trial.arm == "b" else 0.0)
    directory = writer.begin(trial.id)
    (directory / "log" / "server.log").write_bytes(log)
    writer.commit(record.model_copy(update={"scalars": {**record.scalars, metric: value}}))


def test_a_thousand_trials_and_an_hour_by_second_stay_small(here: Desk, page_of: Served, window: Browser) -> None:
    plan = long_plan()
    directory = here.directory / "runs" / "tiny-20260101T000000Z"
    writer = create(directory, plan=plan, sources={"study.yaml": "study: tiny\n"})
    for trial in plan.trials[:-2]:
        commit(writer, trial)
    last = plan.trials[-1]
    writer.append(TrialStarted(trial=last))
    with LiveProgress(directory, Told()).shown() as progress:
        progress.trial_started(last, number=len(plan.trials), total=len(plan.trials), left_s=60)
        feed = Feed(directory)
        feed.begin()
        began_s = time.time()

        def drive(seconds: range) -> None:
            for second in seconds:
                per_s = 5000.0 if second == HOUR_S // 2 else 100.0 + second % 10  # one spike of one second
                feed.say(last.id, RateProgress(per_s=per_s, errors=0), at_s=began_s + second)
                if second % 60 == 0:  # seldom: no two in stretches beside each other
                    level = TelemetryProgress(source="memory", time_ns=second, values={"MemAvailable": 1 << 30})
                    feed.say(last.id, level, at_s=began_s + second)

        drive(range(HOUR_S))
        with reader(window, page_of) as seen:
            page = seen.run(directory)
            expect(page.locator(".plan .slot.valid")).to_have_count(len(plan.trials) - 2)
            expect(page.locator("#charts .plot[aria-label*='most 5,000']")).to_be_visible()  # the spike is not lost
            chart = page.locator("#charts figure", has_text="throughput")
            chart.locator("details.data summary").click()
            assert chart.locator("tbody tr").count() <= 600
            assert page.evaluate("document.querySelectorAll('*').length") < 20_000
            assert page.evaluate(DRAWN, ["memory available", "--accent"]) > 200, "what is read seldom is no line"

            def shown_s() -> int:
                return int(chart.locator("tbody td:first-child").last.inner_text().replace(",", ""))

            before, unmarked = page.evaluate(HEAP), page.evaluate(DRAWN, ["throughput", "--quiet"])
            feed.say(last.id, MeasuringProgress(time_ns=1), at_s=began_s + HOUR_S)
            for part in range(5):
                drive(range(HOUR_S + 600 * part, HOUR_S + 600 * (part + 1)))
                grown_s = HOUR_S + 600 * (part + 1) - 16  # stretches are of 16 seconds by then
                eventually(lambda: shown_s() >= grown_s, "the open table did not grow")  # noqa: B023 - called at once
            assert page.evaluate(HEAP) - before < 2 * MEBI
            assert page.evaluate(DRAWN, ["throughput", "--quiet"]) > unmarked + 20, "the measurement has no mark"
            over = chart.locator(".u-over")
            size = over.bounding_box()
            assert size is not None
            over.click(position={"x": size["width"] * 0.9, "y": 20})
            page.wait_for_url(re.compile("#t="))
            where, _, second = page.url.partition("#t=")
            assert where.endswith(f"?trial={len(plan.trials) - 1}")
            assert int(second) > HOUR_S
            seen.complaints.clear()  # a browser advises who reads a canvas back
        feed.end()
    writer.close()


def test_a_chosen_trial_is_shown_as_it_ends(here: Desk, page_of: Served, window: Browser) -> None:
    plan = tiny_plan()
    directory = here.directory / "runs" / "chosen-20260101T000000Z"
    writer = create(directory, plan=plan, sources={"study.yaml": "study: tiny\n"})
    with reader(window, page_of) as seen:
        page = seen.run(directory, "?trial=0")
        expect(page.locator("#trial")).to_contain_text("planned")
        lost: list[str] = []

        def lose_the_first(route: Route) -> None:
            if route.request.resource_type != "fetch" or lost:
                route.continue_()
            else:
                lost.append(route.request.url)
                route.abort()

        page.route("**/*?trial=0", lose_the_first)
        commit(writer, plan.trials[0], log=b"ready\n")
        expect(page.locator("#trial > p .slot.valid")).to_be_visible()
        assert seen.complaints == ["Failed to load resource: net::ERR_FAILED"], "it asks again"
        seen.complaints.clear()
        expect(page.locator("#trial table")).to_contain_text("101")
        expect(page.locator("#trial .log")).to_have_count(1)
    writer.close()


def test_what_became_of_a_plan_is_said_and_reached_by_the_keyboard(
    here: Desk, page_of: Served, window: Browser
) -> None:
    plan = tiny_plan()
    plan = plan.model_copy(
        update={
            "trials": [planned(block, arm) for block in (1, 2, 3) for arm in "ab"],
            "design": plan.design.model_copy(update={"stop": "sequential", "blocks": 3, "min_blocks": 1}),
        }
    )
    directory = here.directory / "runs" / "stopped-20260101T000000Z"
    writer = create(directory, plan=plan, sources={"study.yaml": "study: tiny\n"})
    commit(writer, plan.trials[0])
    writer.begin(plan.trials[1].id)
    writer.commit(trial_record(plan.trials[1], valid=False))
    writer.append(BlockVoided(cell="all", block=1, reason="all.b01.b is invalid"))
    for trial in plan.trials[2:4]:
        commit(writer, trial)
    stop = CellLook(cell="all", blocks=1, information=0.3, decision="stop", reason="difference")
    writer.append(LookTaken(round=2, decision="stop", cells=[stop]))
    writer.close()
    with reader(window, page_of) as seen:
        page = seen.run(directory)
        expect(page.locator(".plan .slot.stopped")).to_have_count(2)
        expect(page.locator(".plan .slot.void")).to_have_attribute("title", "block 1, a: void, all.b01.b is invalid")
        expect(page.locator("#cells")).to_contain_text("stopped after 1 block: a difference is shown")
        assert "p value" not in page.locator("main").inner_text()  # a look has none
        page.locator(".plan a.slot").first.focus()
        page.keyboard.press("ArrowDown")
        expect(page.locator(".plan .slot.invalid")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#trial")).to_contain_text("invalid: broken on purpose")
        assert seen.findings() == []


def test_what_a_stranger_wrote_is_shown_as_text(here: Desk, page_of: Served, window: Browser) -> None:
    plan = tiny_plan().model_copy(update={"study": "tiny", "question": HOSTILE})
    directory = here.directory / "runs" / "hostile-20260101T000000Z"
    writer = create(directory, plan=plan, sources={"study.yaml": "study: tiny\n"})
    for trial in plan.trials:
        commit(writer, trial, log=b"x" * MEBI + b"\n\xff\xfe\n" + HOSTILE.encode() + b"\n")
    writer.close()
    with reader(window, page_of) as seen:
        seen.page.on("dialog", lambda dialog: seen.complaints.append(dialog.message))
        page = seen.run(directory, "?trial=0")
        expect(page.locator("#trial h2")).to_contain_text("Trial 0")
        assert "<img src=x onerror=alert(1)>" in page.locator(".question").inner_text()
        assert "\x1b" not in page.content()
        assert "\u202e" not in page.content()
        logs = page.locator("#trial .log pre")
        assert "alert(2)" in str(logs.first.text_content())
        assert len(page.content()) < MEBI // 4
        assert page.locator("main img, main script").count() == 0
        (directory / "trials" / plan.trials[0].id / "log" / "leak.log").symlink_to(Path("/etc/passwd"))
        logs = seen.run(directory, "?trial=0").locator("main")
        expect(logs).to_contain_text("Trial 0")
        assert "root:" not in seen.page.content()


def test_a_journal_that_is_cut_is_shown_as_far_as_it_goes_and_a_changed_one_is_named(
    here: Desk, page_of: Served, window: Browser
) -> None:
    plan = tiny_plan()
    directory = here.directory / "runs" / "cut-20260101T000000Z"
    writer = create(directory, plan=plan, sources={"study.yaml": "study: tiny\n"})
    commit(writer, plan.trials[0])
    writer.close()
    journal = directory / "journal.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"sequence": 2, "ti')
    with reader(window, page_of) as seen:
        page = seen.run(directory)
        expect(page.locator(".plan .slot.valid")).to_have_count(1)
        expect(page.locator("#now .pill")).to_have_text("interrupted")
        journal.write_bytes(whole + b"nonsense\n")
        eventually(lambda: "not a journal line" in page.locator("#connection").inner_text(), "the damage is not told")


def test_a_table_among_several_is_copied_by_its_own_button(here: Desk, page_of: Served, window: Browser) -> None:
    plan = tiny_plan().model_copy(update={"trials": [planned(block, arm) for block in range(1, 9) for arm in "ab"]})
    names = [f"copied-2026010{day}T000000Z" for day in (1, 2, 3)]
    for level, name in enumerate(names, start=1):
        writer = create(here.directory / "runs" / name, plan=plan, sources={"study.yaml": "study: tiny\n"})
        for trial in plan.trials:
            commit(writer, trial, level=100.0 * level)
        writer.append(RunFinished())
        writer.close()
    with reader(window, page_of) as seen:
        seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        query = "&".join(f"run={name}" for name in names)
        eventually(
            lambda: "no run" not in seen.visit(f"/side-by-side?{query}").inner_text("main"), "runs are not known"
        )
        against = seen.page.locator("section", has_text=f"Against {names[0]}")
        expect(against.locator("table")).to_have_count(2)
        against.get_by_role("button", name="Copy as CSV").nth(1).click()
        expect(seen.page.locator("#announcer")).to_have_text("Copied")
        seen.complaints.clear()  # a browser says 404 of what is not known yet
        copied = str(seen.page.evaluate("navigator.clipboard.readText()"))
        own = [against.locator("table").nth(number).locator("tbody td").last.inner_text() for number in (0, 1)]
        assert own[0] != own[1]
        assert own[1] in copied.replace('""', '"')


def test_a_page_of_a_process_that_is_gone_says_what_to_open(here: Desk, window: Browser) -> None:
    directory = here.directory / "runs" / "alone-20260101T000000Z"
    create(directory, plan=tiny_plan(), sources={"study.yaml": "study: tiny\n"}).close()
    # Nobody takes it meanwhile: it lies below Linux's ephemeral ports, and those of fairtrial.
    port = str(21_000 + number_of_process("pages", below=100))
    with served(here, "runs", "--port", port) as first, reader(window, first) as seen:
        page = seen.run(directory)
        expect(page.locator("#connection")).to_have_text("live")
        first.process.terminate()
        expect(page.locator("#connection")).to_have_text("connection lost, trying again")
        first.process.wait()
        with served(here, "runs", "--port", port):
            expect(page.locator("#connection")).to_contain_text("open the address that fairtrial printed")
        seen.complaints.clear()
