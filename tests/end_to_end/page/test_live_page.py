"""A run in the browser while it goes on: the page follows it, through its end, a kill and a resumption."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect
from support.command_line import Desk, desk, eventually
from support.kin import descendants
from support.machines.browser import CHROMIUM, MISSING, PATIENCE_MS, chromium
from support.machines.page import Served, reader, served
from support.machines.terminal import on_terminal

from fairtrial.record.live import controller

MARIADB = shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin")
pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(CHROMIUM is None, reason=MISSING),
    pytest.mark.skipif(MARIADB is None, reason="needs mariadbd: `make test` installs it when run as root"),
]
# Neither arm waits for the disk, on which one commit may take as long as the window.
STUDY = """
study: log-page
question: Is <b>flushing</b> the log at every commit slow?
place: {local: {}}
system: {mariadb: {options: {innodb_buffer_pool_size: 32M, innodb_flush_log_at_trx_commit: 2}}}
workload:
  oltp: {profile: read_write, table_size: 1000, ramp_up: 300ms, duration: 3s, think_time: 10ms, interval: 100ms}
factors:
  flushing:
    each: {}
    lazy: {system: {mariadb: {options: {innodb_flush_log_at_trx_commit: 0}}}}
arm: flushing
trials: {blocks: 4, seed: 1}
metrics: {primary: throughput_tps}
telemetry: {interval: 100ms}
"""
BRIEF = """
study: brief
system: {sqlite: {pragmas: {synchronous: "OFF"}}}
workload:
  oltp: {profile: point_select, table_size: 1000, ramp_up: 100ms, transactions: 300, think_time: 5ms, interval: 100ms}
factors:
  journal:
    delete: {}
    memory: {system: {sqlite: {pragmas: {journal_mode: MEMORY}}}}
