"""Invented rollouts in the shapes that Codex has written, build after build."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SESSION = "019f0000-0000-7000-8000-00000000000a"
MODEL = "gpt-5.5"
ENVIRONMENT = "<environment_context>\n  <cwd>/w/app</cwd>\n</environment_context>"
SEALED = "gAAAA" + "c2VhbGVk" * 8

SEARCH = {"type": "search", "query": "newline", "queries": ["newline"]}

Record = dict[str, Any]


def message(role: str, *texts: str, **more: Any) -> Record:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return {"type": "message", "role": role, "content": content, **more}


def reasoning(*summary: str, sealed: str = SEALED, **more: Any) -> Record:
    texts = [{"type": "summary_text", "text": text} for text in summary]
    return {
        "type": "reasoning",
        "summary": texts,
        "content": None,
        "encrypted_content": sealed,
        **more,
    }


def call(call_id: str, name: str = "exec_command", **arguments: Any) -> Record:
    return {
        "type": "function_call",
        "name": name,
        "arguments": json.dumps(arguments),
        "call_id": call_id,
    }


def output(call_id: str, value: Any) -> Record:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def patch(call_id: str, text: str) -> Record:
    return {
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": call_id,
        "name": "apply_patch",
        "input": text,
    }


def patched(call_id: str, value: Any) -> Record:
    return {"type": "custom_tool_call_output", "call_id": call_id, "output": value}


class Rollout:
    """Writes records of the wrapped era one after the other, a second apart.

    Attributes:
        records: what was written.
        items: the response items among it, whose order is that of the context.
    """

    def __init__(self, session: str = SESSION, **meta: Any) -> None:
        self.records: list[Record] = []
        self.items: list[Record] = []
        self._total = 0
        self.add(
            "session_meta",
            id=session,
            timestamp="2026-06-01T14:20:00.000Z",
            **{"cwd": "/w/app", "cli_version": "0.136.0", "source": "cli", **meta},
        )

    def add(self, type_: str, **payload: Any) -> None:
        second = len(self.records)
        time = f"2026-06-01T14:{20 + second // 60:02d}:{second % 60:02d}.500Z"
        self.records.append({"timestamp": time, "type": type_, "payload": payload})

    def says(self, *items: Record) -> None:
        """Add response items."""
        for item in items:
            self.items.append(item)
            self.add("response_item", **item)

    def happens(self, type_: str, **fields: Any) -> None:
        """Add an event."""
        self.add("event_msg", type=type_, **fields)

    def turn(self, model: str = MODEL, turn_id: str | None = None) -> None:
        self.add("turn_context", turn_id=turn_id, cwd="/w/app", model=model, effort="medium")

    def prompts(self, text: str) -> None:
        """Add a user's message, and the event that repeats it."""
        self.says(message("user", text))
        self.happens("user_message", message=text, images=[])

    def used(self, tokens: int, *, again: bool = False) -> None:
        """Report that a response read so many tokens and wrote ten; or report the last one again."""
        self._total += 0 if again else tokens
        last = {"input_tokens": tokens, "cached_input_tokens": 1, "output_tokens": 10}
        total = {"input_tokens": self._total, "output_tokens": 10, "total_tokens": self._total}
        self.happens("token_count", info={"total_token_usage": total, "last_token_usage": last})

    @property
    def data(self) -> bytes:
        return b"".join(dump(record) for record in self.records)

    def write(self, folder: Path, session: str = SESSION) -> str:
        path = folder / f"rollout-2026-06-01T14-20-00-{session}.jsonl"
        path.write_bytes(self.data)
        return str(path)


def dump(record: Record) -> bytes:
    """A record as Codex writes it."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace") + b"\n"


def lively() -> Rollout:
    """A session with one example of each case that an import must distinguish."""
    r = Rollout(base_instructions={"text": "You are Codex."})
    r.happens("task_started", turn_id="t1")
    r.says(message("developer", "<permissions instructions>\nAsk before you write."))
    r.says(message("user", "# AGENTS.md instructions for /w/app\n\nBe brief.", ENVIRONMENT))
    r.turn()
    r.prompts("Fix the parser, please; it drops the last line of every file without a newline.")
    r.says(reasoning("**Looking**"))
    r.happens("agent_message", message="I look at the parser first.")
    r.says(message("assistant", "I look at the parser first.", phase="commentary"))
    r.says(call("call_a", cmd="cat parser.py"), call("call_b", cmd="grep -n split parser.py"))
    r.says(output("call_a", "Process exited with code 0\nOutput:\ndef parse(data): ..."))
    r.says(output("call_b", "Process exited with code 0\nOutput:\n2: data.split"))
    r.used(1000)
    r.used(1000, again=True)
    r.says(reasoning(sealed=SEALED + "1"), patch("call_c", "*** Begin Patch\n*** End Patch"))
    r.happens("patch_apply_end", call_id="call_c", success=True)
    r.says(patched("call_c", "Exit code: 0\nOutput:\nSuccess."))
    r.used(1100)
    r.says(message("developer", "Approved command prefix saved:\n- pytest"))
    r.says({"type": "web_search_call", "status": "completed", "action": SEARCH})
    r.says(message("assistant", "The last line is kept now.", phase="final_answer"))
    r.used(1200)
    r.happens("task_complete", turn_id="t1")
    r.happens("task_started", turn_id="t2")
    r.turn("gpt-5.6")
    r.prompts("Add a test for the empty file.")
    r.says(call("call_d", cmd="pytest -q"))
    r.happens("turn_aborted", reason="interrupted")
    r.says(message("user", "<turn_aborted>\nThe user interrupted the previous turn."))
    r.prompts("Go on.")
    r.says(message("assistant", "The test is there.", phase="final_answer"))
    r.used(1300)
    return r
