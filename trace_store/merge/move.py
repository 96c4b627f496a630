"""Moves of messages within HEAD's context, with warnings about changed meaning.

A call and its results move as a unit, and nothing is put between them.
"""

from __future__ import annotations

from collections.abc import Sequence

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.context.fold import Entry, Fold
from trace_store.context.snapshots import fold_of
from trace_store.history import commit
from trace_store.history.draft import CommitResult, Draft
from trace_store.merge import meaning_warnings
from trace_store.merge.meaning_warnings import MeaningWarning
from trace_store.merge.merge_commits import retry_until_written
from trace_store.objects.address import Address
from trace_store.store.revision import as_address, resolve_address, resolve_commit
from trace_store.store.store import Store
from trace_store.writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.history.draft import Target

AFTER, BEFORE, FIRST, LAST = "after", "before", "first", "last"


@value
class MoveResult:
    """The result of a move.

    Attributes:
        moved: the messages, in their order.
        after: the message before them; None if they are first.
        warnings: possible changes of meaning.
        result: the commit; None if nothing moved or nothing was to be written.
    """

    JSON = "commit=result.oid changed"

    moved: tuple[Address, ...]
    after: Address | None
    warnings: tuple[MeaningWarning, ...]
    result: CommitResult | None

    @property
    def changed(self) -> bool:
        """Whether something was written."""
        return self.result is not None


def move(
    writer: Writer,
    targets: Sequence[str | tuple[bytes, int]],
    where: str,
    neighbour: str | tuple[bytes, int] = "",
    *,
    message: str = "",
    dry_run: bool = False,
) -> MoveResult:
    """Move visible messages within HEAD's context.

    Args:
        writer: the branch.
        targets: addresses or their texts; the messages keep their order.
        where: AFTER or BEFORE a neighbour, FIRST or LAST.
        neighbour: the neighbour's address or its text.
        message: the commit message.
        dry_run: write nothing.

    Raises:
        MessageNotFoundError: a message is not visible in the context.
        InvalidOperationError: a message would be moved next to itself.
        InvalidInputError: a value is not an address.
        RefChangedError: the branch kept moving; every retry lost the race.
        As `history.write`.
    """
    return retry_until_written(
        lambda: _move(writer, targets, where, neighbour, message, dry_run=dry_run)
    )


def _move(
    writer: Writer,
    targets: Sequence[str | tuple[bytes, int]],
    where: str,
    neighbour: str | tuple[bytes, int],
    message: str,
    *,
    dry_run: bool,
) -> MoveResult:
    store = writer.store
    tip = resolve_commit(store, "HEAD")
    named = [_as_address(store, each) for each in targets]
    neighbour_address = _as_address(store, neighbour) if where in (AFTER, BEFORE) else None
    state = fold_of(store, tip)
    seen = list(state.visible())
    blocks = _split_blocks(state)
    wanted = [_block_of(blocks, each) for each in named]
    going = [block for block in blocks if any(block is each for each in wanted)]
    staying = [block for block in blocks if not any(block is each for each in going)]
    at = len(staying) if where == LAST else 0
    if neighbour_address is not None:
        neighbours = _block_of(blocks, neighbour_address)
        places = [number for number, block in enumerate(staying) if block is neighbours]
        if not places:
            raise errors.InvalidOperationError("a message cannot be moved next to itself")
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
        return MoveResult(moved, after, warnings, None)
    draft = Draft(writer)
    draft.move(list(moved), after=after)
    result = commit.write(draft, message=message, onto=tip)
    return MoveResult(moved, after, warnings, result)


def _as_address(store: Store, given: str | tuple[bytes, int]) -> Address:
    return resolve_address(store, given) if isinstance(given, str) else as_address(given)


def _split_blocks(state: Fold) -> list[list[Entry]]:
    """Return the visible messages in blocks that must not be split: a unit and everything between its messages."""
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


def _block_of(blocks: Sequence[list[Entry]], address: Address) -> list[Entry]:
    for block in blocks:
        if any(entry.address == address for entry in block):
            return block
    raise errors.MessageNotFoundError(
        f"the context does not show message {address}", address=address
    )


def place_of(after: Target | None, before: Target | None, last: bool) -> tuple[str, Target]:
    """Return where to move messages, and beside which message; by default to the beginning.

    Raises:
        InvalidInputError: several places are given.
    """
    places = [("after", after), ("before", before), ("last", "" if last else None)]
    given = [(where, beside) for where, beside in places if beside is not None]
    if len(given) > 1:
        raise errors.InvalidInputError("give one of after, before and last")
    return given[0] if given else ("first", "")
