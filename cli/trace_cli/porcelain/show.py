"""`trace show`."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, entry_of, opened
from trace_cli.render.commits import commit_lines
from trace_cli.render.escape import bounded, one_line, safe
from trace_cli.render.records import json_bytes, short_address
from trace_cli.render.structure import to_json
from trace_cli.render.tables import NO_TIME, ROLE_STYLES, counted, paint, size
from trace_store import (
    Commit,
    Data,
    Image,
    Message,
    Opaque,
    Reasoning,
    Tag,
    Text,
    ToolCall,
    ToolResult,
    errors,
)
from trace_store.base.ident import known_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from trace_cli.runtime import Invocation, Results
    from trace_store.history.log import LogEntry
    from trace_store.history.lookup import MessageState, WordingVersion
    from trace_store.objects.address import Address
    from trace_store.objects.parts import Part
    from trace_store.repo.repository import Repo

BLOB = "blob"
SHOWN_LINKS = 20
"""How many links of a commit are printed for people; --json has all."""


@takes(
    Argument(
        "WHAT",
        "whats",
        "Revisions, message addresses or object ids (default: HEAD)",
        ANY,
        completes="REVISION",
    ),
    Option("--versions", "versions", "Show every version of a message"),
    Option("--raw", "raw", "Print the raw text only; not to a terminal"),
    Option("--in", "within", "Show a message as of this revision", "REVISION", default="HEAD"),
    JSON,
)
def show(
    invocation: Invocation,
    *,
    whats: list[str],
    versions: bool,
    raw: bool,
    within: str,
) -> Results:
    """Show commits, messages or objects.

    A message is shown with its state in the context of HEAD, or of the revision given with --in; a commit with the
    messages that it adds, in their original version.

        trace show                  the latest commit
        trace show HEAD~2.0         the first message of HEAD~2
        trace show --versions ab12cd.0
    """
    if raw and invocation.terminal:
        raise usage_error(
            "raw text cannot be written to a terminal", "redirect the output to a file or a program"
        )
    with opened(invocation) as here:
        invocation.page()
        for number, what in enumerate(whats or ["HEAD"]):
            if number and not (raw or invocation.as_json):
                invocation.line()
            state = _message(here, what, within)
            if state is not None:
                wordings = here.versions(state.address, within) if versions else None
                if raw:
                    _write_raw(invocation, state, wordings)
                else:
                    lines = _message_lines(invocation, state, wordings)
                    yield _message_record(state, wordings), lines
                continue
            if versions:
                raise usage_error("--versions requires a message address, such as HEAD.0")
            oid = here.resolve(what)
            found = here.get(oid)
            while isinstance(found, Tag) and not (raw or invocation.as_json):
                yield found, _tag_lines(invocation, found)
                oid = found.target
                found = here.get(oid)
            if isinstance(found, Commit) and not raw:
                entry = entry_of(here, oid)
                names = here.branches.names([oid], trash=invocation.as_json)
                yield _commit_record(entry, names), _commit_lines(invocation, entry, names)
            elif isinstance(found, bytes) and raw:
                invocation.write(found)
            elif isinstance(found, bytes):
                text = found.decode("utf-8", "backslashreplace")
                result = {"object": oid, "kind": BLOB, "size": len(found), "text": text}
                yield result, bounded(found).removesuffix("\n")
            else:
                stored = found if isinstance(found, list) else found.stored
                yield {"object": oid, "kind": type(found).__name__.lower()}, to_json(stored)


def _message(here: Repo, what: str, within: str) -> MessageState | None:
    """Return the message that an address names; None if the text is no address."""
    head, point, tail = what.rpartition(".")
    if not (head and point and tail.isascii() and tail.isdigit()):
        return None
    try:
        return here.message(what, within)
    except errors.NotFoundError:
        try:
            here.resolve(what)
        except (errors.NotFoundError, errors.InvalidInputError):
            pass
        else:
            return None  # a branch may be called v1.0
        raise


def _tag_lines(invocation: Invocation, tag: Tag) -> Iterator[str]:
    yield paint(invocation, f"tag {one_line(tag.name, 200)}", "yellow")
    yield f"Tagger:   {one_line(tag.author, 200)}"
    yield f"Date:     {known_time(tag.time) or NO_TIME}"
    yield ""
    for line in safe(tag.message).splitlines():
        yield f"    {line}"
    yield ""


def _commit_record(
    entry: LogEntry, names: Mapping[bytes, list[str]]
) -> Callable[[], dict[str, Any]]:
    """Return what makes the JSON of a commit, with its messages."""
    return lambda: trace_store.record(
        entry,
        refs=names.get(entry.oid, ()),
        meta=entry.commit.meta,
        links=entry.commit.links,
        messages=[message for _, message in entry.messages],
    )


def _commit_lines(
    invocation: Invocation, entry: LogEntry, names: dict[bytes, list[str]]
) -> Iterator[str]:
    commit = entry.commit
    yield from commit_lines(invocation, entry, names)
    for key, value in commit.meta.items():
        yield f"    {one_line(key)}: {one_line(_as_text(value), 200)}"
    for relation, target in commit.links[:SHOWN_LINKS]:
        yield f"    {one_line(relation)}: {one_line(_as_text(target), 200)}"
    if len(commit.links) > SHOWN_LINKS:
        yield f"    and {counted(len(commit.links) - SHOWN_LINKS, 'more link')}"
    if commit.meta or commit.links:
        yield ""
    for address, message in entry.messages:
        yield _title(invocation, address, message.role, message.kind)
        yield from _lines(message.parts)
        yield ""


def _write_raw(
    invocation: Invocation, state: MessageState, versions: Sequence[WordingVersion] | None
) -> None:
    for parts in _wordings(state, versions):
        for part in parts:
            invocation.write(part.raw)


def _wordings(
    state: MessageState, versions: Sequence[WordingVersion] | None
) -> list[tuple[Part, ...]]:
    return [state.message.parts] if versions is None else [each.parts for each in versions]


def _message_record(
    state: MessageState, versions: Sequence[WordingVersion] | None
) -> MessageState | Callable[[], dict[str, Any]]:
    """Return a message, or what makes its JSON with all its versions."""
    if versions is None:
        return state
    worded = [Message(state.message.role, each.parts) for each in versions]
    return lambda: trace_store.record(
        state, wordings=[trace_store.record(each)["parts"] for each in worded]
    )


def _message_lines(
    invocation: Invocation, state: MessageState, versions: Sequence[WordingVersion] | None
) -> Iterator[str]:
    message = state.message
    title = _title(invocation, state.address, message.role, message.kind)
    marks = [text for text in (message.name, message.model, *_marks(state)) if text]
    yield "  ".join([title, *map(safe, marks)])
    for number, parts in enumerate(_wordings(state, versions)):
        if versions is not None:
            current = ", current" if versions[number].is_current else ""
            yield paint(invocation, f"-- version {number}{current}", "dim")
        yield from _lines(parts)


def _marks(state: MessageState) -> Iterator[str]:
    if state.priority != "normal":
        yield state.priority
    if state.hidden:
        yield state.hidden + (", leaving a ghost" if state.is_ghost else "")
    if state.version_count > 1:
        yield f"{state.version_count} versions; current: {state.version}"
    yield from (f"#{label}" for label in sorted(state.labels))


def _title(invocation: Invocation, address: Address, role: str, kind: str) -> str:
    where = paint(invocation, short_address(address), "yellow")
    return f"{where}  {paint(invocation, role, ROLE_STYLES.get(role, ''))}  {kind}"


def _lines(parts: Sequence[Part], indent: str = "    ") -> Iterator[str]:
    """Yield the text of parts as escaped lines."""
    for part in parts:
        head, text = _said(part)
        if head:
            yield indent + head
        if text:
            for line in safe(text).rstrip("\n").split("\n"):
                yield indent + line
        if isinstance(part, ToolResult):
            yield from _lines(part.content, indent + "  ")


def _said(part: Part) -> tuple[str, str]:
    """Return a part's escaped heading and its unescaped text."""
    if isinstance(part, Data):
        return f"[data {one_line(part.schema, 80)}]", part.indented
    if isinstance(part, Text):
        return "", part.text
    if isinstance(part, ToolCall):
        return f"[tool call {one_line(part.name, 80)} {one_line(part.id, 80)}]", part.arguments
    if isinstance(part, ToolResult):
        failed = ", failed" if part.is_error else ""
        return f"[tool result {one_line(part.call_id, 80)}{failed}]", ""
    if isinstance(part, Reasoning):
        return "[reasoning]", part.text
    if isinstance(part, Image):
        if part.url is not None:
            return f"[image {one_line(part.url, 120)}]", ""
        return f"[image {one_line(part.media_type, 40)}, {size(len(part.data or b''))}]", ""
    if isinstance(part, Opaque):
        return f"[{one_line(part.provider, 40)} data, {size(len(part.data))}]", ""
    return f"[{one_line(part.type, 40)}]", ""


def _as_text(value: object) -> str:
    """Return a stored value for people: text unchanged, other values as JSON."""
    plain = trace_store.record({"": value})[""]
    return plain if isinstance(plain, str) else json_bytes(plain).decode("utf-8")
