"""Who is let in, and where the secret goes."""

from __future__ import annotations

import asyncio

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from fairtrial.serve.guard import Guard, new_root

HOST = "127.0.0.1:1234"
ROOT = "/aKdL0fHhmFmp"  # tests have the same names in every process


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("inside")(scope, receive, send)


def answer(path: str, *, query: str = "", **headers: str) -> tuple[int, dict[str, str]]:
    sent: list[Message] = []
    scope: Scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in {"host": HOST, **headers}.items()],
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(Guard(inside, "secret", 1234, root=ROOT)(scope, receive, send))
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}


def test_the_secret_is_for_a_path_that_no_other_program_of_the_host_can_guess() -> None:
    status, headers = answer(f"{ROOT}/runs/one", query="token=secret&trial=3")
    assert (status, headers["location"]) == (303, f"{ROOT}/runs/one?trial=3")
    assert f"path={ROOT}/;" in f"{headers['set-cookie'].lower().replace(ROOT.lower(), ROOT)};".replace("; ", ";")
    assert new_root() != ROOT


@pytest.mark.parametrize("path", ["/", "/runs/one", f"{ROOT}x/", ROOT])
def test_outside_of_that_path_nothing_is_answered_and_no_cookie_given(path: str) -> None:
    for query, cookie in (("token=secret", ""), ("", "fairtrial=secret")):
        status, headers = answer(path, query=query, cookie=cookie)
        assert status == 403
        assert "set-cookie" not in headers


def test_an_odd_cookie_of_another_program_locks_nobody_out() -> None:
    assert answer(f"{ROOT}/", cookie='_x[1]={"a": 1}; a,b=c; @=; fairtrial=secret')[0] == 200
    assert answer(f"{ROOT}/", cookie="fairtrial=other")[0] == 403
