"""The status of a repository: HEAD, the size of the context, unsealed data and problems to resolve."""

from __future__ import annotations

from trace_store import context, errors, history
from trace_store import store as stores
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.contracts.record_names import record_title
from trace_store.contracts.ref_names import BRANCHES, FORKS, RECORDS, RECOVERED, staged_ref
from trace_store.objects.commit import read_commit
from trace_store.objects.operations import META, facts_of
from trace_store.refs.head import NAME
from trace_store.store.process_lock import RUN_LOCK, names_at_work
from trace_store.store.revision import refs_by_time, upstreams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.ident import Time
    from trace_store.context.compiled import CompiledContext
    from trace_store.context.compiler import ContextCompiler
    from trace_store.history.branch_state import Tracking
    from trace_store.refs.head import Head
    from trace_store.store.store import Store


MOST_DATED_RECORDS = 256
"""Of more records the status does not say which was worked on last, since it would read a commit of each."""
MOST_DATED_BRANCHES = 256
"""The same for the branches of a clone whose HEAD has a commit."""


@value
class Status:
    """The status of a repository.

    Attributes:
        ref: full name of HEAD's branch; None if it is detached.
        oid: HEAD's commit; None on a branch without one.
        time: the time of that commit in milliseconds; 0 without one.
        summary: a line about that commit, or the last one before it that says something; "" without one.
        message_count: messages of the compiled context.
        token_count: their tokens; None if not counted.
        token_source: how they were counted.
        reported_token_count: the last count that a provider reported; None without a report or if not counted.
        doubted_token_count: the last count that a provider reported, if it is too small to be about this context; else
            None.
        estimated_token_count: tokens as Trace counts them; None if not counted.
        message_token_count: how much of token_count the messages are; the rest are the agent's own instructions and
            tools. None if not counted.
        text_token_count: tokens of the text alone; None if not counted.
        text_token_source: how those were counted.
        budget: the configured token budget, or None.
        diverged: refs with several tips, and the tips.
        incomplete: refs whose commit is missing.
        recovered: refs with commits that came back after git removed the journal, and how many their branch has not.
        branch_count: number of branches.
        newest_branch: full name of the branch worked on last, if HEAD's has no commit or nothing was done here yet, as
            in a new clone; else None.
        record_count: number of records, which frameworks store.
        newest_record: full name of the record of a thread worked on last, if it is newer than HEAD's commit; else None,
            also if there are more than 256 records.
        unsealed_transactions: transactions in the journal, which git sees only after a seal.
        unsealed_bytes: bytes of their objects.
        returned: purged objects that are stored again.
        tracking: how far the branch and its upstream are apart; None without an upstream.
        staged: the last of the commits that a reset staged; None without any.
        is_staged_here: whether the staged commits continue HEAD, so that they can be committed.
        is_fork: whether the branch is a fork; `repo.forks.of(ref)` returns the fork.
        is_bisecting: whether a bisection is in progress.
        is_running: whether a process does a run here; `repo.runs.running()` returns them.
    """

    JSON = (
        "branch is_detached commit=oid share upstream=tracking.upstream ahead=tracking.ahead "
        "behind=tracking.behind -time -summary -is_staged_here -is_fork -is_running"
    )

    ref: str | None
    oid: ObjectId | None
    time: Time
    summary: str
    message_count: int
    token_count: int | None
    token_source: str
    reported_token_count: int | None
    doubted_token_count: int | None
    estimated_token_count: int | None
    message_token_count: int | None
    text_token_count: int | None
    text_token_source: str
    budget: int | None
    diverged: dict[str, tuple[ObjectId, ...]]
    incomplete: tuple[str, ...]
    recovered: dict[str, int]
    branch_count: int
    newest_branch: str | None
    record_count: int
    newest_record: str | None
    unsealed_transactions: int
    unsealed_bytes: int
    returned: tuple[ObjectId, ...]
    tracking: Tracking | None
    staged: ObjectId | None
    is_staged_here: bool
    is_fork: bool
    is_bisecting: bool
    is_running: bool

    @property
    def is_detached(self) -> bool:
        """Whether HEAD is a commit instead of a branch."""
        return self.ref is None

    @property
    def branch(self) -> str | None:
        """The short name of the branch; None if HEAD is detached."""
        return None if self.ref is None else self.ref.removeprefix("refs/heads/")

    @property
    def staged_ref(self) -> str:
        """The ref of the commits that a reset of this branch stages."""
        return staged_ref(self.ref or NAME)

    @property
    def share(self) -> float | None:
        """Tokens divided by the budget; None if one is unknown."""
        if self.budget is None or self.token_count is None or self.budget <= 0:
            return None
        return self.token_count / self.budget


