"""The status of a repository: HEAD, the size of the context, unsealed data and problems to resolve."""

from __future__ import annotations

from trace_store.frozen import value
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.compiler import ContextCompiler


@value
class Status:
    """The status of a repository.

    Attributes:
        ref: full name of HEAD's branch; None if it is detached.
        oid: HEAD's commit; None on a branch without one.
        message_count: messages of the compiled context.
        token_count: their tokens; None if not counted.
        token_source: how they were counted.
        reported_token_count: the last count that a provider reported; None without a report or if not counted.
        estimated_token_count: tokens as Trace counts them; None if not counted.
        text_token_count: tokens of the text alone; None if not counted.
        text_token_source: how those were counted.
        budget: the configured token budget, or None.
        diverged: refs with several tips, and the tips.
        incomplete: refs whose commit is missing.
        branch_count: number of branches.
        unsealed_transactions: transactions in the journal, which git sees only after a seal.
        unsealed_bytes: bytes of their objects.
        returned: purged objects that are stored again.
    """

    ref: str | None
    oid: ObjectId | None
    message_count: int
    token_count: int | None
    token_source: str
    reported_token_count: int | None
    estimated_token_count: int | None
    text_token_count: int | None
    text_token_source: str
    budget: int | None
    diverged: dict[str, tuple[ObjectId, ...]]
    incomplete: tuple[str, ...]
    branch_count: int
    unsealed_transactions: int
    unsealed_bytes: int
    returned: tuple[ObjectId, ...]

    @property
    def branch(self) -> str | None:
        """The short name of the branch; None if HEAD is detached."""
        return None if self.ref is None else self.ref.removeprefix("refs/heads/")

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
    context = contexts.compile("HEAD", model=model)
    unsealed = store.unsealed()
    refs = store.refs.status()
    return Status(
        ref=head.ref,
        oid=head.oid,
        message_count=len(context),
        token_count=context.token_count if count_tokens else None,
        token_source=context.token_source if count_tokens else context.estimate_source,
        reported_token_count=context.reported_token_count if count_tokens else None,
        estimated_token_count=context.estimated_token_count if count_tokens else None,
        text_token_count=context.text_token_count if count_tokens else None,
        text_token_source=context.text_token_source,
        budget=store.config.budget,
        diverged=refs.diverged,
        incomplete=tuple(refs.incomplete),
        branch_count=refs.branch_count,
        unsealed_transactions=unsealed.transactions,
        unsealed_bytes=unsealed.bytes,
        returned=tuple(store.objects.reappeared()),
    )
