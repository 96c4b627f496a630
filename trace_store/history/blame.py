"""Blame: the origin of each message of a context, and its later changes.

Only operations that made the context count: those along first parents and, for a message that a merge brought, those
along the first parents of the merged line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.context.compiled import CompiledMessage
from trace_store.context.compiler import ContextCompiler
from trace_store.contracts.ref_names import BRANCHES, SESSIONS
from trace_store.history import lookup
from trace_store.history.log import named
from trace_store.objects import operations as ops
from trace_store.objects.address import BIRTH_BYTES, Address
from trace_store.refs.reflog import follow_renames
from trace_store.store.revision import commits_of
from trace_store.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.ident import Time


@value
class MessageOperation:
    """One operation on a message.

    Attributes:
        operation: the name of the operation.
        commit: the commit that contains it.
        author: the author of the commit.
        time: its time in milliseconds since the epoch, UTC.
    """

    operation: str
    commit: ObjectId
    author: str
    time: Time


@value
class Blame:
    """The origin of a message.

    Attributes:
        message: the message.
        made: the operation that created it.
        branch: full name of the branch that it was created on; "" if unknown.
        model: the model that wrote it, or "".
        tools: the tools that it calls or whose results it holds.
        changes: later operations on it, newest first: merges, edits, annotations and moves.
    """

    JSON = (
        "address=message.address position=message.position role=message.role "
        "kind=message.kind since=changes"
    )

    message: CompiledMessage
    made: MessageOperation
    branch: str
    model: str
    tools: tuple[str, ...]
    changes: tuple[MessageOperation, ...]


def blame(
    contexts: ContextCompiler,
    revision: str | ObjectId = "HEAD",
    address: str | Address | None = None,
) -> Iterator[Blame]:
    """Yield the origin of each message of a context, or of one message, in context order.

    Raises:
        MessageNotFoundError: the context does not hold the message.
        RevisionNotFoundError: there is no such commit.
        ObjectNotFoundError, CorruptObjectError: the history is incomplete or damaged.
    """
    asked = None if address is None else lookup.address(contexts.store, address)
    context = contexts.compile(revision)
    wanted = {record.address for record in context.view.messages()}
    if asked is not None:
        if asked not in wanted:
            raise errors.MessageNotFoundError(
                f"{asked} is not in the context of {str(revision)[:80]}", address=asked
            )
        wanted = {asked}
    if context.commit is None:
        return
    changes = operations_on(contexts, context.commit, wanted)
    branches = branches_of(contexts.store, {done[-1].commit for done in changes.values()})
    calls: dict[str, str] = {}
    for message in context.messages:
        stored = message.stored
        # This looks at every message, since a result needs the call before it.
        tools = tuple(dict.fromkeys(_tools(stored, calls)))
        if message.address not in wanted:
            continue
        *later, made = changes[message.address]
        yield Blame(
            message,
            made,
            branches.get(made.commit, ""),
            stored.get("model", ""),
            tools,
            tuple(later),
        )


def operations_on(
    contexts: ContextCompiler, tip: ObjectId, wanted: Iterable[Address]
) -> dict[Address, list[MessageOperation]]:
    """Return the operations on messages up to a commit, newest first; the last one created the message.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the history is incomplete or damaged.
    """
    found: dict[Address, list[MessageOperation]] = {address: [] for address in wanted}
    stack: list[tuple[ObjectId, set[Address]]] = [(tip, set(found))]
    while stack:
        start, looked_for = stack.pop()
        came: dict[Address, tuple[ObjectId, ...]] = {}
        carried: dict[Address, list[MessageOperation]] = {}
        oid: ObjectId | None = start
        while oid is not None and looked_for:
            commit = contexts.read_commit(oid)
            added = {address for address, _ in ops.added_messages(commit, oid)}
            for address, operation in reversed(list(named(oid, commit))):
                if address not in looked_for:
                    continue
                adds = address in added and operation.name in ops.ADDS_MESSAGES
                deed = MessageOperation(operation.name, oid, commit.author, commit.time)
                found[address].append(deed)
                if not adds:
                    continue
                if address.birth == oid[:BIRTH_BYTES]:
                    looked_for.discard(address)
                else:
                    carried.setdefault(address, []).append(deed)
                    came[address] = commit.parents[1:]
            oid = commit.parents[0] if commit.parents else None
        _drop_repeated_carries(found, carried, looked_for)
        theirs: dict[ObjectId, set[Address]] = {}
        for address, parents in came.items():
            for parent in parents if address in looked_for else ():
                theirs.setdefault(parent, set()).add(address)
        stack += theirs.items()
    return found


def _drop_repeated_carries(
    found: dict[Address, list[MessageOperation]],
    carried: Mapping[Address, list[MessageOperation]],
    brought: set[Address],
) -> None:
    """Drop merges that brought in a message that was already there.

    For a message created on this line, drop all of them; for one that was merged in (`brought`), all but the oldest.
    """
    for address, changes in carried.items():
        idle = changes[:-1] if address in brought else changes
        if idle:
            found[address] = [deed for deed in found[address] if not any(deed is i for i in idle)]


def branches_of(store: Store, wanted: set[bytes]) -> dict[bytes, str]:
    """Return the branches that commits were made on.

    A session's commits belong to its branch. For others the local reflogs decide; without an entry it is the first
    branch, HEAD's first, that has the commit among its first parents.
    """
    head = store.refs.head().ref
    names = [name for name, _ in store.refs.iterate(BRANCHES)]
    found: dict[bytes, str] = {}
    logged: dict[bytes, str] = {}
    for name in names:
        if not name.startswith(SESSIONS):
            for entry in follow_renames(name, store.refs.reflog):
                if entry.new in wanted and entry.message.startswith("commit"):
                    logged.setdefault(entry.new, name)
    commits = commits_of(store)
    left = set(wanted)
    seen: set[bytes] = set()
    for name in sorted(names, key=lambda n: (not n.startswith(SESSIONS), n != head, n)):
        tip = store.refs.read(name)
        if tip is None or not left:
            continue
        for oid in commits.topological([tip], first_parent=True):
            if oid in seen:
                break
            seen.add(oid)
            if oid in left:
                left.discard(oid)
                by_hand = not name.startswith(SESSIONS) and logged.get(oid)
                found[oid] = by_hand or name
                if not left:
                    break
    return found


def _tools(stored: Mapping[str, Any], calls: dict[str, str]) -> Iterator[str]:
    """Yield the tools of a message; `calls` remembers names, since a result has only the id of its call."""
    for part in stored["parts"]:
        if part["type"] == "tool_call":
            name = calls[part.get("id", "")] = part.get("name", "")
            yield name
        elif part["type"] == "tool_result":
            name = calls.get(part["id"])
            if name:
                yield name
