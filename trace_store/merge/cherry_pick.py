"""Cherry-picks of commits or single messages onto HEAD's branch.

A message keeps its address and comes with its unit; one that is already present is not added again. The new commit
names its origin as text, not as a link, since the original commit may be pruned.
"""

from __future__ import annotations

from trace_store import errors, history
from trace_store import revision as revisions
from trace_store.ident import count_of, is_count
from trace_store.merge import in_progress
from trace_store.merge.conflicts import check_favour
from trace_store.merge.replay import Replay
from trace_store.merge.todo import PICK, Step
from trace_store.revision import commits_of, reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.merge.conflicts import Resolver
    from trace_store.merge.llm_assist.review import Judge
    from trace_store.merge.result import Rewrite
    from trace_store.secrets.guard import Guard
    from trace_store.store.handle import Store


def cherry_pick(
    store: Store,
    wanted: Sequence[str],
    *,
    author: str,
    at: str = "",
    favour: str = "",
    guard: Guard | None = None,
    resolver: Resolver | None = None,
    judge: Judge | None = None,
) -> Rewrite:
    """Apply the changes of commits, or add single messages, on HEAD's branch.

    Args:
        store: the repository's store.
        wanted: commits, ranges `A..B` and `A...B` (oldest first), and addresses of single messages, in this order.
        author: who runs the command; each commit keeps its own author.
        at: the revision whose context gives the state of single messages; "" is the commit that created each.
        favour: "ours" or "theirs" resolves every conflict that allows it.
        guard: redacts secrets in texts that resolve conflicts.
        resolver: as in `merge`.
        judge: reviews changes of meaning, as `judging.Judge`; None skips the review.

    Raises:
        StateError: another operation is in progress.
        DetachedHeadError: HEAD is detached.
        RevisionNotFoundError, MessageNotFoundError: a commit or message does not exist.
        InvalidInputError: nothing to pick, an empty range, or an unknown side.
        RefChangedError: the branch kept moving; every retry lost the race.
    """
    in_progress.refuse_while_stopped(store)
    check_favour(favour)
    ref = history.branches.branch_of_head(store)
    steps = [step for text in wanted for step in _steps(store, text)]
    if not steps:
        raise errors.InvalidInputError("nothing to pick")
    inputs = {
        "steps": [step.as_json() for step in steps],
        "onto": None,
        "name": " ".join(wanted)[:200],
        "at": str(revisions.resolve_commit(store, at)) if at else "",
        "favour": favour,
    }
    stop = in_progress.Stop(in_progress.CHERRY_PICK, ref, store.refs.read(ref), inputs, {}, [])
    return Replay(store, stop, author, guard, resolver, judge).run()


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
