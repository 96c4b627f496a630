"""Repairs of sessions: a commit, on a branch of its own, that makes a broken context valid.

The broken branch stays unchanged. The repaired branch starts at its tip, so history is shared and everything that the
repair hides or edits can be restored. A valid context gets no commit.
"""

from __future__ import annotations

from collections import Counter

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.commit_table.graph import is_ancestor
from trace_store.context.compiler import ContextCompiler
from trace_store.context.faults import Fault, WorkingMessage
from trace_store.context.fold import Fold
from trace_store.context.repair_steps import RepairedContext, repair_context
from trace_store.contracts.ref_names import BRANCHES
from trace_store.history.commit import write
from trace_store.history.draft import CommitResult, Draft
from trace_store.objects.message import Message
from trace_store.objects.parts import Part, ToolResult
from trace_store.providers.rendering import Repair
from trace_store.providers.validity import pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from trace_store.objects.address import Address
    from trace_store.writer import Writer

AUTHOR = "trace/repair"
FOLDER = "repaired/"
LABEL = "repaired"
"""The label of every message that a repair changed or added."""
META_KEY = "repair"
REASON = "repair"

SOUND = "sound"
BROKEN = "broken"
REPAIRED = "repaired"
REPAIRED_BEFORE = "repaired-before"

MAXIMUM_NAMED_CHANGES = 1000
"""A commit lists this many changes one by one; all are counted."""
MAXIMUM_TARGETS = 10_000
"""Maximum number of targets of one operation."""


@value
class ContextRepairReport:
    """The faults of a context, and the result of its repair.

    Attributes:
        outcome: SOUND; BROKEN for a dry run; REPAIRED; or REPAIRED_BEFORE, if an earlier repair
            suffices.
        ref: the full name of the branch; "" if the revision is not a branch.
        commit: the commit whose context has the faults.
        message_count: number of messages of that context.
        faults: the faults, in the order of the messages.
        adaptations: by provider, how its renderer will adapt valid content that the provider does not support.
        repaired: the full name of the repaired branch, also for a dry run; "" if there is nothing to repair.
        result: the commit, if one was written.
    """

    JSON = "ref? adaptations=adaptation_counts repaired? repair_commit=result.oid"

    outcome: str
    ref: str
    commit: ObjectId
    message_count: int
    faults: tuple[Fault, ...]
    adaptations: Mapping[str, tuple[Repair, ...]]
    repaired: str = ""
    result: CommitResult | None = None

    @property
    def adaptation_counts(self) -> dict[str, dict[str, int]]:
        """Number of adaptations by provider and code."""
        return {
            provider: dict(sorted(Counter(each.code for each in repairs).items()))
            for provider, repairs in sorted(self.adaptations.items())
        }


def repaired_context(
    contexts: ContextCompiler, where: str | ObjectId, providers: Sequence[str]
) -> tuple[RepairedContext, int]:
    """Return the context of a revision as it would be valid for some providers, or all, and its message count."""
    context = contexts.compile(where)
    return repair_context(context.messages, context.tools, providers=providers), len(context)


def repair_target(contexts: ContextCompiler, ref: str, tip: ObjectId) -> tuple[str, ObjectId]:
    """Return the branch for the repair, and the commit to start from.

    The branch is `repaired/<name>`, or `repaired/<name>-2` and so on if that one has diverged.
    """
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


def write_repair(writer: Writer, mended: RepairedContext, onto: ObjectId) -> CommitResult:
    """Commit what turns the context of a commit into its repaired form."""
    draft = Draft(writer, "repair", author=AUTHOR)
    _Changes(draft, mended, writer.contexts.fold(onto)).add_operations()
    counts = Counter(fault.code for fault in mended.faults)
    said = ", ".join(f"{count} {code}" for code, count in sorted(counts.items()))
    meta = {META_KEY: _facts(mended, counts)}
    return write(draft, message=f"repair: {said}", meta=meta, onto=onto)


def _facts(mended: RepairedContext, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return a commit's metadata about a repair: the counts of faults, and each change with its message."""
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
    """The operations that turn a context into its repaired form.

    A call and its results are hidden and moved as a unit. If only some of them stay, or their order changes, the whole
    unit is removed, and those that stay are added again.
    """

    def __init__(self, draft: Draft, mended: RepairedContext, state: Fold) -> None:
        self._draft = draft
        self._items = items = mended.items
        self._removed = [item.address for item in mended.removed if item.address is not None]
        self._state = state
        self._addresses: dict[int, Address] = {}  # of the items, by their id()
        self._caller = {
            (id(items[at]), index): items[calling]
            for (calling, _), (at, index) in pair(items)[0].items()
        }

    def add_operations(self) -> None:
        """Add the operations to the draft."""
        split = self._split_units()
        for item in self._items:
            own = item if item.replaces is None else item.replaces
            if own.address is None or self._state.unit_id(own.address) in split:
                continue
            self._addresses[id(item)] = own.address
            if own is not item:
                made = self._draft.replace([own.address], [self._message(item)], reason=REASON)
                self._addresses[id(item)] = made[0]
            elif item.reworded:
                self._draft.edit(own.address, self._parts(item), force=True)
        gone = self._state.units([*self._removed, *split])
        for start in range(0, len(gone), MAXIMUM_TARGETS):
            self._draft.remove(gone[start : start + MAXIMUM_TARGETS])
        self._move_and_add()
        addresses = [self._addresses[id(item)] for item in self._items]
        made = [address for address in addresses if not address.birth]
        for start in range(0, len(made), MAXIMUM_TARGETS):
            self._draft.annotate(made[start : start + MAXIMUM_TARGETS], labels=[LABEL])

    def _split_units(self) -> set[Address]:
        """Return the units that cannot stay together."""
        state = self._state
        removed = {state.unit_id(address) for address in self._removed}
        split: set[Address] = set()
        for item in self._items:
            own = item if item.replaces is None else item.replaces
            if own.address is None:
                continue
            unit = state.unit_id(own.address)
            several = len(state.unit(unit)) > 1
            if unit in removed or (several and (own is not item or item.moved)):
                split.add(unit)
        return split

    def _move_and_add(self) -> None:
        """Move and add messages front to back, so that each one's predecessor is in place."""
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

    def _message(self, item: WorkingMessage) -> Message:
        return Message(
            item.role,
            self._parts(item),
            kind=item.kind,
            name=item.name,
            model=item.model,
            id=item.id,
        )

    def _parts(self, item: WorkingMessage) -> list[Part]:
        """Return an item's parts, with each result linked to the message that will hold its call."""
        parts = list(item.parts)
        for index, part in enumerate(parts):
            caller = self._caller.get((id(item), index))
            if isinstance(part, ToolResult) and caller is not None:
                call = self._addresses.get(id(caller), caller.address)
                parts[index] = ToolResult(part.call_id, part.content, part.is_error, call=call)
        return parts
