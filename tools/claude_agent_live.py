"""Run the Claude Agent SDK with its bundled program on a session store of Trace: `nox -s claude_agent`.

A model server on this machine answers, so no account is needed. The session runs one command; then the program's own
transcripts are deleted, and the session is resumed from the store alone. Prints what was checked, or fails.

    python -m tools.claude_agent_live
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from trace_store import Repo
from trace_store.integrations.claude_agent import TraceSessionStore

ANSWER = "The command printed hello."
CALL = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "Bash",
    "input": {"command": "echo hello", "description": "Print hello"},
}
USAGE = {"input_tokens": 10, "output_tokens": 5}


class ModelHandler(BaseHTTPRequestHandler):
    """Answers Anthropic's Messages API: a call of Bash, and once it has a result, a text."""

    protocol_version = "HTTP/1.1"
    requests: ClassVar[list[dict[str, Any]]] = []

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """Answer with an empty list."""
        self._send(b'{"data": [], "has_more": false}', "application/json")

    def do_POST(self) -> None:
        """Answer a request for a message, streamed or not."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.partition("?")[0].endswith("/count_tokens"):
            self._send(b'{"input_tokens": 10}', "application/json")
            return
        request = json.loads(body or b"{}")
        tools = {tool.get("name") for tool in request.get("tools") or ()}
        calls = "Bash" in tools and '"tool_result"' not in json.dumps(request["messages"])
        if tools:
            self.requests.append(request)
        block: dict[str, Any] = CALL if calls else {"type": "text", "text": ANSWER}
        message = {
            "id": f"msg_{threading.get_ident()}_{len(self.requests)}",
            "type": "message",
            "role": "assistant",
            "model": request.get("model"),
            "content": [block],
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": USAGE,
        }
        if request.get("stream"):
            events = "".join(_events(message, block))
            self._send(events.encode(), "text/event-stream")
        else:
            self._send(json.dumps(message).encode(), "application/json")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _events(message: Mapping[str, Any], block: Mapping[str, Any]) -> Iterable[str]:
    """Yield the events that stream a message of one block."""
    if block["type"] == "text":
        start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        text = json.dumps(block["input"])
        start = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": text}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    for event in (
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": USAGE},
        {"type": "message_stop"},
    ):
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


async def check(folder: Path, port: int) -> None:
    """Run a session, forget the program's own files, and resume it from the store."""
    sdk = import_module("claude_agent_sdk")
    home, work = folder / "home", folder / "work"
    work.mkdir()
    settings = {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
        "ANTHROPIC_API_KEY": "none",
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
    }
    os.environ["CLAUDE_CONFIG_DIR"] = settings["CLAUDE_CONFIG_DIR"]
    with Repo.init(folder / "repository") as repo:
        store = TraceSessionStore(repo)

        async def run(prompt: str, **given: Any) -> Any:
            options = sdk.ClaudeAgentOptions(
                cwd=str(work),
                env=settings,
                allowed_tools=["Bash"],
                session_store=store,
                setting_sources=[],
                **given,
            )
            result = None
            async for message in sdk.query(prompt=prompt, options=options):
                assert type(message).__name__ != "MirrorErrorMessage", message
                if isinstance(message, sdk.ResultMessage):
                    result = message
            assert result is not None
            assert result.result == ANSWER, result
            return result.session_id

        session = await run("Print hello.")
        shutil.rmtree(home)
        before = len(ModelHandler.requests)
        assert await run("What did it print?", resume=session) == session
        sent = json.dumps(ModelHandler.requests[before]["messages"])
        assert "Print hello." in sent
        assert "toolu_1" in sent
        report(repo, store)


def report(repo: Repo, store: TraceSessionStore) -> None:
    """Print what the repository shows of the only session, and check it."""
    (name,) = dict(repo.store.refs.iterate_tips("refs/records/claude-agent/"))
    context = repo.compile(name)
    texts = [message.text for message in context]
    roles = [message.role for message in context]
    assert texts.count(ANSWER) == 2, texts
    assert any("What did it print?" in text for text in texts), texts
    assert {"user", "assistant", "tool"} <= {*roles}, roles
    rendered = context.render("anthropic")
    sdk, program = version("claude-agent-sdk"), import_module("claude_agent_sdk._cli_version")
    print(f"claude-agent-sdk {sdk}, program {program.__cli_version__}: resumed from the store")
    print(f"{len(roles)} messages, {len(rendered.repairs)} repairs when rendered: {name}")


def main() -> int:
    """Start the model server, and run the check in a temporary folder."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), ModelHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        asyncio.run(check(Path(folder), server.server_address[1]))
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
