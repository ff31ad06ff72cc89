"""Who may talk to the page: a browser that was handed the token, under a name of this machine, from our own page.

A page on loopback is reachable from every site that the reader has open (DNS rebinding, forged requests) and by every
user of the machine; so each request must name an allowed host, come from no other origin, and carry the secret. A
browser sends cookies to every port of a host, so ours is for a path alone that other programs cannot guess.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE: Final = "fairtrial"
TOKEN: Final = "token"  # noqa: S105 - the name of the parameter
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",  # without a referrer, our own forms would not say their origin
    "x-content-type-options": "nosniff",
}
BYTES: Final = 24
ROOT_BYTES: Final = 9  # an address has at most 200 characters, and others must not guess this one
FORBIDDEN: Final = 403
MISDIRECTED: Final = 421  # RFC 9110: the server is not configured for this host
FOUND: Final = 303


def new_secret() -> str:
    """A secret of one process: whoever had the last one has none for this."""
    return secrets.token_urlsafe(BYTES)


def new_root() -> str:
    """The path of one process, below which all of its addresses are."""
    return f"/{secrets.token_urlsafe(ROOT_BYTES)}"


@dataclass
class Guard:
    """Middleware around the whole page.

    Attributes:
        app: what is guarded.
        secret: what a browser must show once, as `?token=`, and from then on as a cookie.
        port: that the page listens on.
        names: host names allowed beside those of loopback.
        root: path of the page, which others cannot guess.
    """

    app: ASGIApp
    secret: str
    port: int
    names: Iterable[str] = ()
    root: str = ""
    allowed: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        hosts = (*LOOPBACK, *(name.lower() for name in self.names))
        self.allowed = frozenset(f"{host}:{self.port}" for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers why not."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope["root_path"] = self.root
        answer = self._refusal(scope)
        await (self.app if answer is None else answer)(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if host not in self.allowed:
            known = ", ".join(sorted(self.allowed))
            said = f"This page does not answer to {host[:100]!r}: it is called {known}. --host-name NAME adds a name."
            return PlainTextResponse(f"{said}\n", status_code=MISDIRECTED)
        if self._is_foreign(headers, host=host, link=scope["method"] in {"GET", "HEAD"}):
            return PlainTextResponse("Requests of other sites' pages are not answered.\n", status_code=FORBIDDEN)
        if not scope["path"].startswith(f"{self.root}/"):
            return _unknown()
        return self._clean(scope) if self._knows(headers) else self._login(scope)

    @staticmethod
    def _is_foreign(headers: Headers, *, host: str, link: bool) -> bool:
        """Whether another site's page asks. Its readers may follow a link here; it gets to read nothing.

        A request that may change something says where it comes from, or comes from elsewhere.
        """
        origin = headers.get("origin")
        if origin != f"http://{host}" and (origin is not None or not link):
            return True
        followed = link and headers.get("sec-fetch-mode") == "navigate"
        return headers.get("sec-fetch-site") in ("cross-site", "same-site") and not followed

    def _knows(self, headers: Headers) -> bool:
        kept = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")  # other programs' may be odd
        return hmac.compare_digest(kept.encode(), self.secret.encode())

    def _login(self, scope: Scope) -> Response:
        """A right token becomes a cookie and leaves the address, where it would be read over a shoulder."""
        given = dict(parse_qsl(scope["query_string"].decode("latin-1"))).get(TOKEN, "")
        if not hmac.compare_digest(given.encode(), self.secret.encode()):
            return _unknown()
        answer = self._clean(scope) or RedirectResponse(f"{self.root}/", status_code=FOUND)
        answer.set_cookie(COOKIE, self.secret, httponly=True, samesite="lax", path=f"{self.root}/")
        return answer

    @staticmethod
    def _clean(scope: Scope) -> Response | None:
        """The same address without the token; None if it has none."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        rest = [(name, value) for name, value in query if name != TOKEN]
        if len(rest) == len(query):
            return None
        path = "/" + scope["path"].lstrip("/\\")  # two slashes would name another host
        return RedirectResponse(f"{path}?{urlencode(rest)}" if rest else path, status_code=FOUND)


def _unknown() -> Response:
    said = "This browser has not been let in: open the address that `fairtrial` printed, with its token."
    return PlainTextResponse(f"{said}\n", status_code=FORBIDDEN)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return sending
