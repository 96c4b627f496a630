"""Cherry-pick: what commits changed, or single messages, brought onto HEAD's branch.

Rule: a message keeps its address and comes with its unit; what is there already is not brought twice. The new commit
mentions where it comes from as text, since that need not stay.
"""

from __future__ import annotations

from trace_store import errors, history
from trace_store import revision as revisions
from trace_store.ident import count_of, is_count
from trace_store.merge import in_progress
from trace_store.merge.conflicts import check_favour
from trace_store.merge.replay import Rewriting
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
    """Bring what commits changed, or single messages, onto HEAD's branch.

    Args:
        store: the repository.
        wanted: commits, ranges `A..B` and `A...B` (oldest first), and addresses of single messages, in the order to
            pick them.
        author: who runs the command; each commit keeps its own author.
        at: the revision in whose context single messages are taken; "" is the commit that made each.
        favour: "ours" or "theirs" settles every conflict that it can.
        guard: looks for secrets in texts that settle conflicts.
        resolver: as in `merge`.
        judge: says, as `judging.Judge` does, what may no longer mean what it meant; nobody is asked without one.

    Raises:
        StateError: something else is in progress.
        DetachedHeadError: HEAD is on no branch.
        RevisionNotFoundError, MessageNotFoundError: something that is wanted is not here.
        InvalidInputError: a range is empty, nothing is wanted, or there is no such side to favour.
        RefChangedError: others move the branch again and again; each time the picks are made anew on top.
    """
    in_progress.refuse_while_stopped(store)
    check_favour(favour)
    ref = history.branches.branch_of_head(store)
    steps = [step for text in wanted for step in _steps(store, text)]
    if not steps:
        raise errors.InvalidInputError("there is nothing to pick")
    inputs = {
        "steps": [step.as_json() for step in steps],
        "onto": None,
        "name": " ".join(wanted)[:200],
        "at": str(revisions.resolve_commit(store, at)) if at else "",
        "favour": favour,
    }
    stop = in_progress.Stop(in_progress.CHERRY_PICK, ref, store.refs.read(ref), inputs, {}, [])
    return Rewriting(store, stop, author, guard, resolver, judge).run()


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
