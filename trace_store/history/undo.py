"""Undo and redo of the last commands that moved refs.

The reflogs are the only record. All entries of a transaction have the same time; the transactions of one command share
author and message and are adjacent. An import makes many: the first is named `import: FILE`, the others `import`. An
undo is one transaction, and it fails unless each ref is where the command left it. It writes its own reflog message, so
that the next undo can skip commands that are already undone. Commands that move no ref, such as a purge, have a log of
their own and are never undone.

What others did is not undone unasked: other authors, and other processes since this repository was opened. The programs
that Trace itself names as authors, such as an import, belong to everyone.
"""

from __future__ import annotations

from heapq import merge
from itertools import islice, takewhile

from trace_store import errors, history
from trace_store.base.frozen import field, mutable, replace, value
from trace_store.base.oid import ObjectId, is_full_id
from trace_store.contracts import RefEdit
from trace_store.contracts.ref_names import AUTOMATIC, BRANCHES, TRASH, is_ref_name
from trace_store.history.branch_state import move_upstream, rename_upstreams
from trace_store.history.trash_refs import is_kept_by, keep_in_trash
from trace_store.maintenance.seal import seal
from trace_store.refs.head import NAME, Head
from trace_store.refs.reflog import (
    GIT,
    IMPORT,
    REDO,
    UNDO,
    ReflogEntry,
    read_join,
    read_rename,
    read_switch,
    split_undo,
)
from trace_store.store.reflogs import all_logs, logged_commands
from trace_store.store.revision import resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trace_store.base.ident import Time
    from trace_store.contracts.protocols import RefReader
    from trace_store.store.store import Store
    from trace_store.writer import Writer

_PROGRAMS = frozenset((IMPORT, "bundle", "trace/repair", "trace fsck --repair"))
"""Authors of reflog entries that are no person."""


@value
class LoggedOperation:
    """One command that changed the repository.

    Attributes:
        number: its number for `undo_to`; None if it is not numbered, because it cannot be undone or is of others.
        message: its reflog message.
        author: who ran it.
        time: when, in milliseconds since the epoch.
        moves: (name, old value, new value) of each ref that it moved, including HEAD.
        can_be_undone: whether it moved refs.
        summary: one line about it.
    """

    JSON = "moves:ref,before,now"

    number: int | None
    message: str
    author: str
    time: Time
    moves: tuple[tuple[str, ObjectId | None, ObjectId | None], ...]
    can_be_undone: bool
    summary: str


@value
class UndoResult:
    """The result of an undo or redo.

    Attributes:
        message: the reflog message of the command.
        author: the user who ran it.
        time: when, in milliseconds since the epoch.
        moves: (name, old value, new value) of each ref that the undo moved, including HEAD.
        head: the new HEAD.
        summary: one line about the command.
        others: number of newer commands of others, which were passed over.
    """

    JSON = "moves:ref,before,now ref=head.ref commit=head.oid"

    message: str
    author: str
    time: Time
    moves: tuple[tuple[str, ObjectId | None, ObjectId | None], ...]
    head: Head
    summary: str
    others: int = 0


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

    @property
    def moves_refs(self) -> bool:
        """Whether it moved a ref or HEAD; if not, it cannot be undone."""
        return bool(self.entries) or self.head is not None


def undo(
    writer: Writer, *, ref: str = "", everyone: bool = False, dry_run: bool = False
) -> UndoResult:
    """Undo the last command that moved a ref or HEAD; repeated calls go further back.

    Args:
        writer: the repository.
        ref: the full name of a branch: undo the last command that moved it; "" is the last command of all.
        everyone: also undo commands of others.
        dry_run: change nothing.

    Raises:
        StateError: there is nothing to undo, the last command cannot be undone, or a ref has moved since.
    """
    store = writer.store
    last = next((each for each in _history(store) if everyone or _is_own(writer, each)), None)
    group = next(_undoable(writer, everyone=everyone, ref=ref), None)
    if not ref and last is not None and not last.moves_refs:
        raise _irreversible(writer, last, group)
    if group is None:
        raise _nothing(writer, everyone=everyone, ref=ref)
    newer = takewhile(
        lambda each: each.time > group.time, _undoable(writer, everyone=True, ref=ref)
    )
    others = sum(not _is_own(writer, each) for each in newer) if not everyone else 0
    return replace(_invert(writer, group, UNDO, dry_run=dry_run), others=others)