def status(contexts: ContextCompiler, *, model: str = "", count_tokens: bool = True) -> Status:
    """Return the status of a repository.

    Args:
        contexts: the compiler of the store.
        model: the model to count for; "" uses the repository's encoding.
        count_tokens: whether to count tokens, which takes time if there are new messages.
    """
    store = contexts.store
    head = store.refs.head()
    shown = _context(contexts, head, model)
    unsealed = store.unsealed()
    refs = store.refs.status()
    commit = None if head.oid is None else read_commit(head.oid, store.objects.read)
    staged, is_staged_here = _staged(store, head)
    has_recovered = next(iter(store.refs.iterate(RECOVERED)), None) is not None
    records = dict(store.refs.iterate(RECORDS))
    recovered = stores.recovery.left_out(store.refs) if has_recovered else {}
    return Status(
        ref=head.ref,
        oid=head.oid,
        time=0 if commit is None else commit.time,
        summary="" if commit is None else history.summary.tip_summary(store, commit),
        message_count=len(shown),
        token_count=shown.token_count if count_tokens else None,
        token_source=shown.token_source if count_tokens else shown.estimate_source,
        reported_token_count=shown.reported_token_count if count_tokens else None,
        doubted_token_count=shown.doubted_token_count if count_tokens else None,
        message_token_count=shown.message_part if count_tokens else None,
        estimated_token_count=shown.estimated_token_count if count_tokens else None,
        text_token_count=shown.text_token_count if count_tokens else None,
        text_token_source=shown.text_token_source,
        budget=store.config.budget,
        diverged=refs.diverged,
        incomplete=tuple(refs.incomplete),
        recovered=recovered,
        branch_count=refs.branch_count,
        newest_branch=_newest(store, head, refs.branch_count),
        record_count=len(records),
        newest_record=_newest_record(store, records, 0 if commit is None else commit.time),
        unsealed_transactions=unsealed.transactions,
        unsealed_bytes=unsealed.bytes,
        returned=tuple(store.objects.reappeared()),
        tracking=_tracking(store, head),
        staged=staged,
        is_staged_here=is_staged_here,
        is_fork=bool(head.ref and store.refs.read(FORKS + head.ref.removeprefix(BRANCHES))),
        is_bisecting=store.disk.exists(store.layout.bisect_file),
        is_running=store.local and bool(names_at_work(store, RUN_LOCK)),
    )


def _context(contexts: ContextCompiler, head: Head, model: str) -> CompiledContext:
    """Return the context of HEAD; by its summary where that saves reading the history."""
    if head.ref and head.oid and not model and not contexts.index_view(head.ref):
        found = context.session_lists.branch_from_lists(contexts, head.ref, head.oid)
        if found is not None:
            return found
    return contexts.compile("HEAD", model=model)


def _newest(store: Store, head: Head, branch_count: int) -> str | None:
    if branch_count <= (head.oid is not None):
        return None  # there is no other branch
    is_new = store.journal.published.stamp is None and not store.disk.exists(store.layout.head_file)
    if head.oid is not None and not (is_new and branch_count <= MOST_DATED_BRANCHES):
        return None
    return refs_by_time(store)[0]


def _newest_record(store: Store, records: dict[str, ObjectId], since: Time) -> str | None:
    if not 0 < len(records) <= MOST_DATED_RECORDS:
        return None
    for name in refs_by_time(store, RECORDS):
        try:
            commit = read_commit(records[name], store.objects.read)
        except errors.TraceError:
            continue
        if commit.time < since:
            return None
        if record_title(name, facts_of(commit, META)):
            return name
    return None


def _tracking(store: Store, head: Head) -> Tracking | None:
    """Compare the branch with its upstream; None without one."""
    upstream = upstreams(store).get(head.ref or "")
    return None if upstream is None else history.branch_state.tracking(store, head.oid, upstream)


def _staged(store: Store, head: Head) -> tuple[ObjectId | None, bool]:
    """Return the last staged commit, and whether the staged commits continue HEAD."""
    if store.refs.read(staged_ref(head.ref or NAME)) is None:
        return None, False
    tip = history.reset.staged_tip(store)
    if tip is None:
        return None, False
    return tip, head.oid is None or history.trash_refs.goes_on(store, tip, head.oid)
