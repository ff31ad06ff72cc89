"""Pages about many runs, as a browser without scripts gets them."""

from __future__ import annotations

import asyncio
import html
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pytest
from starlette.types import ASGIApp, Message, Scope

from fairtrial.errors import PlaceError
from fairtrial.record.models import Clock, PlaceOpened
from fairtrial.serve.overview import index as indexing
from fairtrial.serve.overview import machine
from fairtrial.serve.site import application
from fairtrial.study.resolved import Section

Write = Callable[..., Path]
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e&"
SHOWN = html.escape("<script>alert(1)</script>\\x1b[31m\\u202e&")


@dataclass(frozen=True)
class Answer:
    """What comes back; `location` of a redirect."""

    status: int
    location: str
    text: str


@dataclass
class Reader:
    """Asks the page, without its guard, and follows redirects as a browser does."""

    app: ASGIApp

    def get(self, path: str, *, follow: bool = True) -> Answer:
        answer = asyncio.run(self._asked("GET", path))
        return self.get(answer.location) if follow and answer.location else answer

    def post(self, path: str) -> Answer:
        answer = asyncio.run(self._asked("POST", path))
        return self.get(answer.location)

    async def _asked(self, method: str, path: str) -> Answer:
        address, _, query = path.partition("?")
        scope: Scope = {
            "type": "http",
            "method": method,
            "path": unquote(address),
            "query_string": query.encode(),
            "headers": [(b"host", b"127.0.0.1:1")],
            "http_version": "1.1",
            "scheme": "http",
            "server": ("127.0.0.1", 1),
            "root_path": "",
        }
        sent: list[Message] = []

        async def receive() -> Message:
            await asyncio.sleep(0 if not sent else 3600)
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        headers = dict(sent[0]["headers"])
        text = b"".join(message.get("body", b"") for message in sent[1:]).decode()
        return Answer(sent[0]["status"], headers.get(b"location", b"").decode(), text)


