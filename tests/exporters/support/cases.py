"""Minimal sessions, one for each kind of loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.exporters.support.sessions import SCHEMA, png, repository
from trace_store.exporters.contract import ExportSession
from trace_store.exporters.session import read_session
from trace_store.objects.message import Message
from trace_store.objects.parts import Data, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.repo.repository import Repo

CLAUDE, GPT, GEMINI = "claude-opus-4-6", "gpt-5", "gemini-3-pro"
USER = Message("user", "Which tags are there?")
DONE = Message("assistant", "There are v1 and v2.")


def call(number: int = 1, arguments: str = '{"a":1}', format: str = "json") -> ToolCall:
    return ToolCall(f"call_{number}", "Bash", arguments, format)


def called(*calls: ToolCall, model: str = "") -> Message:
    return Message("assistant", calls or [call()], model=model)


def answered(*results: ToolResult) -> Message:
    return Message("tool", results or [ToolResult("call_1", "v1")])


def of(*messages: Message) -> ExportSession:
    """A session of these messages, each in a commit of its own."""
    return _session(_said(messages))


def _said(messages: Sequence[Message]) -> Repo:
    repo = repository()
    for message in messages:
        repo.commit([message])
    return repo


def _session(repo: Repo) -> ExportSession:
    return read_session(repo.store, contexts=repo.contexts)


def _marked() -> ExportSession:
    repo = _said([USER])
    (message,) = repo.compile()
    repo.annotate(message.address, labels=["plan"])
    return _session(repo)


def _pinned() -> ExportSession:
    repo = _said([USER])
    (message,) = repo.compile()
    repo.annotate(message.address, priority="pinned")
    return _session(repo)


def _ghost() -> ExportSession:
    repo = _said([USER, Message("user", "Quick.")])
    repo.remove(next(iter(repo.compile())).address, ghost=True)
    return _session(repo)


def _compacted() -> ExportSession:
    repo = _said([USER, DONE])
    gone = [message.address for message in repo.compile()]
    repo.replace(gone, [Message("user", "We spoke of tags.")], reason="compaction")
    return _session(repo)


def _compressed() -> ExportSession:
    repo = _said([USER, Message("assistant", "The tags are v1 and v2. " * 40)])
    repo.compression.compress(text="We spoke of tags.")
    return _session(repo)


def _reported() -> ExportSession:
    repo = _said([USER])
    with repo.batch() as draft:
        draft.append("assistant", "v1", model=CLAUDE)
        draft.record_usage({"input_tokens": 20, "output_tokens": 3})
    return _session(repo)


def _cache_written() -> ExportSession:
    repo = _said([USER])
    with repo.batch() as draft:
        draft.append("assistant", "v1", model=CLAUDE)
        draft.record_usage(
            {"input_tokens": 20, "cache_creation_input_tokens": 9, "output_tokens": 3}
        )
    return _session(repo)


def _offered() -> ExportSession:
    repo = _said([USER])
    repo.set_tools([SCHEMA])
    return _session(repo)


def _thought(model: str) -> ExportSession:
    thought = Reasoning("Hm.", "c2lnbmVk")
    return of(USER, Message("assistant", [thought, Text("So.")], model=model))


# A description of a loss, the words that report it, and a session that may have it.
CASES: dict[str, tuple[str, Callable[[], ExportSession]]] = {
    "system messages at the front": (
        "message-role",
        lambda: of(Message("system", "Be brief."), USER),
    ),
    "developer messages": ("message-role", lambda: of(Message("developer", "Be brief."), USER)),
    "system messages later on": ("message-role", lambda: of(USER, Message("system", "Be brief."))),
    "kinds of messages": ("message-kind", lambda: of(Message("user", "Do so.", kind="artifact"))),
    "schemas of data": (
        "data-schema",
        lambda: of(USER, Message("assistant", [Data("example/1", {"a": 1})])),
    ),
    "names of speakers": ("message-name", lambda: of(Message("user", "Hi.", name="ada"))),
    "models": ("message-model", lambda: of(USER, Message("assistant", "v1", model=CLAUDE))),
    "ids of messages": ("message-id", lambda: of(USER, Message("assistant", "v1", id="msg_1"))),
    "times": ("message-time", lambda: of(USER)),
    "times of results": ("message-time", lambda: of(USER, called(), answered())),
    "authors": ("message-author", lambda: of(USER)),
    "labels": ("label", _marked),
    "priorities": ("priority", _pinned),
    "ghosts": ("ghost", _ghost),
    "summary marks": ("compaction", _compacted),
    "marks of Trace's own summaries": ("compaction", _compressed),
    "usage": ("usage-report", _reported),
    "prompt cache writes": ("usage-report", _cache_written),
    "schemas of tools": ("tool-schema", _offered),
    "signed reasoning of Claude": ("reasoning-signature", lambda: _thought(CLAUDE)),
    "signed reasoning of GPT": ("reasoning-signature", lambda: _thought(GPT)),
    "signed reasoning of Gemini": ("reasoning-signature", lambda: _thought(GEMINI)),
    "reasoning that is not signed": (
        "reasoning-text",
        lambda: of(USER, Message("assistant", [Reasoning("Hm."), Text("So.")], model=CLAUDE)),
    ),
    "that a tool failed": (
        "error-flag",
        lambda: of(USER, called(), answered(ToolResult("call_1", "no", is_error=True))),
    ),
    "calls without a result": ("tool-call", lambda: of(USER, called())),
    "results without a call": ("tool-result", lambda: of(USER, answered())),
    "positions of late results": (
        "message-place",
        lambda: of(USER, called(), Message("user", "Quick."), answered()),
    ),
    "text after a call": (
        "message-place",
        lambda: of(USER, Message("assistant", [call(), Text("So.")]), answered()),
    ),
    "two results in one message": (
        "message-bounds",
        lambda: of(
            USER,
            called(call(1), call(2)),
            answered(ToolResult("call_1", "v1"), ToolResult("call_2", "v2")),
        ),
    ),
    "results in messages of their own": (
        "message-bounds",
        lambda: of(
            USER,
            called(call(1), call(2)),
            answered(ToolResult("call_1", "v1")),
            answered(ToolResult("call_2", "v2")),
        ),
    ),
    "two answers in a row": (
        "message-bounds",
        lambda: of(USER, Message("assistant", "v1"), called(), answered()),
    ),
    "exact JSON text of arguments": (
        "argument-text",
        lambda: of(USER, called(call(1, '{"a": 1.0}')), answered()),
    ),
    "arguments that are free text": (
        "call-format",
        lambda: of(USER, called(call(1, "*** Begin Patch", "text")), answered()),
    ),
    "images of the user": (
        "image",
        lambda: of(Message("user", [Text("See."), Image("image/png", png())])),
    ),
    "images of tools": (
        "image",
        lambda: of(USER, called(), answered(ToolResult("call_1", [Image("image/png", png())]))),
    ),
    "Anthropic's own blocks": (
        "opaque-part",
        lambda: of(
            Message(
                "user", [Text("Read."), Opaque("anthropic", b'{"type":"document","title":"d"}')]
            )
        ),
    ),
    "OpenAI's own items": (
        "opaque-part",
        lambda: of(
            USER,
            Message(
                "assistant",
                [
                    Opaque(
                        "openai",
                        b'{"type":"web_search_call","id":"ws_1","status":"completed",'
                        b'"action":{"type":"search","query":"q"}}',
                    ),
                    Text("So."),
                ],
                model=GPT,
            ),
        ),
    ),
    "Gemini's own parts": (
        "opaque-part",
        lambda: of(
            USER,
            Message(
                "assistant",
                [Opaque("gemini", b'{"executableCode":{"language":"PYTHON","code":"1"}}')],
                model=GEMINI,
            ),
        ),
    ),
    "empty text": ("blank-text", lambda: of(Message("user", [Text(""), Text("Hi.")]))),
    "empty messages": ("empty-message", lambda: of(USER, Message("assistant", []))),
    "lone surrogates": ("control-character", lambda: of(Message("user", "a\ud83d"))),
    "repeated call ids": (
        "call-id",
        lambda: of(USER, called(), answered(), called(), answered()),
    ),
    "long names of tools": (
        "tool-name",
        lambda: of(
            USER, called(ToolCall("call_1", "t" * 150, "{}")), answered(ToolResult("call_1", "v"))
        ),
    ),
}
