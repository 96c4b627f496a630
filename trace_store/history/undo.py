"""Undo and redo of the last command that moved refs.

The reflogs are the only record. All entries of a transaction have the same time; the transactions of one command share
author and message and are adjacent. An undo is one transaction, and it fails unless each ref is where the command left
it. It writes its own reflog message, so that the next undo can skip commands that are already undone.
"""

from __future__ import annotations

from trace_store import errors, history
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import field, mutable, value
from trace_store.history.branches import move_upstream, rename_upstreams
from trace_store.history.switch import keep_and_move
from trace_store.history.trash import is_kept_by, keep_in_trash
from trace_store.maintenance.seal import seal
from trace_store.objects.commit import read_commit
from trace_store.oid import ObjectId, is_full_id
from trace_store.ref_names import AUTOMATIC, BRANCHES, TRASH, is_ref_name
from trace_store.refs.head import NAME, Head
from trace_store.refs.reflog import (
    GIT,
    REDO,
    UNDO,
    ReflogEntry,
    read_join,
    read_rename,
    read_switch,
    split_undo,
)
from trace_store.revision import resolve_commit
from trace_store.store.reflogs import all_logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.contracts import RefReader
    from trace_store.store.handle import Store

IMPORT = "import"
SHORT = 12
"""The length of an id in a line about a move."""


@value
class UndoResult:
    """The result of an undo or redo.

    Attributes:
        message: the reflog message of the command.
        author: the user who ran it.
        time: when, in milliseconds since the epoch.
        moves: (name, old value, new value) of each ref that the undo moved, including HEAD.
        head: the new HEAD.
    """

    message: str
    author: str
    time: int
    moves: tuple[tuple[str, ObjectId | None, ObjectId | None], ...]
    head: Head


@mutable
class CommandChanges:
    """The changes of one command.

    Attributes:
        entries: (name, old, new) of each ref that it moved, newest first.
        head: the entry of HEAD's log if HEAD switched, or moved while detached; else None.
        given_up: (name, id or prefix of it) of each other tip that a diverged branch lost.
    """

    time: int
    author: str
    message: str
    entries: list[tuple[str, ObjectId | None, ObjectId | None]]
    head: ReflogEntry | None
    given_up: list[tuple[str, str]] = field(default_factory=list)


def undo(store: Store, *, author: str, dry_run: bool = False) -> UndoResult:
    """Undo the last command that moved a ref or HEAD; repeated calls go further back.

    With `dry_run` nothing is changed.

    Raises:
        StateError: there is nothing to undo, or a ref has moved since.
    """
    return _invert(store, _last(store), UNDO, author, dry_run=dry_run)


def redo(store: Store, *, author: str, dry_run: bool = False) -> UndoResult:
    """Redo what was undone last, unless another command has moved a ref since.

    Raises:
        StateError: there is nothing to redo, or a ref has moved since.
    """
    return _invert(store, _last_undone(store), REDO, author, dry_run=dry_run)


def commands(store: Store) -> Iterator[CommandChanges]:
    """Yield the changes of each command to refs and HEAD, newest first, without changes made by git."""
    waiting: CommandChanges | None = None
    for group in _transactions(store):
        if waiting is None or _completes_import(waiting, group):
            waiting = group
        elif _is_same_command(waiting, group):
            waiting.entries += group.entries
            waiting.given_up += group.given_up
            waiting.head = waiting.head or group.head
        else:
            yield waiting
            waiting = group
    if waiting is not None:
        yield waiting


def _last(store: Store) -> CommandChanges:
    """Return the last command that is neither an undo nor already undone."""
    skipped = redone = 0
    for group in commands(store):
        if group.message.startswith(REDO):
            redone += 1
        elif group.message.startswith(UNDO):
            if redone:
                redone -= 1
            else:
                skipped += 1
        elif skipped:
            skipped -= 1
        else:
            return group
    raise errors.StateError("nothing to undo", code=errors.ErrorCode.NOTHING_TO_UNDO)


def _last_undone(store: Store) -> CommandChanges:
    """Return the last undo that was not redone, if no other command followed."""
    redone = 0
    for group in commands(store):
        if group.message.startswith(REDO):
            redone += 1
        elif group.message.startswith(UNDO) and redone:
            redone -= 1
        elif group.message.startswith(UNDO):
            return group
        elif not redone:
            break
    raise errors.StateError("nothing to redo", code=errors.ErrorCode.NOTHING_TO_REDO)


