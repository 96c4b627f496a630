"""Look-ups by id or address: objects, messages with their state, versions, reports of usage.

Rule: this reads and changes nothing.
"""

from __future__ import annotations

from trace_store import context, errors, history
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId, is_full_id
from trace_store.objects.address import Address
from trace_store.objects.codec import BLOB, COMMIT, TAG, decode, kind_of
from trace_store.objects.commit import Commit, Tag
from trace_store.objects.content import read_content, text_of
from trace_store.objects.message import Message, load_message, load_parts
from trace_store.objects.operations import USAGE
from trace_store.store import revision as revisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from trace_store.context.fold import Entry
    from trace_store.history.log import LogEntry
    from trace_store.objects.parts import Part
    from trace_store.store.store import Store


@value
class MessageState:
    """A message, and its state in a context.

    Attributes:
        address: its id.
        message: the message with the version that counts.
        priority: "pinned", "important", "normal" or "skip".
        labels: its labels.
        keep: patterns that a summary must keep.
        hidden: "removed", "replaced", or "" if it is not hidden.
        is_ghost: whether a placeholder stands for it.
        is_shown: whether the context shows it, or its placeholder.
        version: the number of the version that counts; 0 is the first.
        version_count: how many versions there are.
        unit: the addresses of the call and the results that it belongs to, in order; itself alone otherwise.
    """

    JSON = "*message hidden? -keep -is_shown -unit"

    address: Address
    message: Message
    priority: str
    labels: frozenset[str]
    keep: tuple[str, ...]
    hidden: str
    is_ghost: bool
    is_shown: bool
    version: int
    version_count: int
    unit: tuple[Address, ...]


@value
class WordingVersion:
    """One version of a message.

    Attributes:
        number: 0 is the first.
        commit: the commit that wrote it.
        parts: the content.
        is_current: whether it is the one that counts.
    """

    number: int
    commit: ObjectId
    parts: tuple[Part, ...]
    is_current: bool

    @property
    def text(self) -> str:
        """All text parts, joined by newlines."""
        return Message("user", self.parts).text


@value
class UsageTotal:
    """What a provider reported about a context that it was sent.

    Attributes:
        commit: the commit that records it.
        about: the commit whose context was sent; None if that is not known.
        fields: the counts in tokens, in their normal form, with the model and the renderer.
    """

    JSON = "*fields"

    commit: ObjectId
    about: ObjectId | None
    fields: Mapping[str, int | str]

    @property
    def model(self) -> str:
        """The model that answered, or ""."""
        return str(self.fields.get("model") or "")


def get(store: Store, name: str) -> Commit | Tag | bytes | list[Any]:
    """Return the object that a name means, as `Line.get`; of any other kind its decoded fields."""
    oid = ObjectId.parse(name) if is_full_id(name) else revisions.resolve(store, name)
    data = store.objects.read(oid)
    kind = kind_of(data)
    if kind == COMMIT:
        return Commit.decode(data)
    if kind == TAG:
        return Tag.decode(data)
    fields = decode(data)[1:]
    head = fields[0] if fields else None
    if kind == BLOB or (isinstance(head, dict) and head.get("type") == "chunks"):
        return read_content(oid, store.objects.read)
    return list(fields)


def address(store: Store, what: str | Address, argument: str = "address") -> Address:
    """Return the address of a message that is given as text or as an address; errors name the argument."""
    if isinstance(what, str):
        return revisions.resolve_address(store, what)
    if not isinstance(what, tuple):
        raise errors.InvalidInputError(
            f"{argument}: a message is named by its address, not by {type(what).__name__}",
            argument=argument,
        )
    return revisions.as_address(what)


def message(store: Store, what: str | Address, revision: str) -> MessageState:
    """Return a message with its state in the context of a revision, as `Line.message`."""
    entry, state = _entry(store, address(store, what), revision)
    read = store.objects.read
    return MessageState(
        address=entry.address,
        message=load_message({**entry.message, "parts": entry.parts}, read),
        priority=entry.priority,
        labels=entry.labels,
        keep=tuple(text_of(read_content(oid, read)) for oid in entry.keep),
        hidden=entry.hidden,
        is_ghost=entry.is_ghost,
        is_shown=entry.visible,
        version=entry.current,
        version_count=len(entry.versions),
        unit=tuple(state.unit(entry.address)),
    )


def versions(store: Store, what: str | Address, revision: str) -> tuple[WordingVersion, ...]:
    """Return the versions of a message, oldest first, as `Line.versions`."""
    entry, _ = _entry(store, address(store, what), revision)
    return tuple(
        WordingVersion(
            number,
            ObjectId(each.place[0]),
            load_parts(each.parts, store.objects.read),
            number == entry.current,
        )
        for number, each in enumerate(entry.versions)
    )


def _entry(store: Store, what: Address, revision: str) -> tuple[Entry, context.fold.Fold]:
    """Return a message in the context of a revision; if HEAD's has not got it, in that of its birth."""
    is_head = revision in ("HEAD", "@")
    tip = store.refs.head().oid if is_head else revisions.resolve_commit(store, revision)
    if tip is not None:
        state = context.snapshots.fold_of(store, tip)
        if what in state or not is_head:
            return state.entry(what), state
    born = context.snapshots.fold_of(store, revisions.resolve_commit(store, what.birth.hex()))
    return born.entry(what), born


def usage(store: Store, revision: str) -> Iterator[UsageTotal]:
    """Yield the reports of usage of a revision or range, newest first."""
    for entry in history.log.log(store, revision):
        yield from reports_of(entry)


def reports_of(entry: LogEntry) -> Iterator[UsageTotal]:
    """Yield the reports of usage that a commit records."""
    # The commit table knows what a commit does, so only few commits are read.
    if USAGE not in entry.operations:
        return
    for operation in entry.commit.operations:
        if operation.name == USAGE:
            fields = dict(operation.fields)
            about = fields.pop("about", None) or next(iter(entry.parents), None)
            counts = {n: v for n, v in sorted(fields.items()) if isinstance(v, int | str)}
            yield UsageTotal(entry.oid, about and ObjectId(about), counts)
