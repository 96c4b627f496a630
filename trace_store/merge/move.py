"""Move messages of HEAD's context, with what they stand with, and warn when that may change their meaning.

Rule: a call and its results move as one, and nothing is put between them.
"""

from __future__ import annotations

from trace_store import context, errors, history
from trace_store.frozen import value
from trace_store.merge import meaning_warnings
from trace_store.merge.merge_commits import until_written
from trace_store.revision import as_address, resolve_address, resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.context.entries import Entry
    from trace_store.history.draft import CommitResult
    from trace_store.merge.meaning_warnings import MeaningWarning
    from trace_store.objects.address import Address
    from trace_store.store.handle import Store

AFTER, BEFORE, FIRST, LAST = "after", "before", "first", "last"


@value
class MovedMessages:
    """What was moved.

    Attributes:
        moved: the messages, in their order.
        after: the one that they come after; None when they are first.
        warnings: what may not mean what it meant before.
        result: the commit; None when they stand there already, or nothing was to be written.
    """

    moved: tuple[Address, ...]
    after: Address | None
    warnings: tuple[MeaningWarning, ...]
    result: CommitResult | None


def move(
    store: Store,
    targets: Sequence[str | tuple[bytes, int]],
    where: str,
    neighbour: str | tuple[bytes, int] = "",
    *,
    author: str,
    message: str = "",
    dry_run: bool = False,
) -> MovedMessages:
    """Place visible messages elsewhere in HEAD's context.

    Args:
        store: the repository.
        targets: addresses, or their texts; the messages keep their order.
        where: AFTER or BEFORE a neighbour, FIRST or LAST.
        neighbour: the address of that, or its text.
        author: who.
        message: what to say about the commit.
        dry_run: whether to write nothing.

    Raises:
        MessageNotFoundError: the context does not show such a message.
        InvalidOperationError: a message would be placed beside itself.
        InvalidInputError: something is no address.
        RefChangedError: others move the branch again and again.
        As `history.write`.
    """
    return until_written(
        lambda: _move(store, targets, where, neighbour, author, message, dry_run=dry_run)
    )


def _move(
    store: Store,
    targets: Sequence[str | tuple[bytes, int]],
    where: str,
    neighbour: str | tuple[bytes, int],
    author: str,
    message: str,
    *,
    dry_run: bool,
) -> MovedMessages:
    tip = resolve_commit(store, "HEAD")
    named = [_named(store, each) for each in targets]
    beside = _named(store, neighbour) if where in (AFTER, BEFORE) else None
    state = context.snapshots.fold_of(store, tip)
    seen = list(state.visible())
    blocks = _blocks(state)
    wanted = [_block(blocks, each) for each in named]
    going = [block for block in blocks if any(block is each for each in wanted)]
    staying = [block for block in blocks if not any(block is each for each in going)]
    at = len(staying) if where == LAST else 0
    if beside is not None:
        neighbours = _block(blocks, beside)
        places = [number for number, block in enumerate(staying) if block is neighbours]
        if not places:
            raise errors.InvalidOperationError("a message cannot be placed beside itself")
        at = places[0] + (where == AFTER)
    order = [e.address for block in [*staying[:at], *going, *staying[at:]] for e in block]
    moved = tuple(entry.address for block in going for entry in block)
    after = staying[at - 1][-1].address if at else None
    warnings = tuple(
        meaning_warnings.check_order(
            seen, order, lambda entry: meaning_warnings.texts_of(entry, store.objects.read)
        )
    )
    if dry_run or order == [entry.address for entry in seen]:
        return MovedMessages(moved, after, warnings, None)
    draft = history.commit.new_draft(store)
    draft.move(list(moved), after=after)
    result = history.commit.write(store, draft, author=author, message=message, onto=tip)
    return MovedMessages(moved, after, warnings, result)


def _named(store: Store, given: str | tuple[bytes, int]) -> Address:
    return resolve_address(store, given) if isinstance(given, str) else as_address(given)


def _blocks(state: context.fold.Fold) -> list[list[Entry]]:
    """Return the visible messages in blocks that nothing is put into: a unit, with what stands between its messages."""
    seen = list(state.visible())
    places = {entry.address: at for at, entry in enumerate(seen)}
    found: list[list[Entry]] = []
    end = 0
    for at, entry in enumerate(seen):
        if at >= end:
            found.append([])
        end = max(end, at + 1, *(places.get(each, -1) + 1 for each in state.unit(entry.address)))
        found[-1].append(entry)
    return found


def _block(blocks: Sequence[list[Entry]], address: Address) -> list[Entry]:
    for block in blocks:
        if any(entry.address == address for entry in block):
            return block
    raise errors.MessageNotFoundError(
        f"the context does not show message {address}", address=address
    )
