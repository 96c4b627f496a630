"""Search for refs whose history or context has a message, a commit or content.

Every reachable commit is read once; the set of refs that reach it is passed from children to parents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trace_store import errors
from trace_store.base.frozen import field, value
from trace_store.base.oid import ObjectId
from trace_store.context.compile_index import GHOST
from trace_store.context.compiler import ContextCompiler
from trace_store.context.content import message_line, seen_of, version_at
from trace_store.context.snippet import Snippet, snippet_in
from trace_store.contracts.ref_names import FILES
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.content import read_content
from trace_store.objects.message import part_blobs
from trace_store.store.revision import commits_of, newest_not_after, resolve_commit
from trace_store.store.store import Store

SHOWN = "shown"
REWORDED = "reworded"
LATER = "in its history"
_LEFT_OUT = (FILES,)


@value
class MessageVersion:
    """One version of a message.

    Attributes:
        address: the message's address.
        place: the oldest commit that has this version, and its number there.
        role: the message's role.
        seen: the hash of its model-visible content; carrying a message does not change it.
    """

    address: Address
    place: tuple[ObjectId, int]
    role: str
    seen: bytes

    @property
    def name(self) -> str:
        """The commit that holds it, and its number there: `<64 hex characters>.<n>`."""
        return f"{self.place[0]}.{self.place[1]}"


@value
class VersionRef:
    """A ref that has a version of a message.

    Attributes:
        ref: its full name.
        state: "shown" in its context, "reworded" since, hidden by "removed", "replaced" or "skip", or "in its history".
        position: the index of the message in the context; None if it is not shown.
    """

    ref: str
    state: str
    position: int | None


@value
class VersionHolders:
    """A version of a message, and the refs that have it.

    Attributes:
        wording: the version.
        holders: the refs.
        text: the text that was searched for; "" for a search for a message or a blob.
    """

    JSON = "address=wording.address wording=wording.name role=wording.role refs=holders -text"

    wording: MessageVersion
    holders: tuple[VersionRef, ...]
    text: str
    _contexts: ContextCompiler = field(hidden=True)

    def summary(self, width: int = 72) -> str:
        """Return the message's role and the start of this version on one line."""
        stored = {"role": self.wording.role, "parts": self._parts()}
        return message_line(stored, self._contexts.store.objects.read, width)

    def snippet(self) -> Snippet | None:
        """Return a snippet around the text that was searched for; None if it is in data beside the message's text."""
        read = self._contexts.store.objects.read
        return snippet_in(self._parts(), self.text, read) if self.text else None

    def _parts(self) -> Sequence[Mapping[str, Any]]:
        return version_at(self.wording.place, self._contexts.read_commit)


def whohas_content(contexts: ContextCompiler, oid: bytes) -> list[VersionHolders]:
    """Return the versions that contain a blob, newest first, with the refs that have them.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the history of a ref is incomplete or damaged.
    """
    return _search(contexts, lambda stored: oid in part_blobs(stored["parts"]))


def whohas_text(contexts: ContextCompiler, text: str) -> list[VersionHolders]:
    """Return the versions that contain a text, ignoring case, as `whohas_content` does; missing content never matches.

    Raises:
        InvalidInputError: the text is empty.
    """
    if not text:
        raise errors.InvalidInputError("the text to search for is empty")
    wanted = text.casefold()
    read = contexts.store.objects.read
    known: dict[bytes, bool] = {}

    def matches_blob(oid: bytes) -> bool:
        found = known.get(oid)
        if found is None:
            try:
                content = read_content(oid, read).decode("utf-8", "replace")
                found = wanted in content.casefold()
            except (errors.NotFoundError, errors.FormatError):
                found = False
            known[oid] = found
        return found

    return _search(
        contexts, lambda stored: any(map(matches_blob, part_blobs(stored["parts"]))), text
    )


def held_at(
    contexts: ContextCompiler, found: Sequence[VersionHolders], moment: int
) -> list[VersionHolders]:
    """Return the versions that were visible at a time, each with the refs that showed it.

    Args:
        contexts: the compiler of the repository.
        found: the result of a function above.
        moment: milliseconds since the epoch.
    """
    store = contexts.store
    tips: dict[str, ObjectId | None] = {}
    held: list[VersionHolders] = []
    for each in found:
        holders: list[VersionRef] = []
        for holder in each.holders:
            if holder.ref not in tips:
                tip = resolve_commit(store, holder.ref)
                tips[holder.ref] = newest_not_after(store, tip, moment)
            then = tips[holder.ref]
            if then is not None:
                holders += [
                    state
                    for state in _states(contexts, holder.ref, then, [each.wording])
                    if state.state == SHOWN
                ]
        if holders:
            held.append(VersionHolders(each.wording, tuple(holders), each.text, contexts))
    return held