@pytest.fixture
def reader(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Waits for the index: a busy machine takes seconds to load the models."""
    for name in ("FIRST_WAIT_S", "WAIT_S", "SMALL_S"):
        monkeypatch.setattr(indexing, name, 120.0)
    for name in ("FRESH_S", "REST"):
        monkeypatch.setattr(indexing, name, 0.0)
    return Reader(application(runs, epoch="e"))


def names(page: str) -> list[str]:
    """Rows of a list, in their order."""
    return [html.unescape(name) for name in re.findall(r'<th scope="row">(?:<a [^>]*>)?([^<]*)', page)]


def test_the_list_has_every_run_with_its_verdict_and_ratio(reader: Reader, write: Write) -> None:
    write("slow-1", ratio=1.2)
    write("fast-2", ratio=0.8)
    write("going-3", state="unfinished")
    page = reader.get("/").text
    assert names(page) == ["going-3", "fast-2", "slow-1"]
    assert '<span class="verdict slower">slower</span>' in page
    assert '<span class="verdict faster">faster</span>' in page
    assert "no verdict yet" in page
    assert "3 / 16" in page
    assert re.search(r"1\.\d{3} <span class=\"quiet\">\[1\.\d{3} – 1\.\d{3}\]", page)
    assert names(reader.get("/?verdict=worse").text) == ["slow-1"]
    assert names(reader.get("/?sort=ratio").text) == ["fast-2", "slow-1", "going-3"]
    assert names(reader.get("/?state=interrupted").text) == ["going-3"]


def test_what_a_form_sends_gets_its_short_address(reader: Reader, write: Write) -> None:
    write("r")
    answer = reader.get("/?text=a+b&study=&verdict=worse&state=", follow=False)
    assert (answer.status, answer.location) == (303, "/?text=a+b&verdict=worse")
    assert reader.get("/?text=&study=", follow=False).location == "/"


def test_a_run_that_changes_is_shown_as_it_is(reader: Reader, write: Write) -> None:
    write("r", state="unfinished")
    assert "interrupted" in reader.get("/").text
    shutil.rmtree(write("other").parent / "r")
    assert names(reader.get("/").text) == ["other"]


def test_a_directory_without_runs_says_how_to_start_one(reader: Reader) -> None:
    assert "fairtrial run" in reader.get("/").text


def test_hostile_names_are_text(reader: Reader, write: Write, runs: Path) -> None:
    write("a").rename(runs / "<b>bold&name")
    write("hostile", study=HOSTILE, size=HOSTILE)
    page = reader.get("/").text
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert SHOWN in page
    assert "&lt;b&gt;bold&amp;name" in page
    assert 'href="/runs/%3Cb%3Ebold%26name"' in page
    for path in ("/?text=%3Cscript%3Ealert(1)", "/?study=%22%3E%3Cscript%3Ealert", "/history?study=%3Cscript%3Ealert"):
        assert "<script>alert" not in reader.get(path).text


def test_a_damaged_run_is_listed_with_its_reason_and_without_a_page(reader: Reader, write: Write) -> None:
    (write("cut") / "plan.json").write_text("{", encoding="utf-8")
    page = reader.get("/").text
    assert names(page) == ["cut"]
    assert "plan.json cannot be read" in page
    assert "/runs/cut" not in page


@pytest.mark.parametrize("path", ["/", "/?verdict=worse", "/history", "/history?study=tiny", "/side-by-side"])
def test_no_page_has_inline_style_or_script(path: str, reader: Reader, write: Write) -> None:
    write("r", ratio=1.2)
    page = reader.get(path).text
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=|<script(?! src=)", page)


@pytest.mark.parametrize("path", ["/", "/history?study=tiny", "/side-by-side?run=a&run=b"])
def test_every_table_has_a_caption_and_headers_with_a_scope(path: str, reader: Reader, write: Write) -> None:
    write("a")
    write("b")
    page = reader.get(path).text
    assert page.count("<table") == page.count("<caption") > 0
    assert not re.search(r"<th(?![^>]*scope=)[ >]", page)


def opened(kernel: str) -> PlaceOpened:
    return PlaceOpened(
        place=Section({"local": {}}),
        facts={"kernel": kernel, "host": "bench-1"},
        agent_sha256="0",
        clock=Clock(monotonic_ns=1, realtime_ns=2),
        server_user=None,
    )


def test_runs_beside_each_other_show_what_differs_then_figures_then_the_doubt(reader: Reader, write: Write) -> None:
    first = write("r1", ratio=1.2, events=[opened("6.1.0")])
    write("r2", ratio=1.2, level=1.5, size="large", events=[opened("6.12.3")])
    assert first.is_dir()
    page = reader.get("/side-by-side?run=r1&run=r2").text
    rows = {
        row[0]: row[1:] for row in (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", each) for each in page.split("<tr")) if row
    }
    assert rows["local: kernel"] == ["6.1.0", "6.12.3"]
    assert rows["size"] == ["–", "large"]
    assert "local: host" not in rows, "it is the same"
    assert all("slower" in cell and "1.2" in cell for cell in rows["b / a"])
    assert rows["a"][0] == "elapsed_s"
    assert "slower, p" in rows["a"][1]
    assert page.index("What differs") < page.index("wall time") < page.index("runs are not blocks")
    assert "noise from run to run counts as a difference" in page


def test_equal_runs_differ_in_nothing_but_their_time(reader: Reader, write: Write) -> None:
    write("r1")
    write("r2")
    assert "Nothing else: places, systems, plans" in reader.get("/side-by-side?run=r1&run=r2").text


def test_a_run_without_a_report_beside_one_with_is_said(reader: Reader, write: Write) -> None:
    write("r1")
    write("r2", state="finished")
    write("r3", state="unfinished")
    page = reader.get("/side-by-side?run=r1&run=r2&run=r3").text
    assert "r2 has no report" in page
    assert "r3 is not finished: no verdict yet" in page


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "Choose 2 to 8 runs"),
        ("run=r1", "Choose 2 to 8 runs"),
        ("run=r1&run=r1", "Choose 2 to 8 runs"),
        ("run=r1&run=none", "There is no run none"),
        ("run=r1&run=../runs/r1", "There is no run ../runs/r1"),
        ("run=r1&run=other", "different studies: tiny, other"),
        ("run=r1&run=cut", "cut is damaged: plan.json"),
        ("run=r1&run=out", "There is no run out"),
    ],
)
def test_what_cannot_be_put_side_by_side_is_said(  # noqa: PLR0917 - a table of cases and two fixtures
    query: str, said: str, reader: Reader, write: Write
) -> None:
    directory = write("r1")
    write("other", study="other")
    (write("cut") / "plan.json").write_text("{", encoding="utf-8")
    (directory.parent / "out").symlink_to(directory)
    answer = reader.get(f"/side-by-side?{query}")
    assert answer.status == 404
    assert said in answer.text


def stepped(write: Write) -> None:
    """Twenty runs, the second half slower; after the tenth the version is another one."""
    for number in range(20):
        write(f"n{number:02d}", level=1.3 if number >= 10 else 1.0, state="finished")


def test_a_series_shows_its_change_and_what_acknowledges_it(reader: Reader, write: Write, runs: Path) -> None:
    stepped(write)
    page = reader.get("/history?study=tiny").text
    assert "change at n10" in re.sub(r"<[^>]+>", "", page)
    assert page.count('class="step"') == 2, "one in the series of each arm"
    assert page.count('<g class="point') == 40
    assert "Shown: 20 finished of 20 runs" in page
    (entry, _other) = (html.unescape(each) for each in re.findall(r"<pre[^>]*>(.*?)</pre>", page))
    assert '"run": "n10"' in entry
    (runs / "acknowledged.yaml").write_text(entry.replace("…", "a new <disk>") + "\n", encoding="utf-8")
    page = reader.get("/history?study=tiny").text
    assert "Acknowledged: a new &lt;disk&gt;" in page
    assert "change, acknowledged" in page
    assert len(re.findall(r"<pre", page)) == 1, "the other arm's is still news"


def test_damaged_trials_and_acknowledgements_do_not_hide_the_rest(reader: Reader, write: Write, runs: Path) -> None:
    for name in ("r1", "r2"):
        write(name)
    (next((runs / "r1" / "trials").iterdir()) / "trial.json").write_text("{", encoding="utf-8")
    (runs / "acknowledged.yaml").write_text("- {run: 1", encoding="utf-8")
    page = reader.get("/history?study=tiny").text
    assert "acknowledgements are not used" in page
    assert re.search(r"<dt>r1</dt><dd>cannot read", page)
    assert page.count('<g class="point') == 2


def test_other_metrics_and_unknown_studies(reader: Reader, write: Write) -> None:
    write("r")
    assert "No finished run gives a point of nothing" in reader.get("/history?study=tiny&metric=nothing").text
    answer = reader.get("/history?study=nothing")
    assert answer.status == 404
    assert 'href="/history?study=tiny"' in answer.text


def test_studies_are_listed_with_what_the_machine_lacks(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_place: object, **_options: object) -> None:
        raise PlaceError("no agent here", hint="build it")

    monkeypatch.setattr(machine, "open_place", closed)
    page = reader.get("/studies").text
    assert "no agent here" in page
    assert "sqlite-wal" in page


def test_nothing_looks_at_the_machine_while_a_run_goes_on(
    reader: Reader, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairtrial.record import live  # noqa: PLC0415
    from fairtrial.record.journal import NAME, Journal  # noqa: PLC0415
    from fairtrial.record.live import Live  # noqa: PLC0415

    def looked(_at: str) -> None:
        raise PlaceError("looked", hint="")

    monkeypatch.setattr(machine, "looked_at", looked)
    directory = write("r", state="unfinished")
    live.write(directory, Live(process=os.getpid()))
    journal = Journal(directory / NAME)
    try:
        page = reader.get("/studies").text
        assert "A run goes on" in page
        assert "sqlite-wal" in page
        assert "A run goes on" in reader.get("/studies?look=now").text, "other sites may link to any address"
        assert "looked" in reader.post("/studies").text
    finally:
        journal.close()
    assert "looked" in reader.get("/studies").text


def test_what_was_seen_of_the_machine_is_kept_until_somebody_wants_it_anew(
    reader: Reader, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairtrial.record.journal import NAME, Journal  # noqa: PLC0415

    times: list[str] = []

    def looked(at: str) -> machine.ThisMachine:
        times.append(at)
        return machine.ThisMachine(at, (), observed=True)

    monkeypatch.setattr(machine, "looked_at", looked)
    reader.get("/studies")
    reader.get("/studies")
    assert len(times) == 1
    journal = Journal(write("r", state="unfinished") / NAME)
    try:
        reader.post("/studies")
    finally:
        journal.close()
    assert len(times) == 2, "also while a run goes on"
