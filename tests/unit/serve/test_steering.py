"""What a page with `--control` does, for whom, and that it does nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.types import ASGIApp, Message, Scope
from support.command_line import PATIENCE_S
from support.progress import Told
from support.records import tiny_plan

from fairtrial import record
from fairtrial.cli.running.serve import _plan
from fairtrial.record import Writer, live
from fairtrial.run.progress import LiveProgress
from fairtrial.run.steering import Mailbox, Request
from fairtrial.serve import steering
from fairtrial.serve.guard import COOKIE, Guard
from fairtrial.serve.site import application
from fairtrial.serve.steering import Control, Planned

HOST = "127.0.0.1:1234"
OWN = f"http://{HOST}"
WITH_PART = """
study: good
question: <b>?
include: [base/part.yaml]
system: {command: {}}
factors: {arm: {a: {}, b: {system: {command: {run: sleep 1}}}}}
arm: arm
trials: {blocks: 2, seed: 1}
metrics: {primary: elapsed_s}
"""
SLOW = """
study: slow
workload: {command: {run: sleep 20}}
factors: {arm: {a: {}, b: {workload: {command: {run: sleep 21}}}}}
arm: arm
trials: {blocks: 2, seed: 1}
metrics: {primary: elapsed_s}
"""
FORM = {"content-type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class Answer:
    status: int
    location: str
    text: str


def asked(app: ASGIApp, what: str, form: dict[str, str] | None = None, *, origin: str = "") -> Answer:
    """What the page answers to a browser that was let in."""
    guard = Guard(app, "secret", 1234)
    method, path = what.split(" ", 1)
    address, _, query = path.partition("?")
    headers = {"host": HOST, "cookie": f"{COOKIE}=secret", **({"origin": origin} if origin else {}), **FORM}
    scope: Scope = {
        "type": "http",
        "method": method,
        "path": address,
        "raw_path": address.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "http_version": "1.1",
        "scheme": "http",
        "server": ("127.0.0.1", 1234),
        "root_path": "",
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": urlencode(form or {}).encode(), "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(guard(scope, receive, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    text = b"".join(message.get("body", b"") for message in sent[1:]).decode()
    return Answer(sent[0]["status"], found.get("location", ""), text)


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    """A run that goes on."""
    monkeypatch.setattr(live, "MEMORY", tmp_path)
    found = record.create(tmp_path / "runs" / "one", plan=tiny_plan(), sources={"study.yaml": "study: tiny\n"})
    with LiveProgress(found.directory, Told()).shown():
        yield found
    found.close()


def page(writer: Writer, control: Control | None) -> ASGIApp:
    return application(writer.directory.parent, epoch="e", control=control)


def test_a_request_goes_to_the_run_and_the_browser_back_to_its_page(writer: Writer) -> None:
    app = page(writer, Control())
    mailbox = Mailbox(writer.directory)
    answer = asked(app, "POST /runs/one/steer", {"act": "pause", "blocks": "7"}, origin=OWN)
    assert (answer.status, answer.location) == (303, "/runs/one")
    asked(app, "POST /runs/one/steer", {"act": "extend", "blocks": "3"}, origin=OWN)
    assert mailbox.requests() == [Request(act="pause"), Request(act="extend", blocks=3)]


@pytest.mark.parametrize("origin", ["", "null", "http://elsewhere.example", "http://127.0.0.1:99"])
def test_a_request_that_does_not_come_from_our_own_page_is_refused(writer: Writer, origin: str) -> None:
    answer = asked(page(writer, Control()), "POST /runs/one/steer", {"act": "pause"}, origin=origin)
    assert answer.status == 403
    assert Mailbox(writer.directory).requests() == []


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("one", {"act": "rm"}),
        ("one", {}),
        ("one", {"act": "extend", "blocks": "-1"}),
        ("one", {"act": "extend", "blocks": "many"}),
        ("one", {"act": "pause", "padding": "x" * 5000}),
        ("two", {"act": "pause"}),
        ("..", {"act": "pause"}),
    ],
)
def test_nonsense_reaches_no_run(writer: Writer, name: str, form: dict[str, str]) -> None:
    assert asked(page(writer, Control()), f"POST /runs/{name}/steer", form, origin=OWN).status == 404
    assert Mailbox(writer.directory).requests() == []


def test_without_control_there_is_nothing_to_press_and_no_address_to_ask(writer: Writer) -> None:
    app = page(writer, None)
    assert asked(app, "POST /runs/one/steer", {"act": "pause"}, origin=OWN).status in {404, 405}
    assert asked(app, "GET /start").status == 404
    assert "<form" not in asked(app, "GET /runs/one").text
    assert 'value="stop_now"' in asked(page(writer, Control()), "GET /runs/one").text


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    folder = tmp_path / "studies"
    folder.mkdir()
    (folder / "good.yaml").write_text("study: good\n", encoding="utf-8")
    (folder / "note.txt").write_text("study: text\n", encoding="utf-8")
    (tmp_path / "out.yaml").write_text("study: out\n", encoding="utf-8")
    (folder / "link.yaml").symlink_to(tmp_path / "out.yaml")
    (folder / "folder.yaml").mkdir()
    return folder


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a command takes long to import what it needs before it says anything."""
    monkeypatch.setattr(steering, "STARTED_S", PATIENCE_S)


