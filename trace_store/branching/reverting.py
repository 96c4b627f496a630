"""`revert`: new commits that take earlier ones back.

Rule: nothing is written unless all of it can be: the commits of one call are made on top of each other and become the
branch's in one transaction. History stays as it is; a commit that takes another back links to it.
"""

from __future__ import annotations

from trace_store import context, errors, graph
from trace_store import revision as revisions
from trace_store.branching.inverting import OURS, THEIRS, Conflict, invert
from trace_store.branching.switching import keep_and_move
from trace_store.contracts import RefEdit, Transaction
from trace_store.ident import check_author
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, read_commit
from trace_store.oid import ObjectId, hash_object
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.context.folding import Fold
    from trace_store.contracts import RefReader
    from trace_store.store import Store

RELATION = "reverts"


@value
class Reverted:
    """A commit that takes another back.

    Attributes:
        oid: its id; the commit's own where there was nothing to take back.
        reverts: the commit that it takes back.
        ref: the branch that has it; None when HEAD is detached.
        operations: the names of its operations.
        conflicts: what was decided as `favour` said.
    """

    oid: ObjectId
    reverts: ObjectId
    ref: str | None
    operations: tuple[str, ...]
    conflicts: tuple[Conflict, ...]


def revert(
    store: Store, wanted: Sequence[str], *, author: str, message: str = "", favour: str = ""
) -> list[Reverted]:
    """Take commits back, in the order given, those of a range newest first; all of them, or none.

    Args:
        store: where.
        wanted: revisions and ranges.
        author: who.
        message: what a person says about it; what it takes back otherwise.
        favour: "ours" keeps, where something later changed the same, what there is now; "theirs" takes back all the
            same; "" refuses.

    Raises:
        ConflictError: something later changed the same; `.conflicts` holds (commit, Conflict) pairs.
        StateError: a commit changed nothing that could be taken back.
        UnbornBranchError: HEAD has no commit.
        As `resolve_commit`.
    """
    if favour not in ("", OURS, THEIRS):
        raise errors.InvalidInputError(f"conflicts favour {OURS} or {THEIRS}, not {favour[:40]!r}")
    check_author(author)
    head = store.refs.head()
    tip = revisions.resolve_commit(store, "HEAD")
    reading = _Reading(store)
    now = context.fold(tip, reading.commit).copy()
    made: list[tuple[ObjectId, bytes]] = []
    found: list[Reverted] = []
    refused: list[tuple[ObjectId, Conflict]] = []
    for oid in _chosen(store, wanted):
        commit = reading.commit(oid)
        before, after = _around(reading, oid, commit)
        inverse = invert(before, after, now, commit, favour)
        refused += [(oid, each) for each in inverse.conflicts]
        if not inverse.operations and not inverse.conflicts:
            raise errors.StateError(f"there is nothing to take back: {_why(oid, commit)}", oid=oid)
        if not inverse.operations:
            continue
        said = message or f"revert {oid.short()}"
        new = Commit(
            [tip], author, store.clock.now(), inverse.operations, said, links=[(RELATION, oid)]
        )
        data = new.encode()
        tip = hash_object(data)
        now.apply(tip, new)
        made.append((tip, data))
        names = tuple(operation.name for operation in inverse.operations)
        found.append(Reverted(tip, oid, head.ref, names, tuple(inverse.conflicts)))
    if refused and not favour:
        raise _refusal(refused)
    if made:
        _write(store, made, "revert " + " ".join(each.reverts.short() for each in found), author)
    return found


class _Reading:
    """Reads commits, each once."""

    def __init__(self, store: Store) -> None:
        self._read = store.objects.read
        self._known: dict[bytes, Commit] = {}

    def commit(self, oid: bytes) -> Commit:
        found = self._known.get(oid)
        if found is None:
            found = self._known[oid] = read_commit(oid, self._read)
        return found


def _chosen(store: Store, wanted: Sequence[str]) -> list[ObjectId]:
    """Return the commits that revisions and ranges name, each once."""
    commits = revisions.commits_of(store)
    found: dict[ObjectId, None] = {}
    for text in wanted:
        if ".." in text:
            span = revisions.resolve_range(store, text, commits)
            hidden = list(span.exclude)
            if span.symmetric:
                hidden += commits.merge_bases(*span.include)
            found.update(
                dict.fromkeys(graph.topological(span.include, commits.parents, hidden=hidden))
            )
        else:
            found[revisions.resolve_commit(store, text, commits)] = None
    return list(found)


def _around(reading: _Reading, oid: ObjectId, commit: Commit) -> tuple[Fold, Fold]:
    """Return the context before a commit, and after it."""
    before = context.fold(commit.parents[0], reading.commit) if commit.parents else context.Fold()
    after = before.copy()
    others: list[Fold | None] = [None] * len(commit.parents)
    for operation in commit.operations:
        number = operation.fields.get("parent") if operation.name == ops.INCLUDE else None
        if isinstance(number, int) and 0 < number < len(commit.parents):
            others[number] = context.fold(commit.parents[number], reading.commit)
    after.apply(oid, commit, others)
    return before, after


def _write(store: Store, made: list[tuple[ObjectId, bytes]], message: str, author: str) -> None:
    head, last = store.refs.head(), made[-1][0]
    first = Commit.decode(made[0][1]).parents[0]

    def build(_: RefReader) -> Transaction:
        edits = [] if head.ref is None else [RefEdit(head.ref, last, first)]
        return Transaction(made, edits, message)

    store.transact(build, author=author)
    if head.ref is None:
        keep_and_move(store, head, last, message, author)


def _why(oid: ObjectId, commit: Commit) -> str:
    if commit.operations and all(each.name == ops.USAGE for each in commit.operations):
        return f"{oid.short()} records what a provider reported, which changes no message"
    return f"what {oid.short()} did does not show here any more"


def _refusal(refused: list[tuple[ObjectId, Conflict]]) -> errors.ConflictError:
    said = ", ".join(
        each.kind
        + (f" {ObjectId(each.address[0]).short()}.{each.address[1]}" if each.address else "")
        for _, each in refused[:5]
    )
    more = f" and {len(refused) - 5} more" if len(refused) > 5 else ""
    return errors.ConflictError(
        f"something later changed the same: {said}{more}",
        conflicts=tuple(refused),
        hint="-X ours keeps what there is now, -X theirs takes back all the same",
    )
