"""Undo and redo: the last command that moved a ref is taken back, and taken up again.

Rule: what was done is read from the reflogs, so there is no other record to go wrong. Each transaction has a time of
its own, which all its entries have; those of a command with several steps share author and message, and nothing was
between them. What is taken back is done in one transaction, or not at all: each ref has to be where the command left
it. Taking back is a command as well, which says so in the reflogs: that is how the next one knows what is taken back
already.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import field, mutable, value
from trace_store.history.branches import move_upstream, rename_upstreams
from trace_store.history.reflog import all_logs
from trace_store.history.switch import keep_and_move
from trace_store.history.trash import is_kept_by, keeping
from trace_store.maintenance.seal import seal
from trace_store.oid import ObjectId, is_full_id
from trace_store.ref_names import is_ref_name
from trace_store.refs.database import RefDatabase
from trace_store.refs.head import NAME, Head
from trace_store.refs.log_messages import (
    REDO,
    UNDO,
    read_join,
    read_rename,
    read_switch,
    without_word,
)
from trace_store.refs.names import BRANCHES, TRASH
from trace_store.refs.reflog import GIT, ReflogEntry
from trace_store.revision import resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.contracts import RefReader
    from trace_store.store.handle import Store

IMPORT = "import"


@value
class Undone:
    """What was taken back, or taken up again.

    Attributes:
        message: what the reflogs say of the command.
        author: who had run it.
        time: when, in milliseconds.
        moves: (name, value before, value now) of each ref that was moved; HEAD is one when it went elsewhere.
        head: where HEAD is.
    """

    message: str
    author: str
    time: int
    moves: tuple[tuple[str, ObjectId | None, ObjectId | None], ...]
    head: Head


@mutable
class Group:
    """What one command did.

    Attributes:
        entries: (name, old, new) of each ref that it moved, newest first.
        head: the entry of HEAD's log that says that HEAD went to another branch, or moved without one; or None.
        given_up: (name, id or its beginning) of each other tip that it took from a diverged branch.
    """

    time: int
    author: str
    message: str
    entries: list[tuple[str, ObjectId | None, ObjectId | None]]
    head: ReflogEntry | None
    given_up: list[tuple[str, str]] = field(default_factory=list)


def undo(store: Store, *, author: str, dry_run: bool = False) -> Undone:
    """Take the last command back that moved a ref, or HEAD; another call takes the one before it back.

    With `dry_run` nothing is changed.

    Raises:
        StateError: there is none, or a ref is not where it left it.
    """
    return _invert(store, _last(store), UNDO, author, dry_run=dry_run)


def redo(store: Store, *, author: str, dry_run: bool = False) -> Undone:
    """Do again what was taken back last, unless another command has moved a ref since.

    Raises:
        StateError: nothing was taken back, or a ref is not where it was left.
    """
    return _invert(store, _last_undone(store), REDO, author, dry_run=dry_run)


def commands(store: Store) -> Iterator[Group]:
    """Yield what commands did to refs and HEAD, the last one first; what git did to them is none of these."""
    waiting: Group | None = None
    for group in _transactions(store):
        if waiting is None or _attaches(waiting, group):
            waiting = group
        elif _belong_together(waiting, group):
            waiting.entries += group.entries
            waiting.given_up += group.given_up
            waiting.head = waiting.head or group.head
        else:
            yield waiting
            waiting = group
    if waiting is not None:
        yield waiting


def _last(store: Store) -> Group:
    """Return the last command that is neither taken back nor itself a taking back."""
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
    raise errors.StateError("there is nothing to undo", code=errors.ErrorCode.NOTHING_TO_UNDO)


def _last_undone(store: Store) -> Group:
    """Return the last taking back that was not taken up again, with no other command since."""
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
    raise errors.StateError("there is nothing to redo", code=errors.ErrorCode.NOTHING_TO_REDO)


def _transactions(store: Store) -> Iterator[Group]:
    """Yield what each transaction did, and each move of HEAD alone, the last first.

    Each has a time of its own (`RisingClock`), and all that it did has that time.
    """
    logs = all_logs(store)
    heads: dict[str, ReflogEntry] = {}
    for name, entries in logs.items():
        _advance(heads, name, entries)
    while heads:
        newest = max(heads.values(), key=lambda entry: entry.time)
        joined, said = read_join(newest.message)
        group = Group(newest.time, newest.author, said, [], None)
        for name in [n for n, entry in heads.items() if entry.time == newest.time]:
            entry, tips = heads[name], set[ObjectId | None]()
            while name in heads and heads[name].time == newest.time:
                tips |= {heads[name].old, heads[name].new}
                _advance(heads, name, logs[name])
            if name.startswith(BRANCHES):
                # Before its last step it gave up other tips of its own, and came back from them.
                given_up = map(str, filter(None, tips - {entry.old, entry.new}))
                group.given_up += [(name, tip) for tip in (*given_up, *joined)]
            if name == NAME:
                group.head = entry
            else:
                group.entries.append((name, entry.old, entry.new))
        if group.head is not None and read_switch(group.message) is None:
            pair = (group.head.old, group.head.new)
            if any((old, new) == pair for _, old, new in group.entries):
                group.head = None  # it tells of the branch that HEAD is on
        if newest.author != GIT:
            yield group


def _advance(heads: dict[str, ReflogEntry], name: str, entries: Iterator[ReflogEntry]) -> None:
    entry = next(entries, None)
    if entry is None:
        heads.pop(name, None)
    else:
        heads[name] = entry


def _attaches(later: Group, earlier: Group) -> bool:
    """Tell whether a command, an import, only put a HEAD without a commit on the branch that it had made."""
    head = later.head
    if head is None or head.old is not None or later.entries or later.message != earlier.message:
        return False
    return read_switch(later.message) is None and read_rename(later.message) is None


def _belong_together(later: Group, earlier: Group) -> bool:
    """Tell whether two transactions are steps of one command: going somewhere, or renaming.

    Whoever goes from A to B twice goes back in between, so that the same words twice are one command. An import makes
    many transactions, and one that follows another is taken back with it.
    """
    if (later.author, later.message) != (earlier.author, earlier.message):
        return False
    said = later.message
    return bool(read_switch(said) or read_rename(said)) or said == IMPORT


def _invert(store: Store, group: Group, word: str, author: str, *, dry_run: bool) -> Undone:
    said = without_word(group.message)[1] if word == REDO else group.message
    message = word + said
    moves = _inverse(group)
    before = store.refs.head()
    target = _head_target(store, group, before)

    def edits(refs: RefReader) -> list[RefEdit]:
        made: list[RefEdit] = []
        for name, now, wanted in moves:
            at = refs.read(name)
            if at == now:
                made.append(RefEdit(name, wanted, at))
            elif not name.startswith(TRASH):  # else it was emptied, or is kept otherwise
                raise _moved_since(name, said, at)
        made = [edit for edit in made if not _empties_trash(edit, made)]
        made += _kept(store, made)
        if target is not None and before.ref is None and before.oid and not read_switch(said):
            keep = keeping(NAME, before.oid)  # a commit without a branch is taken back
            made += [] if any(edit.name == keep.name for edit in made) else [keep]
        return made

    if dry_run:
        edits(store.refs)
        return Undone(said, group.author, group.time, tuple(moves), before)
    if before.oid is not None:
        store.refs.set_original(before.oid)
    if target is None:
        store.transact(lambda refs: Transaction((), edits(refs), message), author=author)
    elif any(name == before.ref and wanted is None for name, _, wanted in moves):
        # HEAD is never on a branch that goes, wherever this is cut short.
        keep_and_move(store, before, target, message, author)
        store.transact(lambda refs: Transaction((), edits(refs), message), author=author)
    else:
        keep_and_move(store, before, target, message, author, edits)
    renamed = read_rename(message)
    if renamed is not None and store.local:
        rename_upstreams(store, *renamed)
    elif store.local:
        _follow_upstreams(store, moves)
    _part_tips(store, group.given_up)  # also those that were taken up by taking something back
    after = store.refs.head()
    told = [*moves]
    if target is not None:
        told.append((NAME, before.oid, after.oid))
    return Undone(said, group.author, group.time, tuple(told), after)


def _part_tips(store: Store, wanted: Sequence[tuple[str, str]]) -> None:
    """Give branches other tips back that were joined or given up, beside the one that each went back to.

    A seal takes away the files of tips that a join has in its past; until they are here again the trash keeps the join.
    """
    if not isinstance(store.refs, RefDatabase):
        return
    found = [(name, resolve_commit(store, tip)) for name, tip in wanted]
    lost = [(name, tip) for name, tip in found if tip not in store.refs.tips(name)]
    if lost:
        seal(store, fully=True)  # the join's own file goes, which would hide them
        store.refs.overview.forget()
        for name, tip in lost:
            store.refs.files.add(name, tip)
        seal(store, fully=True)  # so that nobody says that git brought them


def _follow_upstreams(
    store: Store, moves: list[tuple[str, ObjectId | None, ObjectId | None]]
) -> None:
    """Bring back the upstreams of branches that are there again, and put those of branches that went aside."""
    for name, was, now in moves:
        if name.startswith(BRANCHES) and was is None and now is not None:
            move_upstream(store, keeping(name, now).name, name)
        elif name.startswith(BRANCHES) and was is not None and now is None:
            move_upstream(store, name, keeping(name, was).name)


def _inverse(group: Group) -> list[tuple[str, ObjectId | None, ObjectId | None]]:
    """Return (name, value that it has to have, value that it is given) of each ref, once."""
    found: dict[str, tuple[ObjectId | None, ObjectId | None]] = {}
    for name, old, new in group.entries:  # newest first
        now = found[name][0] if name in found else new
        found[name] = (now, old)
    return [(name, *found[name]) for name in sorted(found) if found[name][0] != found[name][1]]


def _empties_trash(edit: RefEdit, edits: list[RefEdit]) -> bool:
    """Tell whether an edit takes away what keeps a value that no ref is given back, as of a tip of a diverged ref."""
    return (
        edit.name.startswith(TRASH)
        and edit.new is None
        and all(other.new != edit.expected for other in edits)
    )


def _kept(store: Store, edits: list[RefEdit]) -> list[RefEdit]:
    """Return the edits that keep what refs are moved away from."""
    named = {edit.name for edit in edits}
    given = {edit.new for edit in edits}
    found: dict[str, RefEdit] = {}
    for edit in edits:
        had = edit.expected
        if edit.name.startswith(TRASH) or not isinstance(had, ObjectId) or had in given:
            continue
        keep = keeping(edit.name, had)
        if keep.name not in named and not is_kept_by(store, had, edit.new):
            found[keep.name] = keep
    return list(found.values())


def _head_target(store: Store, group: Group, at: Head) -> str | ObjectId | None:
    """Return where HEAD has to go; None when it stays.

    Raises:
        StateError: HEAD is not where the command left it.
    """
    entry = group.head
    if entry is None:
        return None
    switched = read_switch(entry.message)
    if switched is not None:
        left, went = switched
        if _named(at) != went:
            raise errors.StateError(f"HEAD has gone from {went[:100]} since")
        return ObjectId.parse(left) if is_full_id(left) else BRANCHES + left
    renamed = read_rename(entry.message)
    if renamed is not None:
        old, new = renamed
        back = old if at.ref == new else new if at.ref == old else None
        return back if back is not None and is_ref_name(back) else None
    if at.ref is not None or at.oid != entry.new or entry.old is None:
        raise errors.StateError("HEAD is not where the command left it")
    return ObjectId(entry.old)


def _named(head: Head) -> str:
    return str(head.oid) if head.ref is None else head.ref.removeprefix(BRANCHES)


def _moved_since(name: str, said: str, at: ObjectId | None) -> errors.StateError:
    now = "is gone" if at is None else f"is at {at.short()}"
    return errors.StateError(
        f"{name} has been moved since by something else: it {now}, so that {said[:80]!r} cannot be taken back",
        ref=name,
    )
