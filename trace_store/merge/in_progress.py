"""What stopped half-way, and waits for somebody to settle it.

Rule: one local file holds the inputs (what was asked for, where the branch stood) and the settlements given so far, and
nothing else. What is to be done is computed from these each time, and no ref, object or journal is touched before all
is settled; so to abort is to remove the file.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.files import read_file, replace_file
from trace_store.frozen import field, mutable, replace
from trace_store.merge.conflicts import Settlement
from trace_store.oid import ObjectId
from trace_store.refs.names import BRANCHES
from trace_store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from trace_store.merge.conflicts import Conflict
    from trace_store.store.handle import Store

MAXIMUM_BYTES = 64 * 1024 * 1024
MERGE, CHERRY_PICK, REVERT, REBASE = "merge", "cherry-pick", "revert", "rebase"
WORDS = {MERGE: "merge", CHERRY_PICK: "pick", REVERT: "revert", REBASE: "rebase"}

_INPUTS = {
    MERGE: (
        *("fast_forward", "favour", "joins", "message", "name", "squash", "strategy", "theirs"),
        "unrelated",
    ),
    CHERRY_PICK: ("name", "onto", "steps"),
    REVERT: ("commits", "favour", "message"),
    REBASE: ("drop_pinned", "elsewhere", "name", "onto", "reordered", "steps"),
}
"""What each kind asks for."""


@mutable
class Stop:
    """An operation that waits.

    Attributes:
        kind: MERGE, CHERRY_PICK, REVERT or REBASE.
        ref: full name of the branch; HEAD for a revert where that is detached.
        before: where that stood; None when it had no commit.
        inputs: what was asked for, as JSON.
        settlements: how conflicts were settled so far, by their keys.
        skipped: steps to leave out.
        number: of the step that it stopped at, counted from 0.
        met: the keys of conflicts that somebody was or is to settle, in the order in which they were met.
        tip: what it is about to move the branch to; None before that.
        file: what the file held that it was read from; nothing when it begins.
    """

    kind: str
    ref: str
    before: ObjectId | None
    inputs: dict[str, Any]
    settlements: dict[str, Settlement]
    skipped: list[int]
    number: int = 0
    met: list[str] = field(default_factory=list)
    tip: ObjectId | None = None
    file: bytes = b""

    @property
    def said(self) -> str:
        """What it is, in words: `a merge of idea into main`."""
        branch = self.ref.removeprefix(BRANCHES)
        name = str(self.inputs.get("name", ""))[:80]
        words = {
            MERGE: f"a merge of {name} into {branch}",
            CHERRY_PICK: f"a pick of {name} onto {branch}",
            REVERT: f"a revert on {branch}",
        }
        return words.get(self.kind, f"a rebase of {branch}")

    def numbered(self, found: Iterable[Conflict]) -> tuple[Conflict, ...]:
        """Return conflicts with their numbers, which they keep until all is done."""
        numbers = {key: number for number, key in enumerate(self.met, 1)}
        made = []
        for each in found:
            number = numbers.setdefault(each.key, len(numbers) + 1)
            made.append(replace(each, number=number))
        self.met = list(numbers)
        return tuple(made)

    def by_hand(self, settled: Iterable[Conflict]) -> tuple[Conflict, ...]:
        """Return conflicts that were settled; those that somebody settled one by one have numbers."""
        numbered = {
            c.key: c for c in self.numbered(c for c in settled if c.key in self.settlements)
        }
        return tuple(numbered.get(each.key, each) for each in settled)


def stop_file(store: Store) -> str:
    """Return the path of the file."""
    return store.layout.stopped_file


def read_stop(store: Store) -> Stop | None:
    """Return what waits in a repository, or None.

    Raises:
        FormatError: the file is not readable; `--abort` removes it.
    """
    if not store.local:
        return None
    path = store.layout.stopped_file
    data = read_file(store.disk, path, limit=MAXIMUM_BYTES)
    if data is None:
        return None
    import json  # few commands find something that waits, and it takes long to load

    try:
        fields = json.loads(data)
        before = fields["before"]
        missing = [key for key in _INPUTS[fields["kind"]] if key not in fields["inputs"]]
        if missing:
            raise ValueError(missing)
        return Stop(
            str(fields["kind"]),
            str(fields["ref"]),
            None if before is None else ObjectId.parse(before),
            dict(fields["inputs"]),
            {key: Settlement(*said) for key, said in fields["settlements"].items()},
            [int(number) for number in fields["skipped"]],
            int(fields["number"]),
            [str(key) for key in fields.get("met", ())],
            ObjectId.parse(fields["tip"]) if fields.get("tip") else None,
            data,
        )
    except (ValueError, KeyError, TypeError, AttributeError, errors.InvalidInputError) as error:
        raise errors.FormatError(
            f"not readable: {path}", path=path, code=errors.ErrorCode.IN_PROGRESS
        ) from error


def write_stop(store: Store, stop: Stop, instead_of: bytes | None = None) -> None:
    """Write down what waits. A repository in memory keeps nothing of it: whoever asks again says how to settle it.

    Args:
        store: the repository.
        stop: what waits.
        instead_of: what the file holds, as far as the caller knows; None overwrites whatever it holds.

    Raises:
        StateError: it is gone by now.
        ConcurrencyError: it holds something else by now.
        StorageError: the disk refuses.
    """
    if not store.local:
        return
    if instead_of is None:
        stop.tip = None  # it stops, whatever was about to be written before
    import json  # as above

    fields = {
        "before": None if stop.before is None else str(stop.before),
        "inputs": stop.inputs,
        "kind": stop.kind,
        "met": stop.met,
        "number": stop.number,
        "ref": stop.ref,
        "settlements": {
            key: [said.choice, said.text, said.about]
            for key, said in sorted(stop.settlements.items())
        },
        "skipped": stop.skipped,
        **({"tip": str(stop.tip)} if stop.tip is not None else {}),
    }
    data = json.dumps(fields, indent=1, sort_keys=True).encode() + b"\n"
    path, scratch = store.layout.stopped_file, store.layout.tmp_dir

    def write(_: object) -> None:
        held = None if instead_of is None else read_file(store.disk, path)
        if instead_of and held is None:
            raise _nothing_waits(
                "it is not in progress any more: somebody else went on with it, or gave it up"
            )
        if instead_of is not None and (held or b"") != instead_of:
            raise errors.ConcurrencyError(f"somebody else wrote it meanwhile: {path}", path=path)
        replace_file(store.disk, path, data, scratch=scratch)
        stop.file = data

    store.transact(write)  # under the lock of the journal, so that nobody else writes it meanwhile


def on_branch(store: Store, stop: Stop) -> Store:
    """Return a store whose HEAD is the branch that an operation began on, whatever is checked out by now.

    Raises:
        RefChangedError: the branch is gone.
    """
    if not stop.ref.startswith("refs/"):
        return store  # it began on a detached HEAD
    if stop.before is not None and store.refs.read(stop.ref) is None:
        raise errors.RefChangedError(
            f"there is no {stop.ref} any more: {stop.said} cannot go on",
            hint="`trace branch NAME ORIG_HEAD` or `trace undo` brings it back; --abort gives it up",
            ref=stop.ref,
            expected=stop.before,
        )
    return store.on(stop.ref)


def note_tip(store: Store, stop: Stop, tip: ObjectId) -> None:
    """Write down what the branch is about to be moved to, by something that has stopped before.

    Raises:
        StateError: somebody else went on with it, or gave it up.
        ConcurrencyError: somebody else settled something meanwhile.
    """
    if stop.file:
        stop.tip = tip
        write_stop(store, stop, stop.file)


def is_written(store: Store, stop: Stop) -> bool:
    """Tell whether the branch was moved by now, and only the file is left, since somebody was cut off."""
    now = store.refs.read(stop.ref) if stop.ref.startswith("refs/") else store.refs.head().oid
    if stop.tip is None or now is None or not store.objects.contains(stop.tip):
        return False
    is_ancestor = commits_of(store).is_ancestor
    if stop.before is not None and is_ancestor(stop.tip, stop.before):
        return now == stop.tip  # a rebase left out what came after it
    return is_ancestor(stop.tip, now)


def clear_stop(store: Store) -> None:
    """Forget what waits; nothing was written that would have to be taken back."""

    def remove(_: object) -> None:
        store.disk.remove(store.layout.stopped_file)

    if store.local:
        store.transact(
            remove
        )  # under the lock, so that nobody who settles a conflict brings it back


def required_stop(store: Store, kind: str = "") -> Stop:
    """Return what waits.

    Raises:
        StateError: nothing waits, or something of another kind.
    """
    found = read_stop(store)
    if found is None or (kind and found.kind != kind):
        what = WORDS.get(kind, "merge, pick, revert or rebase")
        also = "" if found is None else f", but a {WORDS[found.kind]} is"
        waiting = "" if found is None else found.kind
        raise _nothing_waits(f"no {what} is in progress{also}", kind=kind, waiting=waiting)
    return found


def _nothing_waits(message: str, **data: str) -> errors.StateError:
    return errors.StateError(message, code=errors.ErrorCode.NOTHING_IN_PROGRESS, **data)


def refuse_while_stopped(store: Store, refs: Collection[str] = ()) -> None:
    """Raise StateError when something waits already; with refs, when it is one of these that it waits to move."""
    found = read_stop(store)
    if found is not None and (not refs or found.ref in refs):
        raise errors.StateError(
            f"{found.said} is in progress",
            code=errors.ErrorCode.IN_PROGRESS,
            ref=found.ref,
            kind=found.kind,
        )
