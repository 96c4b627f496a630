"""Anthropic messages: `{"system": [...], "messages": [...], "tools": [...]}`.

Rule: turns of `pairing.arrange` become user and assistant messages that alternate, every content a list of
blocks; the results of a turn's calls begin the user message behind it.

- System and developer messages at the front are the `system` blocks. Later ones are user text inside
  `<system>` and `</system>`, for not every model takes a system message there.
- Neighbours of the same role are one message. When the assistant speaks first, a user message that says so
  stands before it.
- Text that is empty or blank is left out, except in a tool result, whose only text is kept as it is. A
  final assistant message does not end in white space.
- Thinking goes back only to the model that made it, and only with its signature: to `model` when it is given,
  else to the Claude model that spoke last. A date at the end of a model's name and a provider before it do not
  matter. With `reasoning=False` none is sent. A message that would end in thinking loses that thinking.
- Opaque blocks of provider "anthropic" go out verbatim, without their `cache_control`, where their type may
  stand. Others become notes in user messages and results and are left out of assistant messages.
- A tool that Anthropic runs is called and answered in one assistant message; a call or an answer that stands
  there alone is left out, but for a call in the last message, which Anthropic may still answer.
- The input of a call is an object. Arguments that are none, or no JSON, are sent as `{"input": text}`.
- A failed result holds text only and at least one: images follow behind the results, and "[no output]" stands
  for nothing.
- Images are base64 or a URL; other images than GIF, JPEG, PNG and WebP become notes.
- Ids are of `a-z A-Z 0-9 _ -`, names too and at most 128. Others are changed. A speaker's name is not sent.
- Lone surrogates become U+FFFD.
- `cache="stable"` sets at most four cache breakpoints; see `breakpoints.py`.
"""

from __future__ import annotations

from trace_store.context.render.anthropic_blocks import (
    PROVIDER,
    SERVER_CALLS,
    THINKING,
    Blocks,
    is_server_result,
)
from trace_store.context.render.breakpoints import set_breakpoints
from trace_store.context.render.pairing import Turn, arrange
from trace_store.context.render.signatures import last_model, model_family
from trace_store.context.render.tools import anthropic_tools
from trace_store.context.render.values import (
    LEADING_ASSISTANT,
    NO_MESSAGES,
    OPAQUE_LEFT_OUT,
    ORPHAN_CALL,
    REASONING_LEFT_OUT,
    SURROGATE_REPLACED,
    TRAILING_SPACE,
    Options,
    Renderable,
    Repairs,
)
from trace_store.context.render.wire import scrub, word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    Wire: TypeAlias = dict[str, Any]

    Draft: TypeAlias = tuple[str, list[tuple[Wire, int]]]

ID_LIMIT = 256
BEGINNING = "[The conversation begins with the assistant.]"
SYSTEM_ROLES = ("system", "developer")

# A message under construction: role, blocks, and the position of the message each block comes from.


def render_anthropic(
    messages: Sequence[Renderable],
    tools: Sequence[dict[str, Any]],
    options: Options,
    repairs: Repairs,
) -> Wire:
    """Return the request, without model and token limit, which are the caller's."""
    turns = arrange(messages, repairs, call_id=lambda id_: word(id_, ID_LIMIT, "call"))
    asked = last_model(messages, PROVIDER) if options.model is None else options.model
    blocks = Blocks(messages, repairs, model_family(asked), options.reasoning)
    front = 0
    while front < len(turns) and turns[front].role in SYSTEM_ROLES:
        front += 1
    system = _clean([block for turn in turns[:front] for block in blocks.system(turn)], repairs)
    drafts = _settle([draft for turn in turns[front:] for draft in _drafts(turn, blocks)], repairs)
    request: Wire = {}
    if system:
        request["system"] = system
    request["messages"] = [
        {"role": role, "content": _clean(content, repairs)} for role, content in drafts
    ]
    _finish(request["messages"], drafts, repairs)
    schemas, changed = scrub(anthropic_tools(tools, repairs))
    if changed:
        repairs.add(SURROGATE_REPLACED, None, "lone surrogates in tool schemas became U+FFFD")
    if schemas:
        request["tools"] = schemas
    if options.cache == "stable":
        set_breakpoints(request, passing=_passing(drafts, repairs))
    return request


