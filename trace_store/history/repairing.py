"""Repair a session: a branch beside the broken one, with a commit that makes its context sound.

Rule: the broken branch stays as it is. The repaired one begins at its end, so that all history is shared, and what the
repair hides or rewords can be restored like anything else. A sound context gets no commit.
"""

from __future__ import annotations

from collections import Counter

from trace_store import revision as revisions
from trace_store.context.compiler import ContextCompiler
from trace_store.context.mending import Fault, Item, Mended, mend
from trace_store.context.render import Repair
from trace_store.errors import InvalidInputError
from trace_store.graph import is_ancestor
from trace_store.history.draft import CommitResult, Draft
from trace_store.history.writing import new_draft, write
from trace_store.objects.message import Message
from trace_store.oid import ObjectId
from trace_store.refs import BRANCHES
from trace_store.store import Store
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from trace_store.history.draft import Address

AUTHOR = "trace/repair"
FOLDER = "repaired/"
LABEL = "repaired"
"""On every message that a repair made."""
META_KEY = "repair"
REASON = "repair"

SOUND = "sound"
BROKEN = "broken"
REPAIRED = "repaired"
REPAIRED_BEFORE = "repaired-before"

MAXIMUM_NAMED_CHANGES = 1000
"""How many changes a commit names one by one; all are counted."""
MAXIMUM_TARGETS = 10_000
"""Messages that one operation names."""


@value
class RepairReport:
    """What is wrong with a context, and what became of it.

    Attributes:
        outcome: SOUND; BROKEN, when nothing was to be written; REPAIRED; or REPAIRED_BEFORE, when a branch that goes on
            from it is sound already.
        ref: the full name of the branch; "" for a commit that was named otherwise.
        commit: the commit whose context the faults are about.
        message_count: messages of that context.
        faults: what is wrong, in the order of the messages.
        adaptations: for each provider what its renderer does about things in the repaired context that are sound, and
            that the provider has no place for.
        repaired: the full name of the branch that is repaired, or would be; "" when there is nothing to repair.
        result: the commit, when one was written.
    """

    outcome: str
    ref: str
    commit: ObjectId
    message_count: int
    faults: tuple[Fault, ...]
    adaptations: Mapping[str, tuple[Repair, ...]]
    repaired: str = ""
    result: CommitResult | None = None


def repair(
    contexts: ContextCompiler,
    revision: str = "HEAD",
    *,
    providers: Sequence[str] = (),
    in_place: bool = False,
    dry_run: bool = False,
    author: str = AUTHOR,
) -> RepairReport:
    """Make a branch whose context every provider takes, beside one whose context is broken.

    The branch is `repaired/<name>`, or `repaired/<name>-2` and so on where that has gone another way. It is found
    again, so that what was repaired before, and has not gone on since, is not repaired twice.

    Args:
        contexts: the compiler of the store.
        revision: the branch, or what names a commit.
        providers: whom the context has to suit; none means all that there are renderers for.
        in_place: put the commit on the branch itself.
        dry_run: write nothing.
        author: who the commit is by.

    Raises:
        RevisionNotFoundError, UnbornBranchError: there is no such commit.
        InvalidInputError: no such provider, or `in_place` and no branch.
        RefChangedError: the branch moved meanwhile.
        StorageError: the disk failed; nothing was written.
    """
    store = contexts.store
    tip = revisions.resolve_commit(store, revision)
    ref = revisions.ref_of(store, revision) or ""
    if not ref.startswith(BRANCHES) or store.refs.read(ref) != tip:
        ref = ""
    if in_place and not ref:
        raise InvalidInputError(
            f"{revision[:80]} is no branch, so it has no place to be repaired in"
        )
    mended, count = _look(contexts, ref or tip, tip, providers)
    if not mended.faults:
        return RepairReport(SOUND, ref, tip, count, (), mended.adaptations)
    target = ref
    if not in_place:
        target, end = _target(contexts, ref, tip)
        if end != tip:
            tip = end
            mended, count = _look(contexts, target, tip, providers)
            if not mended.faults:
                return RepairReport(
                    REPAIRED_BEFORE, ref, tip, count, (), mended.adaptations, target
                )
    result = None if dry_run else _write(store, mended, target, tip, author)
    outcome = BROKEN if dry_run else REPAIRED
    return RepairReport(outcome, ref, tip, count, mended.faults, mended.adaptations, target, result)


