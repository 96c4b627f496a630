"""`trace mcp` as a program: over standard input and output, and over HTTP on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import StdioServerParameters, stdio_client
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.command_line import Trace
from trace_store import Environment, Repo
from trace_store.mcp import McpHttpServer
from trace_store.mcp.read_only import open_for_reading

ROOT = Path(__file__).parents[2]
OLD_PROTOCOL = "2024-11-05"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Repo.init(tmp_path / "project", environment=Environment(author="ada")) as repo:
        repo.append("user", "Use spaces.")
    return tmp_path / "project"


def variables(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "cli")])
    return {**os.environ, "PYTHONPATH": path, "HOME": str(folder.parent)}


def test_a_client_starts_it_and_talks_over_standard_input(folder: Path) -> None:
    words = ["-m", "trace_cli", "-C", str(folder), "mcp", "--allow-write"]
    program = StdioServerParameters(command=sys.executable, args=words, env=variables(folder))

    async def work() -> str:
        async with Client(stdio_client(program)) as client:
            names = [each.name for each in (await client.list_tools()).tools]
            assert "trace_decision" in names
            refused = await client.call_tool("trace_show", {"address": "HEAD.99"})
            said = str(refused.content)
            assert "none numbered 99" in said
            assert "`trace compile --table` lists messages" in said
            found = await client.call_tool("trace_show", {"address": "HEAD.0"})
            return str((found.structured_content or {})["text"])

    assert asyncio.run(work()) == "Use spaces."


def test_a_client_of_an_old_protocol_is_served_and_nothing_else_is_printed(folder: Path) -> None:
    hello = {
        "protocolVersion": OLD_PROTOCOL,
        "capabilities": {},
        "clientInfo": {"name": "old", "version": "1"},
    }
    call = {"name": "trace_log", "arguments": {"limit": 1}}
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "trace_cli", "-C", str(folder), "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=variables(folder),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"this is no JSON\n")
        answers = []
        for message in messages:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            while "id" in message:
                answers.append(json.loads(process.stdout.readline()))
                if answers[-1].get("id") == message["id"]:
                    break
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(timeout=30) == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
    hello_back, found = answers[-2:]
    assert hello_back["result"]["protocolVersion"] == OLD_PROTOCOL
    assert "Use spaces." in json.dumps(found["result"])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpHttpServer]:
    folder = tmp_path_factory.mktemp("served")
    with Repo.init(folder, environment=Environment(author="ada")) as repo:
        repo.append("user", "Use spaces.")
        server, started = McpHttpServer(repo), threading.Event()
        thread = threading.Thread(target=server.run, args=(started.set,))
        thread.start()
        assert started.wait(30)
        yield server
        server.stop()
        thread.join(30)
        assert not thread.is_alive()


def test_a_client_with_the_token_is_served_over_http(served: McpHttpServer) -> None:
    async def work() -> str:
        headers = {"authorization": f"Bearer {served.token}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(served.address, http_client=http)) as client,
        ):
            found = await client.call_tool("trace_show", {"address": "HEAD.0"})
            return str((found.structured_content or {})["text"])

    assert asyncio.run(work()) == "Use spaces."


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer 0123"}, 401),
        ({"authorization": "Basic {token}"}, 401),
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:{port}"}, 421),
        ({"host": "127.0.0.1.evil.example:{port}"}, 421),
        ({"host": "0.0.0.0:{port}"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"content-type": "text/plain"}, 400),
    ],
)
def test_other_callers_over_http_are_refused(
    served: McpHttpServer, headers: dict[str, str], code: int
) -> None:
    port = served.address.rpartition(":")[2].partition("/")[0]
    usual = {
        "authorization": "Bearer {token}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
    }
    sent = {
        name: text.format(port=port, token=served.token)
        for name, text in {**usual, **headers}.items()
    }
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert httpx.post(served.address, json=ping, headers=sent).status_code == code


def test_a_port_in_use_and_a_missing_package_are_plain_errors(
    trace: Trace, served: McpHttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace("init")
    port = served.address.rpartition(":")[2].partition("/")[0]
    taken = trace("mcp", "--http", "--port", port)
    assert (taken.code, taken.out) == (6, b"")
    assert f"port {port} is in use" in taken.err
    assert trace("mcp", "--port", port).code == 2
    import trace_store.mcp

    monkeypatch.setattr("trace_store.mcp.find_spec", lambda name: None)
    monkeypatch.delitem(vars(trace_store.mcp), "serve_stdio", raising=False)
    missing = trace("mcp")
    assert missing.code == 6
    assert "pip install 'trace-store[mcp]'" in missing.err


def test_it_is_served_over_http_though_nothing_may_be_recorded(tmp_path: Path) -> None:
    """The token is a file of the user, which the first server creates."""
    environment = Environment(author="ada", data_dir=str(tmp_path / "data"))
    Repo.init(tmp_path / "project", environment=environment).close()
    with open_for_reading(str(tmp_path / "project" / ".trace"), environment) as repo:
        servers = [McpHttpServer(repo) for _ in range(2)]
        assert servers[0].token == servers[1].token
        for each in servers:
            each.close()