@pytest.mark.parametrize(
    "name", ["link.yaml", "folder.yaml", "note.txt", "../out.yaml", "./good.yaml", "good", "", "a\0"]
)
def test_only_a_regular_file_right_in_the_folder_is_started(writer: Writer, studies: Path, name: str) -> None:
    control = Control(studies=studies)
    assert control.names() == ["good.yaml"]
    form = {"study": name, "sha256": control.planned(studies / name.strip("\0")).digest}
    assert asked(page(writer, control), "POST /start", form, origin=OWN).status == 404
    assert [path.name for path in writer.directory.parent.iterdir()] == ["one"]


def test_the_plan_is_shown_first_and_a_study_that_changed_since_is_not_started(writer: Writer, studies: Path) -> None:
    included = studies / "base" / "part.yaml"
    included.parent.mkdir()
    included.write_text("workload: {command: {run: 'true'}}\n", encoding="utf-8")
    (studies / "good.yaml").write_text(WITH_PART, encoding="utf-8")
    app = page(writer, Control(studies=studies, planned=_plan))
    shown = asked(app, "GET /start?study=good.yaml").text
    assert "good: &lt;b&gt;" in shown
    digest = _plan(studies / "good.yaml").digest
    assert digest in shown
    included.write_text("workload: {command: {run: 'false'}}\n", encoding="utf-8")
    refused = asked(app, "POST /start", {"study": "good.yaml", "sha256": digest}, origin=OWN)
    assert "has changed since its plan was shown" in refused.text


@pytest.mark.usefixtures("patient")
def test_a_run_that_read_a_different_study_is_stopped(writer: Writer, studies: Path) -> None:
    (studies / "good.yaml").write_text(SLOW, encoding="utf-8")
    control = Control(studies=studies, planned=lambda path: Planned("", path.name))
    form = {"study": "good.yaml", "sha256": control.study("good.yaml")[1].digest}
    refused = asked(page(writer, control), "POST /start", form, origin=OWN)
    assert "has changed since its plan was shown" in refused.text
    (child,) = control.children
    assert child.wait(PATIENCE_S) != 0


@pytest.mark.usefixtures("patient")
def test_a_study_that_cannot_run_says_why(writer: Writer, studies: Path) -> None:
    control = Control(studies=studies)
    form = {"study": "good.yaml", "sha256": control.study("good.yaml")[1].digest}
    refused = asked(page(writer, control), "POST /start", form, origin=OWN)
    assert "the run did not start" in refused.text
    assert "good.yaml" in refused.text
