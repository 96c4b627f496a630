"""Switching HEAD to another branch or commit.

HEAD is a file of this working copy, so it is compared and set under the journal's lock. A commit that would become
unreachable is kept in the trash first. HEAD's reflog says `switch: moving from A to B`, which resolves `-` and `@{-1}`.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.contracts import RefEdit
from trace_store.contracts.ref_names import STAGED, TRASH, short_name
from trace_store.history.trash_refs import keep_in_trash
from trace_store.refs.head import NAME, Head
from trace_store.refs.reflog import read_switch, switch_message
from trace_store.store import revision as revisions
from trace_store.store.reflogs import newest_first
from trace_store.store.revision import commits_among, tips_of_refs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.oid import ObjectId
    from trace_store.store.store import Store
    from trace_store.writer import Writer


@value
class SwitchResult:
    """The result of a switch.

    Attributes:
        before: the old HEAD.
        after: the new HEAD.
        created: whether the branch was created.
        reset: whether an existing branch was set to the start point.
        kept: the ref in the trash that keeps an otherwise unreachable commit, or None.
        replaced: the ref in the trash that keeps the branch's old tip, or None.
    """

    JSON = "ref=after.ref commit=after.oid detached=after.detached changed"

    before: Head
    after: Head
    created: bool = False
    reset: bool = False
    kept: str | None = None
    replaced: str | None = None

    @property
    def changed(self) -> bool:
        """Whether HEAD or a branch moved."""
        before, after = self.before, self.after
        return self.created or self.reset or (before.ref, before.oid) != (after.ref, after.oid)


def move_head(
    writer: Writer,
    target: str | ObjectId,
    *,
    created: bool = False,
    reset: bool = False,
    replaced: str | None = None,
) -> SwitchResult:
    """Move HEAD to a branch, given by its full name, or detach it at a commit; the rest is as in `SwitchResult`."""
    store = writer.store
    before = store.refs.head()
    to = short_name(target) if isinstance(target, str) else str(target)
    message = reflog_message(before, to)
    if before.ref == target or (before.ref is None and before.oid == target):
        return SwitchResult(before, store.refs.head(), created, reset, replaced=replaced)
    keep = _keep_edit(store, before)
    # What is in progress on a branch waits for it; on a detached HEAD it would be lost.
    change = writer.begin("switch", NAME) if before.ref is None else writer.begin()
    edits = None if keep is None else lambda _: [keep]
    change.move_head(before, target, message, edits)
    kept = None if keep is None else keep.name
    return SwitchResult(before, store.refs.head(), created, reset, kept, replaced)


def reflog_message(before: Head, to: str) -> str:
    """Return the message of a switch to a branch, given by its short name, or to the id of a commit."""
    return switch_message(short_name(before.ref) if before.ref else str(before.oid), to)


def _keep_edit(store: Store, before: Head) -> RefEdit | None:
    """Return the edit that keeps the commit of a detached HEAD, if it would become unreachable."""
    if before.ref is not None or before.oid is None:
        return None
    for entry in newest_first(store, NAME):
        if read_switch(entry.message) is not None:
            if entry.new == before.oid:
                return None
            break
    if store.refs.names_of([before.oid]).get(before.oid) or _is_reachable(store, before.oid):
        return None
    return keep_in_trash(NAME, before.oid)


def _is_reachable(store: Store, oid: ObjectId) -> bool:
    """Return True if a commit is reachable from a ref outside the trash and the staged refs."""
    commits = revisions.commits_of(store)
    try:
        tips = commits_among(store, tips_of_refs(store, (TRASH, STAGED)), commits)
        return not any(True for _ in commits.topological([oid], tips, limit=1))
    except (errors.NotFoundError, errors.FormatError):
        return False  # an incomplete history proves nothing
