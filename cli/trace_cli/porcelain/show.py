"""`trace show`."""

from __future__ import annotations

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, opened_store
from trace_cli.porcelain.log import names_by_commit
from trace_cli.render.commits import commit_lines
from trace_cli.render.escape import bounded, one_line, safe
from trace_cli.render.records import address_text, json_bytes, short_address, write_record
from trace_cli.render.structure import to_json
from trace_cli.render.tables import NO_TIME, ROLE_STYLES, counted, paint, size
from trace_store import errors, providers, repo
from trace_store.context.entries import Entry
from trace_store.context.snapshots import fold_of
from trace_store.history.log import entry_of
from trace_store.ident import known_time
from trace_store.objects.address import Address
from trace_store.objects.codec import BLOB, COMMIT, TAG, decode, kind_of
from trace_store.objects.commit import Commit, Tag
from trace_store.objects.content import bytes_of, read_content
from trace_store.objects.message import Message, load_message, load_parts
from trace_store.objects.operations import added_messages, with_current_parts
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.oid import ObjectId
from trace_store.revision import ref_of, resolve, resolve_address, resolve_commit
from trace_store.store.handle import Store
from trace_store.transcripts.event_text import event_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from trace_cli.runtime import Invocation

SHOWN_LINKS = 20
"""How many links of a commit are printed for people; --json has all."""
NEAR = 4096
"""How many commits are searched for a message that a rebase moved."""


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
    as_json: bool,
) -> None:
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
    with opened_store(invocation) as store:
        invocation.page()
        for number, what in enumerate(whats or ["HEAD"]):
            if number and not (raw or as_json):
                invocation.line()
            found = _address(store, what)
            if found is not None:
                _show_message(
                    invocation, store, found, within, versions=versions, raw=raw, as_json=as_json
                )
                continue
            if versions:
                raise usage_error("--versions requires a message address, such as HEAD.0")
            oid = resolve(store, what)
            data = store.objects.read(oid)
            while kind_of(data) == TAG and not (raw or as_json):
                tag = Tag.decode(data)
                _show_tag(invocation, tag)
                oid, data = tag.target, store.objects.read(tag.target)
            if kind_of(data) == COMMIT and not raw:
                _show_commit(invocation, store, oid, Commit.decode(data), as_json=as_json)
            else:
                _show_object(invocation, store, oid, data, raw=raw, as_json=as_json)


def _address(store: Store, what: str) -> Address | None:
    """Return the address that a name means; None if it is no address."""
    head, point, tail = what.rpartition(".")
    if not (head and point and tail.isascii() and tail.isdigit()):
        return None
    try:
        return resolve_address(store, what)
    except errors.NotFoundError:
        if ref_of(store, what) is not None:
            return None  # a branch may be called v1.0
        raise


def _show_tag(invocation: Invocation, tag: Tag) -> None:
    invocation.line(paint(invocation, f"tag {one_line(tag.name, 200)}", "yellow"))
    invocation.line(f"Tagger:   {one_line(tag.author, 200)}")
    invocation.line(f"Date:     {known_time(tag.time) or NO_TIME}")
    invocation.line()
    for line in safe(tag.message).splitlines():
        invocation.line(f"    {line}")
    invocation.line()


def _show_commit(
    invocation: Invocation, store: Store, oid: ObjectId, commit: Commit, *, as_json: bool
) -> None:
    entry = entry_of(store, oid, commit)
    read = store.objects.read
    added = [
        (a, load_message(with_current_parts(stored), read))
        for a, stored in added_messages(commit, oid)
    ]
    messages = [message for _, message in added]
    names = names_by_commit(store, [oid], trash=as_json)
    if as_json:
        record = repo.records.log_entry(entry, names, None)
        record["meta"] = {key: _plain(value) for key, value in commit.meta.items()}
        record["links"] = [[relation, _plain(target)] for relation, target in commit.links]
        record["messages"] = _lossless(messages)
        write_record(invocation, record)
        return
    for line in commit_lines(invocation, entry, names, None):
        invocation.line(line)
    for key, value in commit.meta.items():
        invocation.line(f"    {one_line(key)}: {one_line(_told(value), 200)}")
    for relation, target in commit.links[:SHOWN_LINKS]:
        invocation.line(f"    {one_line(relation)}: {one_line(_told(target), 200)}")
    if len(commit.links) > SHOWN_LINKS:
        invocation.line(f"    and {counted(len(commit.links) - SHOWN_LINKS, 'more link')}")
    if commit.meta or commit.links:
        invocation.line()
    told = event_text(commit, read)
    if told:
        for line in _lines([Text(told)]):
            invocation.line(line)
        invocation.line()
    for address, message in added:
        invocation.line(_title(invocation, address, message.role, message.kind))
        for line in _lines(message.parts):
            invocation.line(line)
        invocation.line()