def _transactions(store: Store) -> Iterator[CommandChanges]:
    """Yield the changes of each transaction, and each move of HEAD, newest first.

    Each has a unique time (`RisingClock`), which all its entries share.
    """
    logs = all_logs(store)
    heads: dict[str, ReflogEntry] = {}
    for name, entries in logs.items():
        _advance(heads, name, entries)
    while heads:
        newest = max(heads.values(), key=lambda entry: entry.time)
        joined, said = read_join(newest.message)
        group = CommandChanges(newest.time, newest.author, said, [], None)
        for name in [n for n, entry in heads.items() if entry.time == newest.time]:
            entry, tips = heads[name], set[ObjectId | None]()
            while name in heads and heads[name].time == newest.time:
                tips |= {heads[name].old, heads[name].new}
                _advance(heads, name, logs[name])
            if name.startswith(BRANCHES):
                # An import of git's state dropped other tips in an earlier step of the same transaction.
                given_up = map(str, filter(None, tips - {entry.old, entry.new}))
                group.given_up += [(name, tip) for tip in (*given_up, *joined)]
            if name == NAME:
                group.head = entry
            else:
                group.entries.append((name, entry.old, entry.new))
        if group.head is not None and read_switch(group.message) is None:
            pair = (group.head.old, group.head.new)
            if any((old, new) == pair for _, old, new in group.entries):
                group.head = None  # it repeats the move of HEAD's branch
        if newest.author != GIT and not _is_automatic(group):
            yield group


def _is_automatic(group: CommandChanges) -> bool:
    """Return True if a transaction only changed automatic checkpoints."""
    return bool(group.entries) and all(name.startswith(AUTOMATIC) for name, _, _ in group.entries)


def _advance(heads: dict[str, ReflogEntry], name: str, entries: Iterator[ReflogEntry]) -> None:
    entry = next(entries, None)
    if entry is None:
        heads.pop(name, None)
    else:
        heads[name] = entry


def _completes_import(later: CommandChanges, earlier: CommandChanges) -> bool:
    """Return True if the later group only put HEAD, which had no commit, on an imported branch."""
    head = later.head
    if head is None or head.old is not None or later.entries or later.message != earlier.message:
        return False
    return read_switch(later.message) is None and read_rename(later.message) is None


def _is_same_command(later: CommandChanges, earlier: CommandChanges) -> bool:
    """Return True if two transactions are steps of one command: a switch, a rename or an import.

    Between two equal switches there must be one back, so equal adjacent messages are one command. An import makes many
    transactions, and adjacent imports are undone together.
    """
    if (later.author, later.message) != (earlier.author, earlier.message):
        return False
    said = later.message
    return bool(read_switch(said) or read_rename(said)) or said == IMPORT


def _invert(
    store: Store, group: CommandChanges, word: str, author: str, *, dry_run: bool
) -> UndoResult:
    said = split_undo(group.message)[1] if word == REDO else group.message
    message = word + said
    moves = _inverse_moves(group)
    before = store.refs.head()
    target = _head_target(store, group, before)

    def edits(refs: RefReader) -> list[RefEdit]:
        made: list[RefEdit] = []
        for name, now, wanted in moves:
            at = refs.read(name)
            if at == now:
                made.append(RefEdit(name, wanted, at))
            elif not name.startswith(TRASH):  # trash may have been emptied
                raise _moved_error(name, said, at)
        made = [edit for edit in made if not _empties_trash(edit, made)]
        made += _keep_edits(store, made)
        if target is not None and before.ref is None and before.oid and not read_switch(said):
            keep = keep_in_trash(NAME, before.oid)  # a commit on a detached HEAD is undone
            made += [] if any(edit.name == keep.name for edit in made) else [keep]
        return made

    if dry_run:
        edits(store.refs)
        return UndoResult(said, group.author, group.time, tuple(moves), before)
    if before.oid is not None:
        store.refs.set_original(before.oid)
    if target is None:
        store.transact(lambda refs: Transaction((), edits(refs), message), author=author)
    elif any(name == before.ref and wanted is None for name, _, wanted in moves):
        # HEAD moves first, so that it never names a deleted branch, even after a crash.
        keep_and_move(store, before, target, message, author)
        store.transact(lambda refs: Transaction((), edits(refs), message), author=author)
    else:
        keep_and_move(store, before, target, message, author, edits)
    renamed = read_rename(message)
    if renamed is not None:
        rename_upstreams(store, *renamed)
    else:
        _restore_upstreams(store, moves)
    _restore_tips(store, group.given_up)  # including those that an undone undo restored
    after = store.refs.head()
    moved = [*moves]
    if target is not None:
        moved.append((NAME, before.oid, after.oid))
    return UndoResult(said, group.author, group.time, tuple(moved), after)