def undo_to(
    writer: Writer, number: int, *, everyone: bool = False, dry_run: bool = False
) -> list[UndoResult]:
    """Undo the operations 1 to `number`, as `operations` numbers them; if one cannot be undone, none is.

    Raises:
        InvalidInputError: there is no such operation.
        StateError: there is nothing to undo, or a ref or HEAD has moved since.
    """
    wanted = [*islice(_undoable(writer, everyone=everyone), number)]
    if not wanted:
        raise _nothing(writer, everyone=everyone)
    if len(wanted) < number:
        raise errors.InvalidInputError(
            f"only {len(wanted)} can be undone, not {number}", argument="number"
        )
    planned = _rehearse(writer, wanted)
    if dry_run:
        return planned
    return [_invert(writer, group, UNDO, dry_run=False) for group in wanted]


def redo(writer: Writer, *, everyone: bool = False, dry_run: bool = False) -> UndoResult:
    """Redo what was undone last, unless another command has moved a ref since; arguments as in `undo`.

    Raises:
        StateError: there is nothing to redo, or a ref has moved since.
    """
    group = _last_undone(writer, everyone=everyone)
    return _invert(writer, group, REDO, dry_run=dry_run)


def operations(writer: Writer, *, everyone: bool = False) -> Iterator[LoggedOperation]:
    """Yield the commands that are not undone, newest first, with the numbers that `undo_to` takes."""
    number = 0
    for group in _standing(writer.store):
        counts = group.moves_refs and (everyone or _is_own(writer, group))
        number += counts
        moves = _moves(group)
        yield LoggedOperation(
            number if counts else None,
            group.message,
            group.author,
            group.time,
            tuple(moves),
            group.moves_refs,
            _summary(writer, group.message, moves),
        )


def _undoable(writer: Writer, *, everyone: bool, ref: str = "") -> Iterator[CommandChanges]:
    """Yield the commands that can be undone, newest first; with `ref`, those that moved it."""
    for group in _standing(writer.store):
        if ref and all(name != ref for name, _, _ in group.entries):
            continue
        if group.moves_refs and (everyone or _is_own(writer, group)):
            yield group


def _is_own(writer: Writer, group: CommandChanges) -> bool:
    """Return True if a command is the user's own, as the module says."""
    is_authors = group.author == writer.author or group.author in _PROGRAMS
    return is_authors and not writer.store.refs.times.is_from_elsewhere(group.time)


def _irreversible(
    writer: Writer, last: CommandChanges, before: CommandChanges | None
) -> errors.StateError:
    then = "nothing" if before is None else _summary(writer, before.message, _moves(before))
    return errors.StateError(
        f"the last operation cannot be undone ({last.message[:80]}); the one before it: {then}",
        code=errors.ErrorCode.CANNOT_UNDO,
    )


def _nothing(writer: Writer, *, everyone: bool, ref: str = "") -> errors.StateError:
    others = None if everyone else next(_undoable(writer, everyone=True, ref=ref), None)
    said = f" on {ref.removeprefix(BRANCHES)}" if ref else ""
    if others is not None:
        line = _summary(writer, others.message, _moves(others))
        said += f"; the last operation of others, by {others.author[:80]}: {line}"
    return errors.StateError(f"nothing to undo{said}", code=errors.ErrorCode.NOTHING_TO_UNDO)