def _show_message(
    invocation: Invocation,
    store: Store,
    address: Address,
    within: str,
    *,
    versions: bool,
    raw: bool,
    as_json: bool,
) -> None:
    entry = _entry(store, address, within)
    read = store.objects.read
    shown = entry.versions if versions else [entry.versions[entry.current]]
    wordings = [load_parts(version.parts, read) for version in shown]
    if raw:
        for parts in wordings:
            for part in parts:
                invocation.write(_raw(part))
        return
    message = load_message({**entry.message, "parts": entry.parts}, read)
    state = _state(entry)
    if as_json:
        record = {"address": address_text(address), **_lossless([message])[0], **state}
        if versions:
            record["wordings"] = [
                _lossless([Message(message.role, p)])[0]["parts"] for p in wordings
            ]
        write_record(invocation, record)
        return
    title = _title(invocation, address, message.role, message.kind)
    marks = [text for text in (message.name, message.model, *_marks(entry)) if text]
    invocation.line("  ".join([title, *map(safe, marks)]))
    for number, parts in enumerate(wordings):
        if versions:
            current = ", current" if number == entry.current else ""
            invocation.line(paint(invocation, f"-- version {number}{current}", "dim"))
        for line in _lines(parts):
            invocation.line(line)


def _entry(store: Store, address: Address, within: str) -> Entry:
    """Return a message's state in a context, or else in the commit that added it."""
    head = store.refs.head().oid if within == "HEAD" else resolve(store, within)
    if head is not None:
        state = fold_of(store, head)
        if within != "HEAD" or address in state:
            return state.entry(address)
    return fold_of(store, resolve_commit(store, address.birth.hex())).entry(address)


def _state(entry: Entry) -> dict[str, Any]:
    return {
        "priority": entry.priority,
        "labels": sorted(entry.labels),
        "hidden": entry.hidden or None,
        "ghost": entry.is_ghost,
        "version": entry.current,
        "version_count": len(entry.versions),
    }


def _marks(entry: Entry) -> Iterator[str]:
    if entry.priority != "normal":
        yield entry.priority
    if entry.hidden:
        yield entry.hidden + (", leaving a ghost" if entry.is_ghost else "")
    if len(entry.versions) > 1:
        yield f"{len(entry.versions)} versions; current: {entry.current}"
    yield from (f"#{label}" for label in sorted(entry.labels))


def _show_object(
    invocation: Invocation, store: Store, oid: ObjectId, data: bytes, *, raw: bool, as_json: bool
) -> None:
    kind = kind_of(data)
    content = _content(store, oid, data)
    if as_json:
        record: dict[str, Any] = {"object": str(oid), "kind": kind}
        if content is not None:
            record["size"] = len(content)
            record["text"] = content.decode("utf-8", "backslashreplace")
        write_record(invocation, record)
    elif content is None:
        invocation.line(to_json(decode(data)[1:]))
    elif raw:
        invocation.write(content)
    else:
        invocation.write(bounded(content).encode("utf-8"))
        if not content.endswith(b"\n"):
            invocation.line()


def _content(store: Store, oid: ObjectId, data: bytes) -> bytes | None:
    """Return the content of a blob or list of chunks; None for other objects."""
    read: Callable[[bytes], bytes] = store.objects.read
    if kind_of(data) == BLOB:
        return read_content(oid, read)
    fields = decode(data)[1:2]
    chunks = bool(fields) and isinstance(fields[0], dict) and fields[0].get("type") == "chunks"
    return read_content(oid, read) if chunks else None


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


def _raw(part: Part) -> bytes:
    if isinstance(part, Text | Reasoning):
        return bytes_of(part.text)
    if isinstance(part, ToolCall):
        return bytes_of(part.arguments)
    if isinstance(part, ToolResult):
        return b"".join(map(_raw, part.content))
    return (part.data or b"") if isinstance(part, Image | Opaque) else b""


def _lossless(messages: Sequence[Message]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = providers.rendering.render("json", messages).request["messages"]
    return found


def _told(value: object) -> str:
    """Return a stored value for people: text unchanged, other values as JSON."""
    plain = _plain(value)
    return plain if isinstance(plain, str) else json_bytes(plain).decode("utf-8")


def _plain(value: object) -> object:
    """Return a stored value as JSON-compatible values: ids and bytes as hex."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value
