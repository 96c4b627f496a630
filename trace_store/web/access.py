"""Who may use the page: a one-time token, a cookie, and checks of `Host` and `Origin` on every request.

Other web pages can send requests to this machine, and other users of it can connect. So every answer needs a cookie,
which a browser gets for a token that only the terminal showed. A page of another origin has no cookie, cannot read an
answer, and cannot send the header that an action needs. The user's key makes the cookie, so that a link still works
after a restart.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Mapping
from urllib.parse import parse_qs, quote, urlsplit

from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trace_store.base.environment import Environment
from trace_store.base.oid import derived_key
from trace_store.disk.files import read_file, replace_file
from trace_store.errors import StateError
from trace_store.exporters.html.markup import Markup, element
from trace_store.store.store import Store

COOKIES = "trace-store 2026 cookie of the web page"
ACTIONS = "trace-store 2026 actions of the web page"
"""The purposes of derived keys."""
PORT = "web-port"
HEADER = "x-trace-token"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
POLICY = "; ".join(
    (
        *("default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:"),
        *("connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"),
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
LOGIN = "/login"
NOT_LOGGED_IN = (
    "This page needs the link that `trace web` printed; each link opens it once.\n"
    "Restart `trace web` for a new one.\n"
)


def saved_port(store: Store, environment: Environment) -> int:
    """Return the last port of a repository's page; 0 if there is none."""
    path = _user_file(store, environment, PORT)
    data = read_file(store.disk, path, limit=16) if path else None
    text = (data or b"").decode("ascii", "replace").strip()
    return int(text) if text.isdecimal() and 0 < int(text) < 65536 else 0


def save_port(store: Store, environment: Environment, port: int) -> None:
    """Keep the port for the next time, in a file that only the user can read."""
    path = _user_file(store, environment, PORT)
    if path:
        replace_file(store.disk, path, str(port).encode(), durable=False, private=True)


def save_opener(store: Store, environment: Environment, port: int, link: str) -> str:
    """Return the path of a new file that leads a browser to a link; "" without a data folder.

    Other users can see a browser's arguments, but they cannot read the file.
    """
    path = _user_file(store, environment, f"web-open-{port}.html")
    if path:
        page = _leads_to(link).encode()
        replace_file(store.disk, path, page, durable=False, private=True)
    return path


def _user_file(store: Store, environment: Environment, name: str) -> str:
    try:
        return environment.store_file(store.config.store_id, name)
    except StateError:
        return ""


def _leads_to(target: str) -> str:
    """Return a page that opens another one at once."""
    refresh = element("meta", http_equiv="refresh", content=f"0;url={target}")
    head = element("head", refresh, element("title", Markup("Trace")))
    return f"<!doctype html>\n{head}\n{element('a', 'Open Trace', href=target)}\n"


def is_loopback(host: str) -> bool:
    """Return True if only this machine can connect to a host."""
    return host in LOOPBACK


class Access:
    """Decides about requests; see the module.

    Attributes:
        host, port: where the server listens.
        name: the name of the cookie.
        cookie: its value.
        action_token: what an action must send in the header; "" if there are no actions.
    """

    def __init__(
        self, host: str, port: int, key: bytes, store_id: str, *, token: str = "", read_only: bool
    ) -> None:
        """Create it; `token` may be used any number of times, and without one, `link` makes tokens for one use."""
        self.host, self.port = host, port
        self.name = f"trace-{store_id[:12] or 'memory'}"
        self.cookie = derived_key(key, COOKIES).hex()
        self.action_token = "" if read_only else derived_key(key, ACTIONS).hex()
        self._token = token
        self._unused: set[str] = set()

    def link(self) -> str:
        """Return a link that logs one browser in."""
        token = self._token
        if not token:
            token = secrets.token_urlsafe(24)
            self._unused.add(token)
        return f"{self.address}{LOGIN}?token={quote(token, safe='')}"

    @property
    def address(self) -> str:
        """The address of the page."""
        host = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(
            self.host, self.host
        )
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def accepts(self, token: str) -> bool:
        """Return True for a valid token; one that `link` made is then used up."""
        if self._token:
            return secrets.compare_digest(token.encode(), self._token.encode())
        found = next((each for each in self._unused if secrets.compare_digest(each, token)), None)
        self._unused.discard(found or "")
        return found is not None

    def is_own_host(self, host: str) -> bool:
        """Return True if a `Host` header names this server.

        A page of another site can make its name lead to this machine, but not send an address of it as `Host`.
        """
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port or 80
        except ValueError:
            return False
        if port != self.port or "@" in host:
            return False
        if is_loopback(self.host):
            return name in LOOPBACK
        return name in (self.host, socket.gethostname().lower()) or _is_address(name)

    def refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is refused; None if it is not."""
        headers = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in scope["headers"]
        }
        host = headers.get("host", "")
        if not self.is_own_host(host):
            return PlainTextResponse("This server is not the one of that name.\n", 421)
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return PlainTextResponse("Requests of other pages are refused.\n", 403)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and (
            headers.get("sec-fetch-mode") != "navigate"
        ):
            return PlainTextResponse("Requests of other pages are refused.\n", 403)
        if scope["path"] == LOGIN and scope["method"] == "GET":
            return self._log_in(scope, headers)
        if not self._has_cookie(headers.get("cookie", "")):
            return PlainTextResponse(NOT_LOGGED_IN, 401)
        if scope["method"] not in ("GET", "HEAD"):
            return self._refused_action(headers)
        return None

    def _log_in(self, scope: Scope, headers: Mapping[str, str]) -> Response:
        given = parse_qs(scope["query_string"].decode("latin-1"))
        known = self._has_cookie(headers.get("cookie", ""))
        if not (self.accepts(given.get("token", [""])[0]) or known):
            return PlainTextResponse(NOT_LOGGED_IN, 401)
        target = given.get("next", ["/"])[0]
        if not target.startswith("/") or target[1:2] in ("/", "\\"):
            target = "/"
        answer: Response = RedirectResponse(target, 303)
        if headers.get("sec-fetch-site") == "cross-site":  # such a redirect has no strict cookie
            answer = HTMLResponse(_leads_to(target))
        answer.set_cookie(
            *(self.name, self.cookie), max_age=366 * 86400, httponly=True, samesite="strict"
        )
        return answer

    def _refused_action(self, headers: Mapping[str, str]) -> Response | None:
        if not self.action_token:
            return PlainTextResponse("This page is read-only.\n", 403)
        if not secrets.compare_digest(headers.get(HEADER, "").encode(), self.action_token.encode()):
            return PlainTextResponse(f"An action needs the header {HEADER}.\n", 403)
        if headers.get("content-type", "").partition(";")[0] != "application/json":
            return PlainTextResponse("An action is sent as JSON.\n", 415)
        return None

    def _has_cookie(self, text: str) -> bool:
        pairs = (each.strip().partition("=") for each in text.split(";"))
        return any(
            name == self.name and secrets.compare_digest(value.encode(), self.cookie.encode())
            for name, _, value in pairs
        )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guarded:
    """An application behind an `Access`; it puts the security headers on every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.encode(): text.encode() for name, text in HEADERS.items()}
                if all(name.lower() != b"cache-control" for name, _ in message["headers"]):
                    own[b"cache-control"] = b"no-store"
                message["headers"] = [*message["headers"], *own.items()]
            await send(message)

        refusal = self._access.refusal(scope)
        await (refusal or self._app)(scope, receive, guarded)
