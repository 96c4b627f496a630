"""Cherry-picks of commits or single messages onto HEAD's branch.

A message keeps its address and comes with its unit; one that is already present is not added again. The new commit
names its origin as text, not as a link, since the original commit may be pruned.
"""

from __future__ import annotations

from collections.abc import Sequence

from trace_store import errors
from trace_store.base.ident import count_of, is_count
from trace_store.history.branches import branch_of_head
from trace_store.llm.contract import Model
from trace_store.merge import in_progress
from trace_store.merge.conflicts import check_favour
from trace_store.merge.replay import Replay
from trace_store.merge.result import Rewrite
from trace_store.merge.todo import PICK, Step
from trace_store.store import revision as revisions
from trace_store.store.revision import commits_of, reach
from trace_store.store.store import Store
from trace_store.writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.merge.conflicts import Answer


def cherry_pick(
    writer: Writer,
    wanted: Sequence[str],
    *,
    at: str = "",
    after: str = "",
    favour: str = "",
    resolver: Answer | None = None,
    judge: Model | None = None,
) -> Rewrite:
    """Apply the changes of commits, or add single messages, on HEAD's branch.

    Args:
        writer: the branch.
        wanted: commits, ranges `A..B` and `A...B` (oldest first), and addresses of single messages, in this order.
        at: the revision whose context gives the state of single messages; "" is the commit that created each.
        after: the message of the branch after which single messages are put; "" puts them at the end.
        favour: "ours" or "theirs" resolves every conflict that allows it.
        resolver: as in `merge`.
        judge: a model that reviews changes of meaning; None skips the review.

    Raises:
        StateError: another operation is in progress.
        DetachedHeadError: HEAD is detached.
        RevisionNotFoundError, MessageNotFoundError: a commit or message does not exist.
        InvalidInputError: nothing to pick, an empty range, or an unknown side; or a commit has a place.
        RefChangedError: the branch kept moving; every retry lost the race.
    """
    store, change = writer.store, writer.begin("cherry-pick")
    check_favour(favour)
    ref = branch_of_head(store)
    steps = [step for text in wanted for step in _steps(store, text)]
    if not steps:
        raise errors.InvalidInputError("nothing to pick")
    place = str(revisions.resolve_address(store, after)) if after else ""
    if place and any(step.number is None for step in steps):
        raise errors.InvalidInputError("only single messages can be put after another one")
    inputs = {
        "after": place,
        "steps": [step.as_json() for step in steps],
        "onto": None,
        "name": " ".join(wanted)[:200],
        "at": str(revisions.resolve_commit(store, at)) if at else "",
        "favour": favour,
    }
    stop = in_progress.Stop(in_progress.CHERRY_PICK, ref, store.refs.read(ref), inputs, {}, [])
    return Replay(change, stop, resolver, judge).run()


def _steps(store: Store, text: str) -> list[Step]:
    if ".." in text:
        commits = commits_of(store)
        oids = list(commits.topological(*reach(store, text, commits)))
        return [Step(PICK, oid) for oid in reversed(oids)]
    revision, dot, digits = text.rpartition(".")
    if dot and is_count(digits) and revisions.ref_of(store, text) is None:  # `v1.0` may be a tag
        revisions.resolve_address(store, text)
        return [Step(PICK, revisions.resolve_commit(store, revision), "", count_of(digits))]
    return [Step(PICK, revisions.resolve_commit(store, text))]
