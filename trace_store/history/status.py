"""How things stand: where HEAD is, how big the context is, what is not shared yet and what needs a decision."""

from __future__ import annotations

from trace_store.frozen import value
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.compiler import ContextCompiler


@value
class Status:
    """The state of a repository.

    Attributes:
        ref: full name of the branch that HEAD is on; None when it is detached.
        oid: the commit; None on a branch without one.
        message_count: messages of the compiled context.
        token_count: their tokens, None when they were not counted.
        token_source: how far to trust that number.
        reported_token_count: what a provider reported last of this line, None without a report or when not counted.
        estimated_token_count: tokens as they are counted here, None when they were not counted.
        text_token_count: tokens of the text alone, None when they were not counted.
        text_token_source: how far to trust that.
        budget: tokens allowed by the configuration, or None.
        diverged: refs with several tips, and those tips.
        incomplete: refs whose commit is not here.
        branch_count: how many branches there are.
        unsealed_transactions: transactions in the journal, which git does not see before they are sealed.
        unsealed_bytes: bytes of their objects.
        returned: purged objects whose bytes are here again.
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
        """The short name of the branch, or None when HEAD is detached."""
        return None if self.ref is None else self.ref.removeprefix("refs/heads/")

    @property
    def share(self) -> float | None:
        """Tokens over budget, from 0; None when one of them is not known."""
        if self.budget is None or self.token_count is None or self.budget <= 0:
            return None
        return self.token_count / self.budget


def status(contexts: ContextCompiler, *, model: str = "", count_tokens: bool = True) -> Status:
    """Return how things stand.

    Args:
        contexts: the compiler of the store that is asked about.
        model: the model to count for; "" counts under the repository's encoding.
        count_tokens: whether tokens may be counted, which costs when there are new messages.
    """
    store = contexts.store
    head = store.refs.head()
    context = contexts.compile("HEAD", model=model)
    unsealed = store.unsealed()
    refs = store.refs.standing()
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
        returned=tuple(store.objects.returned()),
    )