def _restore_tips(store: Store, wanted: Sequence[tuple[str, str]]) -> None:
    """Restore tips of branches that a join or a forced move dropped.

    A seal deletes the files of tips that a join contains. Until they are restored, the trash keeps the join.
    """
    found = [(name, resolve_commit(store, tip)) for name, tip in wanted]
    lost = [(name, tip) for name, tip in found if tip not in store.refs.tips(name)]
    if lost:
        seal(store, fully=True)  # removes the file of the join, which would hide the tips
        store.refs.summary.forget()
        for name, tip in lost:
            store.refs.files.add(name, tip)
        seal(store, fully=True)  # so that the tips do not count as brought by git


def _restore_upstreams(
    store: Store, moves: list[tuple[str, ObjectId | None, ObjectId | None]]
) -> None:
    """Restore the upstreams of restored branches, and move those of deleted ones to the trash."""
    for name, was, now in moves:
        if name.startswith(BRANCHES) and was is None and now is not None:
            move_upstream(store, keep_in_trash(name, now).name, name)
        elif name.startswith(BRANCHES) and was is not None and now is None:
            move_upstream(store, name, keep_in_trash(name, was).name)


def _inverse_moves(group: CommandChanges) -> list[tuple[str, ObjectId | None, ObjectId | None]]:
    """Return (name, required value, new value) of each ref, without duplicates."""
    found: dict[str, tuple[ObjectId | None, ObjectId | None]] = {}
    for name, old, new in group.entries:  # newest first
        now = found[name][0] if name in found else new
        found[name] = (now, old)
    return [(name, *found[name]) for name in sorted(found) if found[name][0] != found[name][1]]


def _empties_trash(edit: RefEdit, edits: list[RefEdit]) -> bool:
    """Return True if an edit deletes a trash ref whose value no other edit restores."""
    return (
        edit.name.startswith(TRASH)
        and edit.new is None
        and all(other.new != edit.expected for other in edits)
    )


def _keep_edits(store: Store, edits: list[RefEdit]) -> list[RefEdit]:
    """Return the edits that keep the current values of moved refs."""
    named = {edit.name for edit in edits}
    given = {edit.new for edit in edits}
    found: dict[str, RefEdit] = {}
    for edit in edits:
        had = edit.expected
        if edit.name.startswith(TRASH) or not isinstance(had, ObjectId) or had in given:
            continue
        keep = keep_in_trash(edit.name, had)
        if keep.name not in named and not is_kept_by(store, had, edit.new):
            found[keep.name] = keep
    return list(found.values())


def _head_target(store: Store, group: CommandChanges, at: Head) -> str | ObjectId | None:
    """Return the new target of HEAD; None if it stays.

    Raises:
        StateError: HEAD has moved since.
    """
    entry = group.head
    if entry is None:
        return None
    switched = read_switch(entry.message)
    if switched is not None:
        left, went = switched
        if _head_name(at) != went:
            raise errors.StateError(f"HEAD is no longer on {went[:100]}")
        return ObjectId.parse(left) if is_full_id(left) else BRANCHES + left
    renamed = read_rename(entry.message)
    if renamed is not None:
        old, new = renamed
        back = old if at.ref == new else new if at.ref == old else None
        return back if back is not None and is_ref_name(back) else None
    if at.ref is not None or at.oid != entry.new or entry.old is None:
        raise errors.StateError("HEAD has moved since")
    return ObjectId(entry.old)


def _head_name(head: Head) -> str:
    return str(head.oid) if head.ref is None else head.ref.removeprefix(BRANCHES)


def _moved_error(name: str, said: str, at: ObjectId | None) -> errors.StateError:
    now = "is gone" if at is None else f"is at {at.short()}"
    return errors.StateError(
        f"{name} has moved since: it {now}, so {said[:80]!r} cannot be undone",
        ref=name,
    )


def move_line(store: Store, message: str, before: ObjectId | None, after: ObjectId | None) -> str:
    """Return a reflog message with short ids; for a commit without a message also its summary.

    Args:
        store: the repository's store.
        message: the message, or "".
        before: the commit that the ref moved from.
        after: the commit that it moved to.
    """
    words = (word[:SHORT] if is_full_id(word) else word for word in message.split(" "))
    shortened = " ".join(words)
    word, said = split_undo(read_join(message)[1])
    oid = before if word == UNDO else after
    if said != "commit" or oid is None:
        return shortened
    try:
        return (
            f"{shortened}: {history.summary.summary(store, read_commit(oid, store.objects.read))}"
        )
    except errors.TraceError:
        return shortened  # missing or corrupt, which other commands report
