"""A model server for agents, on this machine: one shell call for each prompt, then an answer.

It speaks what the agents ask for: Anthropic Messages, OpenAI Responses and Chat Completions, and Gemini, streamed or
not. A prompt that ends with `wait` is answered after some seconds, so that a test can kill the agent meanwhile.

    python -m tests.capture.support.fake_model PORT
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMAND = "echo counted"
ANSWER = "It printed one word."
WAIT_SECONDS = 20.0
MODELS = ("fake-model", "gpt-5", "gpt-5.1-codex", "claude-sonnet-4-5")
SHELLS: dict[str, dict[str, Any]] = {
    "Bash": {"command": COMMAND, "description": "Print a word"},
    "bash": {"command": COMMAND, "description": "Print a word"},
    "exec_command": {"cmd": COMMAND},
    "shell_command": {"command": COMMAND},
    "shell": {"command": COMMAND.split()},
    "run_shell_command": {"command": COMMAND, "description": "Print a word"},
}
_numbers = itertools.count(1)


def next_id(prefix: str) -> str:
    return f"{prefix}{next(_numbers):06d}"


def call_for(names: Iterable[Any], last: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the shell call to make, unless the last message brings the result of one."""
    text = json.dumps(last)
    if text.rstrip('"}] \n').endswith("wait"):
        time.sleep(WAIT_SECONDS)
    if any(mark in text for mark in ("tool_result", "_call_output", '"tool"', "functionResponse")):
        return None
    return next(((name, SHELLS[name]) for name in names if name in SHELLS), None)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _send(self, body: str, kind: str = "application/json") -> None:
        data = body.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterable[dict[str, Any]], *, named: bool, end: str = "") -> None:
        lines = []
        for event in events:
            lines += [f"event: {event['type']}"] if named else []
            lines += [f"data: {json.dumps(event)}", ""]
        self._send(
            "\n".join([*lines, *([f"data: {end}", ""] if end else []), ""]), "text/event-stream"
        )

    def do_GET(self) -> None:
        models = [
            {"id": name, "object": "model", "created": 0, "owned_by": "test"} for name in MODELS
        ]
        self._send(json.dumps({"object": "list", "data": models, "models": []}))

    def do_POST(self) -> None:
        body = self._body()
        path = self.path.partition("?")[0]
        if "count" in path.lower():
            self._send(json.dumps({"input_tokens": 10, "totalTokens": 10}))
        elif path.endswith("/messages"):
            self._anthropic(body)
        elif path.endswith("/responses"):
            self._responses(body)
        elif path.endswith("/chat/completions"):
            self._chat(body)
        elif "generatecontent" in path.lower():
            self._gemini(body, streams="stream" in path.lower())
        else:
            self._send("{}")

    def _body(self) -> dict[str, Any]:
        if self.headers.get("Transfer-Encoding") == "chunked":
            pieces = []
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            data = b"".join(pieces)
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            found = json.loads(data)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _anthropic(self, body: dict[str, Any]) -> None:
        names = [each.get("name") for each in body.get("tools") or []]
        call = call_for(names, (body.get("messages") or [None])[-1])
        block: dict[str, Any] = {"type": "text", "text": ANSWER}
        begun: dict[str, Any]
        delta: dict[str, Any]
        begun, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": ANSWER}
        if call is not None:
            block = {"type": "tool_use", "id": next_id("toolu_"), "name": call[0], "input": call[1]}
            begun = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        reason = "end_turn" if call is None else "tool_use"
        usage = {"input_tokens": 10, "output_tokens": 5}
        message = {
            "id": next_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": [block],
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            self._send(json.dumps(message))
            return
        first = {**message, "content": [], "stop_reason": None}
        end = {"stop_reason": reason, "stop_sequence": None}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": first},
            {"type": "content_block_start", "index": 0, "content_block": begun},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": end, "usage": usage},
            {"type": "message_stop"},
        ]
        self._stream(events, named=True)

    def _responses(self, body: dict[str, Any]) -> None:
        names = [each.get("name") or each.get("type") for each in body.get("tools") or []]
        call = call_for(names, (body.get("input") or [None])[-1])
        content = [{"type": "output_text", "text": ANSWER, "annotations": []}]
        item: dict[str, Any] = {
            "type": "message",
            "id": next_id("msg_"),
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
        if call is not None:
            ids = {"id": next_id("fc_"), "call_id": next_id("call_")}
            item = {"type": "function_call", **ids, "name": call[0], "status": "completed"}
            item["arguments"] = json.dumps(call[1])
        usage = {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 15,
        }
        whole = {
            "id": next_id("resp_"),
            "object": "response",
            "created_at": int(time.time()),
            "status": "completed",
            "model": body.get("model"),
            "output": [item],
            "usage": usage,
        }
        if not body.get("stream"):
            self._send(json.dumps(whole))
            return
        begun = {**item, **({"content": list[str]()} if call is None else {"arguments": ""})}
        place = {"output_index": 0, "item_id": item["id"]}
        events: list[dict[str, Any]] = [
            {
                "type": "response.created",
                "response": {**whole, "status": "in_progress", "output": []},
            },
            {"type": "response.output_item.added", "output_index": 0, "item": begun},
        ]
        if call is None:
            place["content_index"] = 0
            part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": []}
            events += [
                {"type": "response.content_part.added", **place, "part": part},
                {"type": "response.output_text.delta", **place, "delta": ANSWER},
                {"type": "response.output_text.done", **place, "text": ANSWER},
            ]
        else:
            kind = "response.function_call_arguments.delta"
            events.append({"type": kind, **place, "delta": item["arguments"]})
        events += [
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]
        numbered = ({**each, "sequence_number": number} for number, each in enumerate(events))
        self._stream(numbered, named=True)

    def _chat(self, body: dict[str, Any]) -> None:
        names = [(each.get("function") or {}).get("name") for each in body.get("tools") or []]
        call = call_for(names, (body.get("messages") or [None])[-1])
        message: dict[str, Any] = {"role": "assistant", "content": ANSWER}
        reason = "stop"
        if call is not None:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            each = {"index": 0, "id": next_id("call_"), "type": "function", "function": function}
            message, reason = (
                {"role": "assistant", "content": None, "tool_calls": [each]},
                "tool_calls",
            )
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        base = {"id": next_id("chatcmpl-"), "created": int(time.time()), "model": body.get("model")}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            self._send(
                json.dumps(
                    {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
                )
            )
            return
        base["object"] = "chat.completion.chunk"
        first = {"index": 0, "delta": message, "finish_reason": None}
        last = {"index": 0, "delta": {}, "finish_reason": reason}
        events = [{**base, "choices": [first]}, {**base, "choices": [last], "usage": usage}]
        self._stream(events, named=False, end="[DONE]")

    def _gemini(self, body: dict[str, Any], *, streams: bool) -> None:
        declared = [
            d for each in body.get("tools") or [] for d in each.get("functionDeclarations") or []
        ]
        last = (body.get("contents") or [None])[-1]
        wants_json = "json" in str((body.get("generationConfig") or {}).get("responseMimeType"))
        call = None if wants_json else call_for([each.get("name") for each in declared], last)
        part: dict[str, Any] = {"text": "{}" if wants_json else ANSWER}
        if call is not None:
            part = {"functionCall": {"name": call[0], "args": call[1]}}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        content = {"role": "model", "parts": [part]}
        whole = {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": usage,
            "modelVersion": "fake-model",
        }
        if streams:
            self._stream([whole], named=False)
        else:
            self._send(json.dumps(whole))


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore agents that were killed."""


@contextmanager
def serving(port: int = 0) -> Iterator[str]:
    """Serve in a thread; yield the address."""
    server = Server(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