arm: journal
trials: {blocks: 100, seed: 3}
metrics: {primary: throughput_tps}
"""


@pytest.fixture(scope="module")
def here() -> Iterator[Desk]:
    with desk() as found:
        yield found


@pytest.fixture(scope="module")
def page_of(here: Desk) -> Iterator[Served]:
    (here.directory / "runs").mkdir()
    with served(here, "runs", "--control") as found:
        yield found


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def server_log(run: Path) -> list[str]:
    """Every line that the server of a finished trial wrote with a time."""
    logs = [path.read_text(encoding="utf-8") for path in run.glob("trials/*/log/server.log")]
    return [line for log in logs for line in log.splitlines() if re.match(r"\d{4}-\d\d-\d\d ", line)]


def test_a_page_follows_its_run_through_a_kill_and_a_resumption(here: Desk, page_of: Served, window: Browser) -> None:
    process = here.start("run", here.study(STUDY))
    eventually(lambda: here.runs and controller(here.run) is not None, "the run did not begin")
    with reader(window, page_of) as seen, on_terminal(here, "watch", here.run) as watching:
        page = seen.run(here.run)
        expect(page.locator("h1")).to_have_text("log-page")
        question = "Is <b>flushing</b> the log at every commit slow?"  # text, never markup
        expect(page.locator(".question")).to_have_text(question)
        expect(page.locator("#now .pill")).to_have_text("running")
        expect(page.locator("#now")).to_contain_text("No verdict yet")
        expect(page.locator("#logs")).to_contain_text("ready for connections")  # the server says so in its log
        for title in ("throughput", "written to the server's log"):
            expect(page.locator("#charts figcaption", has_text=title)).to_have_count(1)
        expect(page.locator(".slot.valid").first).to_be_visible()  # of the plan, without a reload

        page.locator("#cell-0 details.data summary").click()
        expect(page.locator("#cell-0 details.data table")).to_be_visible()
        eventually(lambda: "ready for connections" in watching.text, "the terminal shows no log")
        before = page.locator(".plan .slot.valid").count()
        eventually(lambda: page.locator(".plan .slot.valid").count() > before, "the plan did not fill in")

        def drawn() -> set[str]:
            return {*map(str.strip, watching.text.splitlines())} & {*server_log(here.run)}

        eventually(drawn, "no line that the terminal has shown is of a log")
        os.killpg(process.pid, signal.SIGSTOP)  # however long looking takes, it cannot end before it is killed
        expect(page.locator("#cell-0 details.data table")).to_be_visible()  # what a reader opened stays open
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        expect(page.locator("#now .pill")).to_have_text("interrupted")
        expect(page.locator("#now")).to_contain_text("--resume")
        assert watching.end() == 3, watching.text[-3000:]
        assert "its exit code is unknown" in watching.text
        own = page_of.process.pid
        eventually(lambda: here.processes().keys() <= set(descendants(own)), "the run left processes")

        resumed = here.start("run", here.run, "--resume")
        expect(page.locator("#now .pill")).to_have_text("running")
        resumed.communicate()
        assert resumed.returncode == 0
        expect(page.locator("#now .pill")).to_have_text("finished")
        expect(page.locator(".plan .slot.valid")).to_have_count(8)
        expect(page.locator("#charts figure")).to_have_count(0)
        expect(page.locator("#verdicts")).to_contain_text("flushing lazy instead of each")


def test_a_finished_run_is_read_trial_by_trial_and_as_a_report(here: Desk, page_of: Served, window: Browser) -> None:
    with reader(window, page_of) as seen:
        page = seen.run(here.run, "?trial=0")
        assert "token" not in page.url
        expect(page.locator("#trial h2")).to_contain_text("Trial 0")
        expect(page.locator("#trial figcaption").first).to_contain_text("throughput")
        for title in ("p95 latency", "CPU, user", "server's memory", "written to the server's log"):
            expect(page.locator("#trial figcaption", has_text=title)).to_have_count(1)
        chart = page.locator("#trial figure").first
        chart.locator("summary").click()
        assert chart.locator("tbody tr").count() >= 2
        assert seen.findings() == []
        page.locator("#trial a[rel=next]").click()
        expect(page.locator("#trial h2")).to_contain_text("Trial 1")
        assert len(page.url) - len(page_of.base) < 200
        page.locator("#now a", has_text="Report").click()
        expect(page.locator("#verdicts h2")).to_have_text("Verdicts")
    with reader(window, page_of, dark=True, phone=True) as seen:
        page = seen.run(here.run)
        expect(page.locator("#now .pill")).to_have_text("finished")
        assert seen.findings() == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than a phone"
        at = page.locator("#events time").first
        assert " UTC" in str(at.get_attribute("title"))


def raw_status(page: Served, path: str, *, cookie: str) -> int:
    host, _, root = page.base.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host)
    connection.putrequest("GET", f"/{root}{path}", skip_host=False)
    connection.putheader("Cookie", cookie)
    connection.endheaders()
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def test_who_may_look(here: Desk, page_of: Served, window: Browser) -> None:
    context = window.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    refused = page.goto(f"{page_of.base}/runs/{here.run.name}")
    assert refused is not None
    assert refused.status == 403
    assert context.cookies() == []
    wrong = page.goto(f"{page_of.base}/?token=wrong")
    assert wrong is not None
    assert wrong.status == 403
    context.close()
    with reader(window, page_of) as seen:
        seen.run(here.run)
        (cookie,) = seen.page.context.cookies()
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Lax"
        kept = f"{cookie['name']}={cookie['value']}"
        for path in ("/runs/..", "/runs/%2e%2e", "/runs/..%2f..%2fetc", "/runs/../../etc/passwd", "/assets/../site.py"):
            assert raw_status(page_of, path, cookie=kept) == 404, path  # a browser would have tidied it up
        for path in ("/runs/nothing-20260101T000000Z", "/nowhere"):
            assert seen.page.request.get(f"{page_of.base}{path}").status == 404, path
        for headers in (
            {"host": f"evil.example:{urlsplit(page_of.base).port}"},
            {"origin": "http://evil.example"},
            {"sec-fetch-site": "cross-site"},
        ):
            answer = seen.page.request.get(f"{page_of.base}/runs/{here.run.name}", headers=headers)
            assert answer.status in (403, 421), headers
            assert here.run.name not in answer.text()
        assert "127.0.0.1" in seen.page.request.get(page_of.base, headers={"host": "evil.example"}).text()


def test_a_damaged_record_is_named_and_shown_as_far_as_nothing_else_breaks(
    here: Desk, page_of: Served, window: Browser
) -> None:
    damaged = here.directory / "runs" / "damaged-20260101T000000Z"
    damaged.mkdir()
    (damaged / "plan.json").write_text('{"format_version": 1, "study": "<script>alert(1)</script>"')
    with reader(window, page_of) as seen:
        page = seen.run(damaged)
        expect(page.locator("h1")).to_have_text("Not shown")
        expect(page.locator("main")).to_contain_text("plan.json")
        assert page.locator("main script").count() == 0
        seen.complaints.clear()  # a browser says 404 of what is not shown


def test_a_run_is_stopped_at_once_only_by_who_says_so_twice(here: Desk, page_of: Served, window: Browser) -> None:
    process = here.start("run", here.study(BRIEF, name="brief.yaml"))
    eventually(lambda: list((here.directory / "runs").glob("brief-*")), "the run did not begin")
    (run,) = (here.directory / "runs").glob("brief-*")
    eventually(lambda: controller(run) is not None, "nobody runs it")
    with reader(window, page_of) as seen:
        page = seen.run(run)
        asking = page.get_by_role("dialog", name="Stop this run now?")
        expect(asking).to_be_hidden()
        page.get_by_role("button", name="Stop now…").focus()
        page.keyboard.press("Enter")
        expect(asking.get_by_role("button", name="Keep running")).to_be_focused()
        assert seen.findings() == []
        page.keyboard.press("Escape")
        expect(asking).to_be_hidden()
        expect(page.get_by_role("button", name="Stop now…")).to_be_focused()
    assert process.poll() is None
    with reader(window, page_of, scripts=False) as seen:
        page = seen.run(run)
        page.get_by_role("button", name="Stop now…").click()
        page.get_by_role("dialog").get_by_role("button", name="Stop now").click()
        said, _ = process.communicate()
        assert process.returncode == 130, said
        eventually(lambda: "interrupted" in seen.run(run).inner_text("#now"), "the page does not say so")
    assert '"act":"stop_now"' in (run / "journal.jsonl").read_text(encoding="utf-8").replace(" ", "")
