"""`whohas`: every ref whose history or context has a message, a commit or content.

Rule: every commit that a ref reaches is read once, and which refs reach it is handed on from children to parents.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.context.content import seen_of
from trace_store.context.index_records import GHOST
from trace_store.frozen import value
from trace_store.objects import operations as ops
from trace_store.objects.commit import read_commit
from trace_store.objects.content import read_content
from trace_store.objects.message import part_blobs
from trace_store.oid import ObjectId
from trace_store.refs.names import FILES
from trace_store.revision import commits_of, resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from trace_store.context.compiler import ContextCompiler
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Commit
    from trace_store.store.handle import Store

SHOWN = "shown"
REWORDED = "reworded"
LATER = "in its history"
_LEFT_OUT = (FILES,)


@value
class Wording:
    """One wording of a message.

    Attributes:
        address: the message's address.
        place: the oldest commit where the wording stands, and its number there.
        role: the message's role.
        seen: the hash of what a model sees of it; a commit that carries the message elsewhere has the same.
    """

    address: Address
    place: tuple[ObjectId, int]
    role: str
    seen: bytes


@value
class Holder:
    """A ref that has a wording.

    Attributes:
        ref: its full name.
        state: "shown" in its context, "reworded" since, hidden by "removed", "replaced" or "skip", or "in its history".
        position: the message's place in the context, from 0; None where it is not shown.
    """

    ref: str
    state: str
    position: int | None


@value
class Found:
    """A wording, and who has it."""

    wording: Wording
    holders: tuple[Holder, ...]


def whohas_content(contexts: ContextCompiler, oid: bytes) -> list[Found]:
    """Return the wordings that are made of a blob, with the refs that have them; the latest first.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the history of a ref is not whole.
    """
    return _search(contexts, lambda stored: oid in part_blobs(stored["parts"]))


def whohas_text(contexts: ContextCompiler, text: str) -> list[Found]:
    """Return the wordings that say a text, in any case, as `whohas_content` does. What is not here says nothing.

    Raises:
        InvalidInputError: there is no text to look for.
    """
    if not text:
        raise errors.InvalidInputError("there is no text to look for")
    wanted = text.casefold()
    read = contexts.store.objects.read
    known: dict[bytes, bool] = {}

    def says(oid: bytes) -> bool:
        found = known.get(oid)
        if found is None:
            try:
                content = read_content(oid, read).decode("utf-8", "replace")
                found = wanted in content.casefold()
            except (errors.NotFoundError, errors.FormatError):
                found = False
            known[oid] = found
        return found

    return _search(contexts, lambda stored: any(map(says, part_blobs(stored["parts"]))))


def whohas_message(contexts: ContextCompiler, address: Address) -> list[Found]:
    """Return the wordings of one message, as `whohas_content` does."""
    return [
        found
        for found in _search(contexts, lambda stored: True)
        if found.wording.address == address
    ]


def whohas_commit(store: Store, commit: bytes) -> list[str]:
    """Return the full names of the refs in whose history a commit stands, sorted.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the history of a ref is not whole.
    """
    names, tips = _tips(store)
    for oid, _, mask in _reached(store, tips):
        if oid == commit:
            return [name for at, name in enumerate(names) if mask >> at & 1]
    return []


def _search(contexts: ContextCompiler, matches: Callable[[Mapping[str, Any]], bool]) -> list[Found]:
    store = contexts.store
    names, tips = _tips(store)
    wordings: dict[tuple[Address, bytes], tuple[Wording, int]] = {}
    for oid, commit, mask in _reached(store, tips):
        for address, number, stored in _wordings(contexts, oid, commit):
            if matches(stored):
                seen = seen_of(stored["role"], stored.get("name", ""), stored["parts"])
                wording = Wording(address, (oid, number), stored["role"], seen)
                _, others = wordings.get((address, seen), (wording, 0))
                wordings[address, seen] = wording, mask | others
    found = list(wordings.values())
    asked = 0
    for _, mask in found:
        asked |= mask
    holders: list[list[Holder]] = [[] for _ in found]
    for at, name in enumerate(names):
        if asked >> at & 1:
            of_ref = [index for index, (_, mask) in enumerate(found) if mask >> at & 1]
            states = _states(contexts, name, tips[at], [found[index][0] for index in of_ref])
            for index, holder in zip(of_ref, states, strict=True):
                holders[index].append(holder)
    return [Found(w, tuple(held)) for (w, _), held in zip(found, holders, strict=True)]


def _tips(store: Store) -> tuple[list[str], list[ObjectId]]:
    """Return the refs that stand for commits, and these."""
    names: list[str] = []
    tips: list[ObjectId] = []
    for name, oid in store.refs.iterate("refs/"):
        if name.startswith(_LEFT_OUT):
            continue
        try:
            tips.append(resolve_commit(store, bytes(oid)))
        except errors.NotFoundError:
            continue  # a ref of something else, or of what is not here
        names.append(name)
    return names, tips


def _reached(store: Store, tips: Sequence[ObjectId]) -> Iterator[tuple[ObjectId, Commit, int]]:
    """Yield each commit that is reached, children before their parents, with a bit for each tip that reaches it."""
    masks: dict[ObjectId, int] = {}
    for at, tip in enumerate(tips):
        masks[tip] = masks.get(tip, 0) | 1 << at
    for oid in commits_of(store).topological(list(dict.fromkeys(tips))):
        commit = read_commit(oid, store.objects.read)
        mask = masks.pop(oid, 0)
        for parent in commit.parents:
            masks[parent] = masks.get(parent, 0) | mask
        yield oid, commit, mask


def _wordings(
    contexts: ContextCompiler, oid: ObjectId, commit: Commit
) -> Iterator[tuple[Address, int, Mapping[str, Any]]]:
    """Yield the wordings that a commit makes or carries: (message, number of the wording, message in stored form)."""
    number = 0
    added = ops.added_messages(commit, oid)
    for operation in commit.operations:
        if operation.name == ops.EDIT:
            (address,) = ops.targets_of(operation, oid)
            state = contexts.fold(oid)
            if address in state:
                message = state.entry(address).message
                yield address, number, {**message, "parts": operation.fields["parts"]}
            number += 1
        for _ in range(ops.message_count(operation)):
            address, stored = next(added)
            for parts in (stored["parts"], *stored.get("edits", ())):
                yield address, number, {**stored, "parts": parts}
                number += 1


def _states(
    contexts: ContextCompiler, name: str, tip: ObjectId, wordings: Sequence[Wording]
) -> list[Holder]:
    """Return how a ref has each of some wordings."""
    shown: dict[Address, tuple[bytes, int]] = {}
    for record in contexts.compile(tip).view.messages():
        if not record.flags & GHOST:
            shown[record.address] = record.seen, record.ordinal - 1
    holders: list[Holder] = []
    for wording in wordings:
        found = shown.get(wording.address)
        if found is None:
            holders.append(Holder(name, _hidden(contexts, tip, wording.address), None))
        elif found[0] == wording.seen:
            holders.append(Holder(name, SHOWN, found[1]))
        else:
            holders.append(Holder(name, REWORDED, None))
    return holders


def _hidden(contexts: ContextCompiler, tip: ObjectId, address: Address) -> str:
    """Return why a context does not show a message that its history has."""
    try:
        entry = contexts.fold(tip).entry(address)
    except errors.MessageNotFoundError:
        return LATER
    return entry.hidden or entry.priority