def _summary(
    writer: Writer,
    message: str,
    moves: Sequence[tuple[str, ObjectId | None, ObjectId | None]],
) -> str:
    """Return a line about a command, given what it moved."""
    current = writer.store.refs.head().ref
    ends = [move for move in moves if move[0].startswith(BRANCHES) or move[0] == NAME]
    ends.sort(key=lambda move: (move[0] != current, move[0] == NAME))
    _, before, after = ends[0] if ends else ("", None, None)
    branches = history.branches.Branches(writer)
    return branches.move_line(message, before, after) or "moved"


def commands(store: Store) -> Iterator[CommandChanges]:
    """Yield the changes of each command to refs and HEAD, newest first, without changes made by git."""
    waiting: CommandChanges | None = None
    for group in _transactions(store):
        if waiting is None or _completes_import(waiting, group):
            waiting = group
        elif group.message == waiting.message == IMPORT and _only_attaches_head(group):
            continue  # a step of the same import, or of one before imports had names
        elif _is_same_command(waiting, group):
            waiting.entries += group.entries
            waiting.given_up += group.given_up
            waiting.head = waiting.head or group.head
            waiting.message = group.message
        else:
            yield waiting
            waiting = group
    if waiting is not None:
        yield waiting


def _history(store: Store) -> Iterator[CommandChanges]:
    """Yield the changes of each command, and the commands that moved no ref, newest first."""
    logged = (
        CommandChanges(each.time, each.author, each.message, [], None)
        for each in logged_commands(store)
    )
    return merge(commands(store), logged, key=lambda group: group.time, reverse=True)


def _standing(store: Store) -> Iterator[CommandChanges]:
    """Yield the commands that are neither an undo or redo, nor undone, newest first."""
    undone: list[CommandChanges] = []
    redone: list[CommandChanges] = []
    for group in _history(store):
        word = split_undo(group.message)[0]
        if word == REDO:
            redone.append(group)
        elif word == UNDO:
            if not _take(redone, _is_redo_of, group):
                undone.append(group)
        elif not _take(undone, _is_undo_of, group):
            yield group


def _take(
    others: list[CommandChanges],
    fits: Callable[[CommandChanges, CommandChanges], bool],
    group: CommandChanges,
) -> bool:
    """Remove the last of some commands that fits another one; return False without one."""
    at = next((n for n in reversed(range(len(others))) if fits(others[n], group)), None)
    if at is not None:
        del others[at]
    return at is not None


def _is_redo_of(redo: CommandChanges, undo: CommandChanges) -> bool:
    return split_undo(redo.message)[1] == split_undo(undo.message)[1] and _inverts(redo, undo)


def _is_undo_of(undo: CommandChanges, group: CommandChanges) -> bool:
    return split_undo(undo.message)[1] == group.message and _inverts(undo, group)


def _inverts(later: CommandChanges, group: CommandChanges) -> bool:
    """Return True if a command moved each ref back; the trash may differ."""
    moves = {move for move in _inverse_moves(group) if not move[0].startswith(TRASH)}
    return moves <= set(_forward(later))


def _last_undone(writer: Writer, *, everyone: bool) -> CommandChanges:
    """Return the last undo that was not redone, if no other command moved a ref since."""
    redone: list[CommandChanges] = []
    for group in commands(writer.store):
        if not (everyone or _is_own(writer, group)):
            continue
        word = split_undo(group.message)[0]
        if word == REDO:
            redone.append(group)
        elif word != UNDO:
            break
        elif not _take(redone, _is_redo_of, group):
            return group
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
    is_step = later.message == earlier.message or _continues_import(later, earlier)
    return is_step and _only_attaches_head(later)


def _continues_import(later: CommandChanges, earlier: CommandChanges) -> bool:
    """Return True if the later group is a step of an import after its first one."""
    return later.message == IMPORT and (
        earlier.message == IMPORT or earlier.message.startswith(f"{IMPORT}: ")
    )


def _only_attaches_head(group: CommandChanges) -> bool:
    """Return True if a group only put HEAD, which had no commit, on a branch."""
    head = group.head
    if head is None or head.old is not None or group.entries:
        return False
    return read_switch(group.message) is None and read_rename(group.message) is None