def whohas_message(contexts: ContextCompiler, address: Address) -> list[VersionHolders]:
    """Return the versions of one message, as `whohas_content` does."""
    return [
        found
        for found in _search(contexts, lambda stored: True)
        if found.wording.address == address
    ]


def whohas_commit(store: Store, commit: bytes) -> list[str]:
    """Return the full names of the refs whose history contains a commit, sorted.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the history of a ref is incomplete or damaged.
    """
    names, tips = _tips(store)
    for oid, _, mask in _reachable_commits(store, tips):
        if oid == commit:
            return [name for at, name in enumerate(names) if mask >> at & 1]
    return []


def _search(
    contexts: ContextCompiler, matches: Callable[[Mapping[str, Any]], bool], text: str = ""
) -> list[VersionHolders]:
    store = contexts.store
    names, tips = _tips(store)
    wordings: dict[tuple[Address, bytes], tuple[MessageVersion, int]] = {}
    for oid, commit, mask in _reachable_commits(store, tips):
        for address, number, stored in _versions_of(contexts, oid, commit):
            if matches(stored):
                seen = seen_of(stored["role"], stored.get("name", ""), stored["parts"])
                wording = MessageVersion(address, (oid, number), stored["role"], seen)
                _, others = wordings.get((address, seen), (wording, 0))
                wordings[address, seen] = wording, mask | others
    found = list(wordings.values())
    asked = 0
    for _, mask in found:
        asked |= mask
    holders: list[list[VersionRef]] = [[] for _ in found]
    for at, name in enumerate(names):
        if asked >> at & 1:
            of_ref = [index for index, (_, mask) in enumerate(found) if mask >> at & 1]
            states = _states(contexts, name, tips[at], [found[index][0] for index in of_ref])
            for index, holder in zip(of_ref, states, strict=True):
                holders[index].append(holder)
    return [
        VersionHolders(wording, tuple(held), text, contexts)
        for (wording, _), held in zip(found, holders, strict=True)
    ]


def _tips(store: Store) -> tuple[list[str], list[ObjectId]]:
    """Return the names and tips of refs that point to commits."""
    names: list[str] = []
    tips: list[ObjectId] = []
    for name, oid in store.refs.iterate("refs/"):
        if name.startswith(_LEFT_OUT):
            continue
        try:
            tips.append(resolve_commit(store, bytes(oid)))
        except errors.NotFoundError:
            continue  # not a commit, or missing
        names.append(name)
    return names, tips


def _reachable_commits(
    store: Store, tips: Sequence[ObjectId]
) -> Iterator[tuple[ObjectId, Commit, int]]:
    """Yield each reachable commit, children before parents, with a bit mask of the tips that reach it."""
    masks: dict[ObjectId, int] = {}
    for at, tip in enumerate(tips):
        masks[tip] = masks.get(tip, 0) | 1 << at
    for oid in commits_of(store).topological(list(dict.fromkeys(tips))):
        commit = read_commit(oid, store.objects.read)
        mask = masks.pop(oid, 0)
        for parent in commit.parents:
            masks[parent] = masks.get(parent, 0) | mask
        yield oid, commit, mask


def _versions_of(
    contexts: ContextCompiler, oid: ObjectId, commit: Commit
) -> Iterator[tuple[Address, int, Mapping[str, Any]]]:
    """Yield (address, number of the version, stored message) of the versions that a commit creates or carries."""
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
    contexts: ContextCompiler, name: str, tip: ObjectId, wordings: Sequence[MessageVersion]
) -> list[VersionRef]:
    """Return the state of each version in a ref."""
    shown: dict[Address, tuple[bytes, int]] = {}
    for record in contexts.compile(tip).view.messages():
        if not record.flags & GHOST:
            shown[record.address] = record.seen, record.ordinal - 1
    holders: list[VersionRef] = []
    for wording in wordings:
        found = shown.get(wording.address)
        if found is None:
            holders.append(VersionRef(name, _hidden_state(contexts, tip, wording.address), None))
        elif found[0] == wording.seen:
            holders.append(VersionRef(name, SHOWN, found[1]))
        else:
            holders.append(VersionRef(name, REWORDED, None))
    return holders


def _hidden_state(contexts: ContextCompiler, tip: ObjectId, address: Address) -> str:
    """Return why a context does not show a message of its history."""
    try:
        entry = contexts.fold(tip).entry(address)
    except errors.MessageNotFoundError:
        return LATER
    return entry.hidden or entry.priority
