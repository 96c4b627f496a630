"""A page of a repository in memory or on disk, asked without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx

from trace_store.repo.repository import Repo
from trace_store.web.access import HEADER, Access
from trace_store.web.app import Web

PORT = 8123
HOST = f"127.0.0.1:{PORT}"
KEY = bytes(range(32))


class Client:
    """A browser that was let in, unless it has no cookie."""

    def __init__(
        self, repo: Repo, *, host: str = "127.0.0.1", token: str = "", read_only: bool = False
    ) -> None:
        self.access = Access(host, PORT, KEY, "0123", token=token, read_only=read_only)
        self.web = Web(repo, self.access)
        self.app = self.web.application()
        self.cookies = {self.access.name: self.access.cookie}

    def ask(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        cookies: Mapping[str, str] | None = None,
        json: object = None,
    ) -> httpx.Response:
        async def run() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            known = dict(self.cookies if cookies is None else cookies)
            async with httpx.AsyncClient(
                transport=transport, base_url=f"http://{HOST}", cookies=known
            ) as client:
                return await client.request(
                    method, path, params=query or None, headers=headers, json=json
                )

        return asyncio.run(run())

    def page(self, path: str, status: int = 200, **query: str) -> str:
        answer = self.ask(path, query)
        assert answer.status_code == status, answer.text[:2000]
        return answer.text

    def part(self, path: str, status: int = 200, **query: str) -> Any:
        answer = self.ask(path, query)
        assert answer.status_code == status, answer.text[:2000]
        return answer.json()

    def act(self, action: str, status: int = 200, **given: str) -> Any:
        answer = self.ask(
            f"/do/{action}",
            method="POST",
            headers={HEADER: self.access.action_token},
            json=given,
        )
        assert answer.status_code == status, answer.text[:2000]
        return answer.json()
