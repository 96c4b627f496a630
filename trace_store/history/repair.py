"""Repair a session: a branch beside the broken one, with a commit that makes its context sound.

Rule: the broken branch stays as it is. The repaired one begins at its end, so that all history is shared, and what the
repair hides or rewords can be restored like anything else. A sound context gets no commit.
"""

from __future__ import annotations

from collections import Counter

from trace_store import revision as revisions
from trace_store.context.compiler import ContextCompiler
from trace_store.context.fold import Fold
from trace_store.context.repair.faults import Fault
from trace_store.context.repair.steps import Mended, mend
from trace_store.context.repair.working_copy import Item
from trace_store.errors import InvalidInputError
from trace_store.frozen import value
from trace_store.graph import is_ancestor
from trace_store.history.commit import new_draft, write
from trace_store.history.draft import CommitResult, Draft
from trace_store.objects.message import Message
from trace_store.objects.parts import Part, ToolResult
from trace_store.oid import ObjectId
from trace_store.providers.validity import pair
from trace_store.providers.values import Repair
from trace_store.refs.names import BRANCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from trace_store.objects.address import Address

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
    mended, count = _look(contexts, ref or tip, providers)
    if not mended.faults:
        return RepairReport(SOUND, ref, tip, count, (), mended.adaptations)
    target = ref
    if not in_place:
        target, end = _target(contexts, ref, tip)
        if end != tip:
            tip = end
            mended, count = _look(contexts, target, providers)
            if not mended.faults:
                return RepairReport(
                    REPAIRED_BEFORE, ref, tip, count, (), mended.adaptations, target
                )
    result = None if dry_run else _write(contexts, mended, target, tip, author)
    outcome = BROKEN if dry_run else REPAIRED
    return RepairReport(outcome, ref, tip, count, mended.faults, mended.adaptations, target, result)


def _look(
    contexts: ContextCompiler, where: str | ObjectId, providers: Sequence[str]
) -> tuple[Mended, int]:
    context = contexts.compile(where)
    return mend(context.messages, context.tools, providers=providers), len(context)


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


def _write(
    contexts: ContextCompiler, mended: Mended, target: str, onto: ObjectId, author: str
) -> CommitResult:
    draft = new_draft(contexts.store)
    _Changes(draft, mended, contexts.fold(onto)).draw_up()
    counts = Counter(fault.code for fault in mended.faults)
    said = ", ".join(f"{count} {code}" for code, count in sorted(counts.items()))
    return write(
        contexts.store,
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


class _Changes:
    """The operations by which a context becomes the mended one.

    A call and its results are hidden and moved as one. Where only some of them stay, or they stand otherwise, all of
    them are removed, and those that stay are added again.
    """

    def __init__(self, draft: Draft, mended: Mended, state: Fold) -> None:
        self._draft = draft
        self._items = items = mended.items
        self._removed = [item.address for item in mended.removed if item.address is not None]
        self._state = state
        self._addresses: dict[int, Address] = {}  # of the items, by their id()
        self._caller = {
            (id(items[at]), index): items[calling]
            for (calling, _), (at, index) in pair(items)[0].items()
        }

    def draw_up(self) -> None:
        """Add the operations to the draft."""
        parted = self._parted()
        for item in self._items:
            own = item if item.replaces is None else item.replaces
            if own.address is None or self._state.unit_id(own.address) in parted:
                continue
            self._addresses[id(item)] = own.address
            if own is not item:
                made = self._draft.replace([own.address], [self._message(item)], reason=REASON)
                self._addresses[id(item)] = made[0]
            elif item.reworded:
                self._draft.edit(own.address, self._parts(item), force=True)
        gone = self._state.units([*self._removed, *parted])
        for start in range(0, len(gone), MAXIMUM_TARGETS):
            self._draft.remove(gone[start : start + MAXIMUM_TARGETS])
        self._arrange()
        addresses = [self._addresses[id(item)] for item in self._items]
        made = [address for address in addresses if not address.birth]
        for start in range(0, len(made), MAXIMUM_TARGETS):
            self._draft.annotate(made[start : start + MAXIMUM_TARGETS], labels=[LABEL])

    def _parted(self) -> set[Address]:
        """Return the units that do not stay together as they are."""
        state = self._state
        removed = {state.unit_id(address) for address in self._removed}
        parted: set[Address] = set()
        for item in self._items:
            own = item if item.replaces is None else item.replaces
            if own.address is None:
                continue
            unit = state.unit_id(own.address)
            several = len(state.unit(unit)) > 1
            if unit in removed or (several and (own is not item or item.moved)):
                parted.add(unit)
        return parted

    def _arrange(self) -> None:
        """Place what moved, and add what is not there: from front to back, so that each has its neighbour."""
        before: Address | None = None
        for item in self._items:
            if id(item) not in self._addresses:
                (made,) = self._draft.extend([self._message(item)], after=before)
                self._addresses[id(item)] = made
                if before is None:
                    self._draft.move([made], after=None)
            elif item.moved:
                self._draft.move([self._addresses[id(item)]], after=before)
            before = self._addresses[id(item)]

    def _message(self, item: Item) -> Message:
        return Message(
            item.role,
            self._parts(item),
            kind=item.kind,
            name=item.name,
            model=item.model,
            id=item.id,
        )

    def _parts(self, item: Item) -> list[Part]:
        """Return what an item says, with each result linked to the message that holds its call by then."""
        parts = list(item.parts)
        for index, part in enumerate(parts):
            caller = self._caller.get((id(item), index))
            if isinstance(part, ToolResult) and caller is not None:
                call = self._addresses.get(id(caller), caller.address)
                parts[index] = ToolResult(part.call_id, part.content, part.is_error, call=call)
        return parts