def _drafts(turn: Turn, blocks: Blocks) -> list[Draft]:
    if turn.role in SYSTEM_ROLES:
        return [("user", blocks.late_system(turn))]
    if turn.role == "user":
        return [("user", [block for piece in turn.pieces for block in blocks.user(piece)])]
    said = [block for piece in turn.pieces for block in blocks.assistant(piece)]
    return [("assistant", said), ("user", blocks.answers(turn.answers))]


def _settle(drafts: list[Draft], repairs: Repairs) -> list[Draft]:
    """Return messages that alternate, say something and do not end in thinking."""
    kept: list[Draft] = []
    merged = _merge(drafts)
    for role, content in merged:
        if role == "assistant":
            content = _paired_server_calls(content, content is merged[-1][1], repairs)
            while content and content[-1][0]["type"] in THINKING:
                detail = "nothing follows the reasoning in its message; left out"
                repairs.add(REASONING_LEFT_OUT, content.pop()[1], detail)
        kept.append((role, content))
    return _merge(kept)


def _paired_server_calls(
    content: list[tuple[Wire, int]], is_last: bool, repairs: Repairs
) -> list[tuple[Wire, int]]:
    """Return the content without calls and answers of Anthropic's own tools that stand alone."""
    waiting: dict[str, int] = {}
    alone: set[int] = set()
    for index, (block, _) in enumerate(content):
        if block["type"] in SERVER_CALLS:
            id_ = str(block.get("id"))
            if id_ in waiting:
                alone.add(waiting[id_])
            waiting[id_] = index
        elif is_server_result(block["type"]):
            call = waiting.pop(str(block.get("tool_use_id")), None)
            alone |= {index} if call is None else set()
    if not is_last:
        alone |= set(waiting.values())
    for index in sorted(alone):
        block, at = content[index]
        repairs.add(OPAQUE_LEFT_OUT, at, f"a {block['type']} block stands alone; left out")
    return [placed for index, placed in enumerate(content) if index not in alone]


def _merge(drafts: list[Draft]) -> list[Draft]:
    merged: list[Draft] = []
    for role, content in drafts:
        if not content:
            continue
        if merged and merged[-1][0] == role:
            merged[-1][1].extend(content)
        else:
            merged.append((role, list(content)))
    return merged


def _clean(content: list[tuple[Wire, int]], repairs: Repairs) -> list[Wire]:
    clean: list[Wire] = []
    for block, at in content:
        found, changed = scrub(block)
        if changed:
            repairs.add(SURROGATE_REPLACED, at, "lone surrogates became U+FFFD")
        clean.append(found)
    return clean


def _finish(messages: list[Wire], drafts: list[Draft], repairs: Repairs) -> None:
    """See to the first and the last message."""
    if not messages:
        repairs.add(NO_MESSAGES, None, "nothing to send: no message has content")
        return
    if messages[0]["role"] == "assistant":
        detail = "the first message is the assistant's; a user message stands before it"
        repairs.add(LEADING_ASSISTANT, drafts[0][1][0][1], detail)
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": BEGINNING}]})
    last = messages[-1]
    block = last["content"][-1]
    if last["role"] == "assistant" and block["type"] == "text":
        text = block["text"].rstrip()
        if text != block["text"]:
            detail = "the last message ended in white space; taken off"
            repairs.add(TRAILING_SPACE, drafts[-1][1][-1][1], detail)
            block["text"] = text


def _passing(drafts: list[Draft], repairs: Repairs) -> int:
    """Return how many messages at the end will look otherwise when the context grows.

    A message whose calls still wait will show them, and one that was cut of its trailing white space will
    have it. Before the last assistant message nothing waits any more.
    """
    spoken = [content[0][1] for role, content in drafts if role == "assistant"]
    passing = [
        repair.at
        for repair in repairs.found
        if repair.code in (ORPHAN_CALL, TRAILING_SPACE)
        and repair.at is not None
        and repair.at >= (spoken[-1] if spoken else 0)
    ]
    if not passing:
        return 0
    settled = 0
    while settled < len(drafts) and all(at < min(passing) for _, at in drafts[settled][1]):
        settled += 1
    return len(drafts) - settled
