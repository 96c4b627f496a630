"""What differs between two contexts, as values.

Rule: swapping the two contexts swaps `before` and `after` in every value and changes nothing else.
"""

from __future__ import annotations

from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.comparing.ways import By
    from trace_store.context.compiled import CompiledContext, CompiledMessage
    from trace_store.objects.address import Address

ADDED = "added"
REMOVED = "removed"
EDITED = "edited"
MOVED = "moved"
PRIORITY = "priority"
LABELS = "labels"
GHOST = "ghost"
COPIED = "copied"
KINDS = (ADDED, REMOVED, EDITED, MOVED, PRIORITY, LABELS, GHOST, COPIED)
"""In what a message differs; the last says that the same words stand under another address."""


@value
class MessageChange:
    """One message that differs.

    Attributes:
        kinds: in what, of KINDS; `added` and `removed` stand alone.
        before, after: the message in each context, None where it is not.
        before_by, after_by: the last operation that named it since the two histories parted; None where none did.
        tokens_before, tokens_after: its tokens, 0 where it is not.
        labels_before, labels_after: its labels, as far as they were looked at: nothing when they are the same.
    """

    kinds: tuple[str, ...]
    before: CompiledMessage | None
    after: CompiledMessage | None
    before_by: By | None
    after_by: By | None
    tokens_before: int
    tokens_after: int
    labels_before: frozenset[str]
    labels_after: frozenset[str]

    @property
    def message(self) -> CompiledMessage:
        """The message as it is after, or was before."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def address(self) -> Address:
        """Its address; of a copy the one that it has after."""
        return self.message.address


@value
class ContextDiff:
    """What differs between two contexts.

    Attributes:
        before, after: the contexts.
        changes: the messages that differ, in the order in which they stand.
        common_count: how many messages at the beginning are the same to a model.
        tokens_kept: the tokens of these, without what a request costs once.
        tokens_before, tokens_after: the tokens of their messages, as they are counted here, without tools.
        token_source: how far to trust these numbers.
        tools_before, tools_after: names of the tools that only one of the contexts offers, or offers otherwise.
    """

    before: CompiledContext
    after: CompiledContext
    changes: tuple[MessageChange, ...]
    common_count: int
    tokens_kept: int
    tokens_before: int
    tokens_after: int
    token_source: str
    tools_before: tuple[str, ...]
    tools_after: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not (self.changes or self.tools_before or self.tools_after)

    @property
    def tools_differ(self) -> bool:
        """Whether other tools are offered. Providers put them first, so that nothing behind them is found again."""
        return bool(self.tools_before or self.tools_after)

    @property
    def tokens_lost(self) -> int:
        """Tokens of the context before that a provider's cache holds in vain for the context after."""
        return self.tokens_before if self.tools_differ else self.tokens_before - self.tokens_kept

    @property
    def tokens_new(self) -> int:
        """Tokens of the context after that no cache of the context before holds."""
        return self.tokens_after if self.tools_differ else self.tokens_after - self.tokens_kept