def _is_same_command(later: CommandChanges, earlier: CommandChanges) -> bool:
    """Return True if two transactions are steps of one command: a switch, a rename or an import.

    Between two equal switches there must be one back, so equal adjacent messages are one command.
    """
    if later.author != earlier.author:
        return False
    said = later.message
    is_move = said == earlier.message and bool(read_switch(said) or read_rename(said))
    return is_move or _continues_import(later, earlier)


def _rehearse(writer: Writer, groups: Sequence[CommandChanges]) -> list[UndoResult]:
    """Return what undoing commands, newest first, would do.

    Raises:
        StateError: a ref or HEAD has moved since.
    """
    store, at = writer.store, writer.store.refs.head()
    values: dict[str, ObjectId | None] = {}
    found: list[UndoResult] = []
    for group in groups:
        moves = _inverse_moves(group)
        target = _head_target(store, group, at)
        for name, now, wanted in moves:
            value = values[name] if name in values else store.refs.read(name)
            if value != now and not name.startswith(TRASH):
                raise _moved_error(name, group.message, value)
            values[name] = wanted
        ref = target if isinstance(target, str) else at.ref if target is None else None
        if ref is None:
            at = Head(None, at.oid if target is None else target)  # type: ignore[arg-type]
        else:
            at = Head(ref, values[ref] if ref in values else store.refs.read(ref))
        summary = _summary(writer, group.message, _moves(group))
        found.append(UndoResult(group.message, group.author, group.time, tuple(moves), at, summary))
    return found


def _invert(writer: Writer, group: CommandChanges, word: str, *, dry_run: bool) -> UndoResult:
    store = writer.store
    said = split_undo(group.message)[1] if word == REDO else group.message
    message = word + said
    moves = _inverse_moves(group)
    before = store.refs.head()
    target = _head_target(store, group, before)
    done = [(name, new, old) for name, old, new in _moves(group)] if word == REDO else _moves(group)
    summary = _summary(writer, said, done)

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
        return UndoResult(said, group.author, group.time, tuple(moves), before, summary)
    _write_inverse(writer, moves, before, target, edits, message)
    _restore_tips(store, group.given_up)  # including those that an undone undo restored
    after = store.refs.head()
    moved = [*moves]
    if target is not None:
        moved.append((NAME, before.oid, after.oid))
    return UndoResult(said, group.author, group.time, tuple(moved), after, summary)


def _write_inverse(
    writer: Writer,
    moves: list[tuple[str, ObjectId | None, ObjectId | None]],
    before: Head,
    target: str | ObjectId | None,
    edits: Callable[[RefReader], list[RefEdit]],
    message: str,
) -> None:
    """Move refs and HEAD back, with the upstreams of the branches."""
    store = writer.store
    detached = [NAME] if target is not None and before.ref is None else []
    change = writer.begin("undo", *(name for name, _, _ in moves), *detached)
    if before.oid is not None:
        store.refs.set_original(before.oid)
    if target is None:
        change.write(edits, message)
    elif any(name == before.ref and wanted is None for name, _, wanted in moves):
        # HEAD moves first, so that it never names a deleted branch, even after a crash.
        change.move_head(before, target, message)
        change.write(edits, message)
    else:
        change.move_head(before, target, message, edits)
    renamed = read_rename(message)
    if renamed is not None:
        rename_upstreams(store, *renamed)
    else:
        _restore_upstreams(store, moves)


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


def _forward(group: CommandChanges) -> list[tuple[str, ObjectId | None, ObjectId | None]]:
    """Return (name, old value, new value) of each ref that a command moved, without duplicates."""
    return [(name, wanted, now) for name, now, wanted in _inverse_moves(group)]


def _moves(group: CommandChanges) -> list[tuple[str, ObjectId | None, ObjectId | None]]:
    """Return (name, old value, new value) of each ref that a command moved, and of HEAD."""
    head = [] if group.head is None else [(NAME, group.head.old, group.head.new)]
    return [*_forward(group), *head]


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
