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
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

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

from trace_store.context import get_tokenizer
from trace_store.errors import InvalidInputError, NotFoundError, StorageError, TraceError
from trace_store.repo.repository import Repo
from trace_store.web import actions, pages, run_page, session_page, shell
from trace_store.web.access import Access, Guarded
from trace_store.web.live import Hub, Watch
from trace_store.web.shell import Page

T = TypeVar("T")
MAXIMUM_BODY = 4 * 1024 * 1024
MAXIMUM_QUERY = 2_000
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


Parse: TypeAlias = Callable[[str, str], Any]
"""Returns the value of a part of a query from its name and text."""


def text(name: str, given: str) -> str:
    """Return a text.

    Raises:
        InvalidInputError: it is too long.
    """
    if len(given) > MAXIMUM_QUERY:
        raise InvalidInputError(f"{name} is too long")
    return given


def number(name: str, given: str) -> int | None:
    """Return a number; None if it is not given."""
    if not given:
        return None
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise InvalidInputError(f"{name} is not a number")
    return int(given)


def flag(name: str, given: str) -> bool:
    """Return True unless it is 0 or not given."""
    return text(name, given) not in ("", "0")


def commit(name: str, given: str) -> str:
    """Return the id of a commit, or ""."""
    if given and not _COMMIT.fullmatch(given):
        raise InvalidInputError(f"{name} is not the id of a commit")
    return given


def address(name: str, given: str) -> str:
    """Return the address of a message, or ""."""
    if given and not _ADDRESS.fullmatch(given):
        raise InvalidInputError(f"{name} is not the address of a message")
    return given


PAGES: dict[str, tuple[Callable[..., Page], dict[str, Parse]]] = {
    shell.SESSIONS: (
        pages.sessions_page,
        dict.fromkeys(("q", *pages.FILTERS, "since", "until"), text),
    ),
    shell.SESSION: (
        session_page.session_page,
        {"name": text, "at": address, "start": number, "hidden": flag, "q": text},
    ),
    shell.RUNS: (run_page.runs_page, {"state": text, "agent": text}),
    shell.RUN: (run_page.run_page, {"id": text, "start": number}),
    shell.CONTEXT: (
        pages.context_page,
        {"name": text, "commit": commit, "start": number, "until": address},
    ),
    shell.COMPARE: (pages.compare_page, {"left": text, "right": text}),
    shell.CHECKPOINTS: (pages.checkpoints_page, {}),
    shell.TRASH: (pages.trash_page, {"name": text}),
    shell.TRAJECTORIES: (pages.trajectories_page, {"q": text, "why": text}),
    shell.TRAJECTORY: (pages.trajectory_page, {"id": text}),
    shell.SEARCH: (
        pages.search_page,
        dict.fromkeys(("q", "session", "role", "tool", "since"), text),
    ),
}
PARTS: dict[str, tuple[Callable[..., dict[str, Any]], dict[str, Parse]]] = {
    "/messages": (
        session_page.messages,
        {"name": text, "start": number, "at": address, "count": number, "hidden": flag},
    ),
    "/message": (session_page.message, {"name": text, "at": address}),
    "/news": (session_page.news, {"name": text, "tip": commit, "start": number, "hidden": flag}),
    "/marks": (session_page.marks, {"name": text}),
    "/summary": (session_page.summary, {"name": text}),
    "/outline": (session_page.outline, {"name": text, "hidden": flag}),
}
"""Pages, and parts of pages for the script, each with what it takes from the query."""


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
            *(Route(path, self._page) for path in PAGES),
            *(Route(path, self._part) for path in PARTS),
            Route("/export", self._export),
            Route("/events", self._events),
            Route("/static/{name}", self._static),
            Route("/do/{action}", self._act, methods=["POST"]),
        ]
        handlers: dict[Any, Any] = {
            TraceError: self._failed,
            404: self._missing,
            500: self._broken,
        }
        app = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)
        return Guarded(app, self._access)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        watch = Watch(self._repo.store, self.hub, asyncio.get_running_loop())
        # Loading a tokenizer takes longer than showing a message, so it does not wait for the first one.
        count = get_tokenizer().count
        threading.Thread(target=count, args=("ready",), name="trace-web-warm", daemon=True).start()
        try:
            yield
        finally:
            watch.close()

    # Pages

    async def _asked(self, request: Request, table: Mapping[str, Any]) -> Any:
        """Return what the function for a path returns, given the query."""
        make, kinds = table[request.url.path]
        query = request.query_params
        given = {name: parse(name, query.get(name, "")) for name, parse in kinds.items()}
        return await self._library.call(lambda: make(self._repo, **given))

    async def _page(self, request: Request) -> Response:
        return self._answer(await self._asked(request, PAGES))

    async def _part(self, request: Request) -> Response:
        return JSONResponse(await self._asked(request, PARTS))

    def _answer(self, page: Page) -> Response:
        where = self._repo.store.layout.root or "in memory"
        token = self._access.action_token
        return HTMLResponse(shell.document(page, action_token=token, repository=where), page.status)

    async def _export(self, request: Request) -> Response:
        name = text("name", request.query_params.get("name", ""))
        exported = await self._library.call(
            lambda: self._repo.sessions.export(name, "html", hidden=True)
        )
        said = re.sub(r"[^A-Za-z0-9._-]", "-", exported.file_name)
        headers = {"content-disposition": f'attachment; filename="{said}"'}
        data = exported.to_bytes()
        return Response(data, media_type="text/html; charset=utf-8", headers=headers)

    async def _events(self, request: Request) -> Response:
        last = request.headers.get("last-event-id", "")
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
        return JSONResponse(
            await self._library.call(lambda: actions.act(self._repo, action, asked))
        )

    # Errors

    async def _failed(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, TraceError)
        kinds = ((NotFoundError, 404), (InvalidInputError, 400), (StorageError, 500))
        status = next((code for kind, code in kinds if isinstance(error, kind)), 409)
        if request.url.path in PARTS or request.method == "POST":
            return JSONResponse({"error": error.message}, status)
        return self._answer(pages.error_page(status, f"{error.message}."))

    async def _missing(self, _: Request, __: Exception) -> Response:
        return self._answer(pages.error_page(404, "There is no such page."))

    async def _broken(self, _: Request, error: Exception) -> Response:
        said = f"This is a fault of Trace ({type(error).__name__})."
        return self._answer(pages.error_page(500, said))
