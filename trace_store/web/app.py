"""The application: which page answers which address.

All calls of the library run in one thread, so that no two of them use a handle at the same time, and the event loop
never waits for one. A page never changes anything; actions are POST requests.
"""

from __future__ import annotations

import asyncio
import json
import queue
import re
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp

from trace_store.errors import InvalidInputError, NotFoundError, StorageError, TraceError
from trace_store.repo.repository import Repo
from trace_store.web import actions, pages, session_page, shell
from trace_store.web.access import Access, Guarded
from trace_store.web.live import Hub, Watch
from trace_store.web.shell import Page

T = TypeVar("T")
MAXIMUM_BODY = 4 * 1024 * 1024
FOREVER = "private, max-age=31536000, immutable"
_COMMIT = re.compile(r"[0-9a-f]{4,64}")
_ADDRESS = re.compile(r"[0-9a-f]{4,64}\.[0-9]{1,9}")
_TYPES = {"app.js": "text/javascript", "app.css": "text/css"}


class LibraryThread:
    """A thread that runs calls one after another; it ends with the process."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="trace-web-library", daemon=True).start()

    async def call(self, function: Callable[[], T]) -> T:
        """Return what a function returns, or raise its error."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def finish(result: T | None, error: BaseException | None) -> None:
            if future.cancelled():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]

        def run() -> None:
            result, error = None, None
            try:
                if not future.cancelled():
                    result = function()
            except Exception as raised:  # noqa: BLE001 - it is raised where it is awaited
                error = raised
            if not loop.is_closed():
                loop.call_soon_threadsafe(finish, result, error)

        self._calls.put(run)
        return await future

    def _run(self) -> None:
        while True:
            self._calls.get()()


