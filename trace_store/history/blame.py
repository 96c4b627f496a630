"""`blame`: for each message of a context, what brought it, and who changed it since.

Rule: only operations count that the context is made of: those along first parents and, of a message that was included
from another parent, those along the first parents of that one.
"""

from __future__ import annotations

from trace_store import refs
from trace_store.frozen import value
from trace_store.history.log import named
from trace_store.objects import operations as ops
from trace_store.objects.address import BIRTH_BYTES
from trace_store.oid import ObjectId
from trace_store.revision import HEADS, SESSIONS, commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from trace_store.context.compiled import CompiledMessage
    from trace_store.context.compiler import ContextCompiler
    from trace_store.objects.address import Address
    from trace_store.store.handle import Store


@value
class Deed:
    """Something that was done to a message.

    Attributes:
        operation: the name of the operation.
        commit: the commit that it stands in.
        author: who made that.
        time: when, in milliseconds since the epoch, UTC.
    """

    operation: str
    commit: ObjectId
    author: str
    time: int


@value
class Blame:
    """Where a message of a context comes from.

    Attributes:
        message: the message.
        made: what created it.
        branch: full name of the branch that it was made on, as far as that can be told; else "".
        model: the model that wrote it, or "".
        tools: the tools that it calls, or whose results it holds.
        deeds: what was done to it since, the latest first: how it was included, edited, marked and moved.
    """

    message: CompiledMessage
    made: Deed
    branch: str
    model: str
    tools: tuple[str, ...]
    deeds: tuple[Deed, ...]


def blame(contexts: ContextCompiler, revision: str | ObjectId = "HEAD") -> Iterator[Blame]:
    """Yield where each message of a context comes from, in the order of the context.

    Raises:
        RevisionNotFoundError: there is no such commit.
        ObjectNotFoundError, CorruptObjectError: the history is not whole.
    """
    context = contexts.compile(revision)
    if context.commit is None:
        return
    wanted = {record.address for record in context.view.messages()}
    deeds = deeds_of(contexts, context.commit, wanted)
    branches = branches_of(contexts.store, {done[-1].commit for done in deeds.values()})
    calls: dict[str, str] = {}
    for message in context.messages:
        *later, made = deeds[message.address]
        stored = message.stored
        yield Blame(
            message,
            made,
            branches.get(made.commit, ""),
            stored.get("model", ""),
            tuple(dict.fromkeys(_tools(stored, calls))),
            tuple(later),
        )


def deeds_of(
    contexts: ContextCompiler, tip: ObjectId, wanted: Iterable[Address]
) -> dict[Address, list[Deed]]:
    """Return what was done to messages on the way to a commit, the latest first; the last is what created each.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the history is not whole.
    """
    found: dict[Address, list[Deed]] = {address: [] for address in wanted}
    stack: list[tuple[ObjectId, set[Address]]] = [(tip, set(found))]
    while stack:
        start, looked_for = stack.pop()
        came: dict[Address, tuple[ObjectId, ...]] = {}
        carried: dict[Address, list[Deed]] = {}
        oid: ObjectId | None = start
        while oid is not None and looked_for:
            commit = contexts.read_commit(oid)
            added = {address for address, _ in ops.added_messages(commit, oid)}
            for address, operation in reversed(list(named(oid, commit))):
                if address not in looked_for:
                    continue
                adds = address in added and operation.name in ops.ADDS_MESSAGES
                deed = Deed(operation.name, oid, commit.author, commit.time)
                found[address].append(deed)
                if not adds:
                    continue
                if address.birth == oid[:BIRTH_BYTES]:
                    looked_for.discard(address)
                else:
                    carried.setdefault(address, []).append(deed)
                    came[address] = commit.parents[1:]
            oid = commit.parents[0] if commit.parents else None
        _leave_out_idle(found, carried, looked_for)
        theirs: dict[ObjectId, set[Address]] = {}
        for address, parents in came.items():
            for parent in parents if address in looked_for else ():
                theirs.setdefault(parent, set()).add(address)
        stack += theirs.items()
    return found


def _leave_out_idle(
    found: dict[Address, list[Deed]],
    carried: Mapping[Address, list[Deed]],
    brought: set[Address],
) -> None:
    """Take what one line carried in away where it did nothing, since the message was there already.

    Of a message that the line made itself that is all of them, of one that was brought (`brought`) all but the first.
    """
    for address, deeds in carried.items():
        idle = deeds[:-1] if address in brought else deeds
        if idle:
            found[address] = [deed for deed in found[address] if not any(deed is i for i in idle)]


def branches_of(store: Store, wanted: set[bytes]) -> dict[bytes, str]:
    """Return the branches that commits were made on.

    A session's commits belong to its branch. Else the reflogs say it, as far as this working copy has them; else it is
    the first of HEAD's branch and the others in whose line of first parents a commit stands.
    """
    head = store.refs.head().ref
    names = [name for name, _ in store.refs.iterate(HEADS)]
    found: dict[bytes, str] = {}
    logged: dict[bytes, str] = {}
    for name in names:
        if not name.startswith(SESSIONS):
            for entry in refs.reflog.through_renames(name, store.refs.reflog):
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
    """Yield the tools of a message; calls are remembered, since a result names its call alone."""
    for part in stored["parts"]:
        if part["type"] == "tool_call":
            name = calls[part.get("id", "")] = part.get("name", "")
            yield name
        elif part["type"] == "tool_result":
            name = calls.get(part["id"])
            if name:
                yield name
