"""New wordings without a text that is about to be purged.

A purge removes whole contents, so a message would be lost for one word in it. So it first gets a wording without the
text on each branch that shows it; the old wording is purged then. A part that cannot be reworded, such as an image or
signed reasoning, is purged whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable

from trace_store import context
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.context.fold import Entry
from trace_store.contracts.ref_names import BRANCHES
from trace_store.errors import ConflictError, InvalidInputError, StateError, TraceError
from trace_store.history.commit import write
from trace_store.history.draft import Draft
from trace_store.objects.address import Address
from trace_store.objects.content import is_private
from trace_store.objects.message import load_parts, part_blobs
from trace_store.objects.parts import Data, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.writer import Writer

Clean = Callable[[str], str]
_MESSAGE = "purge: wordings without the text"


@value
class Rewording:
    """Messages of a branch that got a wording without a purged text.

    Attributes:
        ref: full name of the branch.
        commit: the commit with the new wordings; None if nothing was written: in a dry run, or if the repository
            refuses the rest of a message, such as another secret.
        messages: their addresses.
    """

    JSON = "addresses=messages"

    ref: str
    commit: ObjectId | None
    messages: tuple[Address, ...]


def reword(
    writer: Writer,
    refs: Iterable[str],
    purged: Collection[ObjectId],
    replace_in: Callable[[bytes], bytes],
    *,
    dry_run: bool = False,
) -> list[Rewording]:
    """Reword the messages that branches show and whose content is about to be purged.

    Args:
        writer: the repository.
        refs: full names of refs; only branches are changed.
        purged: the content to be purged, still readable.
        replace_in: replaces the text in bytes.
        dry_run: write nothing.

    Raises:
        StorageError: the disk failed; earlier branches are changed.
    """

    def clean(text: str) -> str:
        return replace_in(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    found = (
        _reword_branch(writer.on(ref), ref, frozenset(purged), clean, dry_run=dry_run)
        for ref in refs
        if ref.startswith(BRANCHES)
    )
    return [each for each in found if each is not None]


def _reword_branch(
    line: Writer, ref: str, purged: frozenset[ObjectId], clean: Clean, *, dry_run: bool
) -> Rewording | None:
    tip, read = line.store.refs.read(ref), line.store.objects.read
    if tip is None:
        return None
    new: dict[Address, list[Part]] = {}
    private = False
    for entry in context.snapshots.fold_of(line.store, tip).visible():
        blobs = [] if entry.is_ghost else part_blobs(entry.parts)
        if purged.isdisjoint(blobs):
            continue
        parts = _without(entry, read, clean)
        if parts is not None:
            new[entry.address] = parts
            private = private or any(is_private(blob, read) for blob in blobs)
    if not new:
        return None
    addresses = tuple(new)
    if dry_run:
        return Rewording(ref, None, addresses)
    try:
        draft = Draft(line, private=private)
        for address, parts in new.items():
            draft.edit(address, parts)
        return Rewording(ref, write(draft, message=_MESSAGE).oid, addresses)
    except (ConflictError, InvalidInputError, StateError):
        return Rewording(ref, None, addresses)


def _without(entry: Entry, read: Callable[[bytes], bytes], clean: Clean) -> list[Part] | None:
    """Return the parts of a message without the text; None if no part can be reworded."""
    try:
        parts = load_parts(entry.parts, read)
    except TraceError:
        return None
    made = [_part_without(part, clean) for part in parts]
    return None if made == list(parts) else made


def _part_without(part: Part, clean: Clean) -> Part:
    """Return a part without the text, or unchanged if it would not be valid without it."""
    if isinstance(part, ToolResult):
        content = [_part_without(inner, clean) for inner in part.content]
        return ToolResult(part.call_id, content, part.is_error, call=part.call)
    if isinstance(part, Data | ToolCall | Text | Reasoning):
        try:
            return _text_without(part, clean)
        except (TraceError, ValueError):
            return part
    return part


def _text_without(part: Data | ToolCall | Text | Reasoning, clean: Clean) -> Part:
    if isinstance(part, Data):
        return Data(part.schema, json.loads(clean(part.text)))
    if isinstance(part, ToolCall):
        arguments = clean(part.arguments)
        if part.format == "json" and arguments != part.arguments:
            json.loads(arguments)
        return ToolCall(part.id, part.name, arguments, part.format)
    if isinstance(part, Reasoning):
        # A provider refuses reasoning whose text does not fit its signature.
        return part if part.signature else Reasoning(clean(part.text))
    return Text(clean(part.text))