class Web:
    """The pages of one repository.

    Attributes:
        hub: tells open pages what changed.
    """

    def __init__(self, repo: Repo, access: Access) -> None:
        self._repo = repo
        self._access = access
        self._library = LibraryThread()
        self.hub = Hub()

    def application(self) -> ASGIApp:
        """Return it as an ASGI application, behind its access checks."""
        routes = [
            Route(shell.SESSIONS, self._sessions),
            Route(shell.SESSION, self._session),
            Route("/messages", self._messages),
            Route("/message", self._message),
            Route("/news", self._news),
            Route("/outline", self._outline),
            Route("/export", self._export),
            Route(shell.CONTEXT, self._context),
            Route(shell.COMPARE, self._compare),
            Route(shell.CHECKPOINTS, self._checkpoints),
            Route(shell.TRASH, self._trash),
            Route(shell.TRAJECTORIES, self._trajectories),
            Route(shell.TRAJECTORY, self._trajectory),
            Route(shell.SEARCH, self._search),
            Route("/events", self._events),
            Route("/static/{name}", self._static),
            Route("/do/{action}", self._act, methods=["POST"]),
        ]
        handlers: dict[Any, Any] = {TraceError: self._failed, 404: self._missing, 500: self._broken}
        app = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)
        return Guarded(app, self._access)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        watch = Watch(self._repo.store, self.hub, asyncio.get_running_loop())
        try:
            yield
        finally:
            watch.close()

    # Pages

    async def _page(self, make: Callable[[], Page]) -> Response:
        page = await self._library.call(make)
        return HTMLResponse(self._document(page), page.status)

    def _document(self, page: Page) -> str:
        layout = self._repo.store.layout
        return shell.document(
            page, action_token=self._access.action_token, repository=layout.root or "in memory"
        )

    async def _sessions(self, request: Request) -> Response:
        names = ("q", "agent", "folder", "state", "since", "until")
        given = {name: _text(request, name) for name in names}
        return await self._page(lambda: pages.sessions_page(self._repo, **given))

    async def _session(self, request: Request) -> Response:
        name, at, query = (_text(request, each) for each in ("name", "at", "q"))
        start, hidden = _number(request, "start"), _flag(request, "hidden")
        _check_address(at)
        return await self._page(
            lambda: session_page.session_page(
                self._repo, name or "HEAD", at=at, start=start, hidden=hidden, query=query
            )
        )

    async def _context(self, request: Request) -> Response:
        name, commit = _text(request, "name"), _text(request, "commit")
        start = _number(request, "start") or 0
        _check_commit(commit)
        return await self._page(lambda: pages.context_page(self._repo, name, commit, start=start))

    async def _compare(self, request: Request) -> Response:
        left, right = _text(request, "left"), _text(request, "right")
        return await self._page(lambda: pages.compare_page(self._repo, left, right))

    async def _checkpoints(self, _: Request) -> Response:
        return await self._page(lambda: pages.checkpoints_page(self._repo))

    async def _trash(self, request: Request) -> Response:
        name, can_restore = _text(request, "name"), bool(self._access.action_token)
        return await self._page(lambda: pages.trash_page(self._repo, name, can_restore=can_restore))

    async def _trajectories(self, request: Request) -> Response:
        q, why = _text(request, "q"), _text(request, "why")
        return await self._page(lambda: pages.trajectories_page(self._repo, q=q, why=why))

    async def _trajectory(self, request: Request) -> Response:
        id_ = _text(request, "id")
        return await self._page(lambda: pages.trajectory_page(self._repo, id_))

    async def _search(self, request: Request) -> Response:
        names = ("q", "session", "role", "tool", "since")
        given = {name: _text(request, name) for name in names}
        return await self._page(lambda: pages.search_page(self._repo, **given))

    # Parts of pages, for the script

    async def _messages(self, request: Request) -> Response:
        name, hidden = _text(request, "name"), _flag(request, "hidden")
        start, count = _number(request, "start") or 0, _number(request, "count") or 1
        return await self._json(
            lambda: session_page.window(self._repo, name, start=start, count=count, hidden=hidden)
        )

    async def _message(self, request: Request) -> Response:
        name, at = _text(request, "name"), _text(request, "at")
        _check_address(at)
        return await self._json(lambda: session_page.message(self._repo, name, at))

    async def _news(self, request: Request) -> Response:
        name, tip = _text(request, "name"), _text(request, "tip")
        start, hidden = _number(request, "start") or 0, _flag(request, "hidden")
        _check_commit(tip)
        return await self._json(
            lambda: session_page.news(self._repo, name, tip=tip, start=start, hidden=hidden)
        )

    async def _outline(self, request: Request) -> Response:
        name, hidden = _text(request, "name"), _flag(request, "hidden")
        return await self._json(
            lambda: {"html": session_page.outline(self._repo, name, hidden=hidden)}
        )

    async def _json(self, make: Callable[[], dict[str, Any]]) -> Response:
        return JSONResponse(await self._library.call(make))

    async def _export(self, request: Request) -> Response:
        name = _text(request, "name")
        exported = await self._library.call(
            lambda: self._repo.sessions.export(name, "html", hidden=True)
        )
        data = exported.to_bytes()
        said = re.sub(r"[^A-Za-z0-9._-]", "-", exported.file_name)
        headers = {"content-disposition": f'attachment; filename="{said}"'}
        return Response(data, media_type="text/html; charset=utf-8", headers=headers)

    async def _events(self, request: Request) -> Response:
        last = request.headers.get("last-event-id", "") or _text(request, "last")
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(
            self.hub.events(last), media_type="text/event-stream", headers=headers
        )

    async def _static(self, request: Request) -> Response:
        wanted = request.path_params["name"]
        name = next((each for each in _TYPES if shell.asset_name(each) == wanted), None)
        if name is None:
            return PlainTextResponse("There is no such file.\n", 404)
        headers = {"cache-control": FOREVER}
        return Response(shell.asset(name), media_type=_TYPES[name], headers=headers)

    # Actions

    async def _act(self, request: Request) -> Response:
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MAXIMUM_BODY:
                return JSONResponse({"error": "the text is too long"}, 413)
        try:
            given = json.loads(body)
        except ValueError:
            given = None
        if not isinstance(given, dict):
            return JSONResponse({"error": "an action is a JSON object"}, 400)
        action = request.path_params["action"]
        asked = actions.Asked.of(given)
        return await self._json(lambda: actions.act(self._repo, action, asked))

    # Errors

    async def _failed(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, TraceError)
        status = 500
        if isinstance(error, NotFoundError):
            status = 404
        elif isinstance(error, InvalidInputError):
            status = 400
        elif not isinstance(error, StorageError):
            status = 409
        if request.url.path in _JSON_PATHS or request.method == "POST":
            return JSONResponse({"error": error.message}, status)
        return HTMLResponse(self._document(pages.error_page(status, f"{error.message}.")), status)

    async def _missing(self, _: Request, __: Exception) -> Response:
        return HTMLResponse(self._document(pages.error_page(404, "There is no such page.")), 404)

    async def _broken(self, _: Request, error: Exception) -> Response:
        said = f"This is a fault of Trace ({type(error).__name__})."
        return HTMLResponse(self._document(pages.error_page(500, said)), 500)


_JSON_PATHS = ("/messages", "/message", "/news", "/outline")


def _text(request: Request, name: str) -> str:
    """Return a text of the query, or "".

    Raises:
        InvalidInputError: it is too long.
    """
    text = request.query_params.get(name, "")
    if len(text) > 2_000:
        raise InvalidInputError(f"{name} is too long")
    return text


def _flag(request: Request, name: str) -> bool:
    return _text(request, name) not in ("", "0")


def _number(request: Request, name: str) -> int | None:
    text = _text(request, name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidInputError(f"{name} is not a number")
    return int(text)


def _check_commit(text: str) -> None:
    if text and not _COMMIT.fullmatch(text):
        raise InvalidInputError("not the id of a commit")


def _check_address(text: str) -> None:
    if text and not _ADDRESS.fullmatch(text):
        raise InvalidInputError("not the address of a message")