def _look(
    contexts: ContextCompiler, where: str | ObjectId, tip: ObjectId, providers: Sequence[str]
) -> tuple[Mended, int]:
    context = contexts.compile(where)
    mended = mend(
        context.messages,
        context.tools,
        providers=providers,
        withdrawn=_withdrawn(contexts, tip),
    )
    return mended, len(context)


def _withdrawn(contexts: ContextCompiler, tip: ObjectId) -> frozenset[str]:
    """Return the ids of calls whose results are in the history and were taken out of the context."""
    return frozenset(
        part["id"]
        for entry in contexts.fold(tip).entries
        if not entry.visible or entry.is_ghost
        for part in entry.parts
        if part.get("type") == "tool_result"
    )


def _target(contexts: ContextCompiler, ref: str, tip: ObjectId) -> tuple[str, ObjectId]:
    """Return the branch to repair on, and the commit to go on from: its own end when it comes from the tip."""
    name = ref.removeprefix(BRANCHES) if ref else tip.short()
    first = BRANCHES + (name if name.startswith(FOLDER) else FOLDER + name)
    number, target = 1, first
    while True:
        end = contexts.store.refs.read(target)
        if end is None:
            return target, tip
        if is_ancestor(tip, end, lambda oid: contexts.read_commit(oid).parents):
            return target, end
        number += 1
        target = f"{first}-{number}"


def _write(store: Store, mended: Mended, target: str, onto: ObjectId, author: str) -> CommitResult:
    draft = new_draft(store)
    _reword(draft, mended)
    addresses = _create(draft, mended)
    _hide(draft, mended.removed)
    _arrange(draft, mended.items, addresses)
    counts = Counter(fault.code for fault in mended.faults)
    said = ", ".join(f"{count} {code}" for code, count in sorted(counts.items()))
    return write(
        store,
        draft,
        author=author,
        message=f"repair: {said}",
        branch=target,
        meta={META_KEY: _facts(mended, counts)},
        onto=onto,
    )


def _facts(mended: Mended, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return what was changed as a commit's metadata: how often which fault, and each with its message."""
    changes = [
        {
            "code": fault.code,
            "done": fault.done,
            "message": [] if fault.address is None else list(fault.address),
        }
        for fault in mended.faults[:MAXIMUM_NAMED_CHANGES]
    ]
    return {"changes": changes, "counts": dict(sorted(counts.items()))}


def _reword(draft: Draft, mended: Mended) -> None:
    for item in mended.items:
        if item.reworded and item.address is not None:
            draft.edit(item.address, item.parts)


def _create(draft: Draft, mended: Mended) -> dict[int, Address]:
    """Add the new messages; return the address of every message by the `id()` of its item."""
    addresses = {id(item): item.address for item in mended.items if item.address is not None}
    appended: list[Item] = []
    for item in mended.items:
        if item.replaces is not None and item.replaces.address is not None:
            made = draft.replace([item.replaces.address], [_message(item)], reason=REASON)
            addresses[id(item)] = made[0]
        elif item.is_new:
            appended.append(item)
    if appended:
        made = draft.extend([_message(item) for item in appended])
        addresses.update(zip(map(id, appended), made, strict=True))
    created = [addresses[id(item)] for item in mended.items if item.is_new]
    for start in range(0, len(created), MAXIMUM_TARGETS):
        draft.annotate(created[start : start + MAXIMUM_TARGETS], labels=[LABEL])
    return addresses


def _hide(draft: Draft, removed: Sequence[Item]) -> None:
    targets = [item.address for item in removed if item.address is not None]
    for start in range(0, len(targets), MAXIMUM_TARGETS):
        draft.remove(targets[start : start + MAXIMUM_TARGETS])


def _arrange(draft: Draft, items: Sequence[Item], addresses: Mapping[int, Address]) -> None:
    """Place what moved or was added: from front to back, so that each has its neighbour before it."""
    before: Address | None = None
    run: list[Item] = []
    for item in items:
        if item.moved or (item.is_new and item.replaces is None):
            run.append(item)
            continue
        if run:
            draft.move([addresses[id(each)] for each in run], after=before)
            run = []
        before = addresses[id(item)]
    # What was appended stands at the end already.
    if any(item.moved for item in run):
        draft.move([addresses[id(each)] for each in run], after=before)


def _message(item: Item) -> Message:
    return Message(
        item.role, item.parts, kind=item.kind, name=item.name, model=item.model, id=item.id
    )
