"""Operations in progress: a stopped merge, pick, revert or rebase, at most one for each branch.

A local file of the branch holds the inputs (the request and the branch's tip) and the resolutions so far. Everything
else is computed from them, and no ref, object or journal changes before all conflicts are resolved. So abort only
removes the file.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.base.frozen import field, mutable, replace
from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import BRANCHES
from trace_store.disk.files import read_file, replace_file
from trace_store.disk.layout import is_stopped_file, ref_of_stopped_file
from trace_store.merge.conflicts import Resolution
from trace_store.refs.head import NAME
from trace_store.store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from trace_store.merge.conflicts import Conflict
    from trace_store.store.store import Store

MAXIMUM_BYTES = 64 * 1024 * 1024
MERGE, CHERRY_PICK, REVERT, REBASE = "merge", "cherry-pick", "revert", "rebase"
WORDS = {MERGE: "merge", CHERRY_PICK: "pick", REVERT: "revert", REBASE: "rebase"}

_INPUTS = {
    MERGE: (
        *("fast_forward", "favour", "joins", "message", "name", "squash", "strategy", "theirs"),
        "unrelated",
    ),
    CHERRY_PICK: ("name", "onto", "steps"),
    REVERT: ("name", "onto", "steps"),
    REBASE: ("drop_pinned", "elsewhere", "name", "onto", "reordered", "steps"),
}
"""The required inputs of each kind."""


@mutable
class Stop:
    """A stopped operation.

    Attributes:
        kind: MERGE, CHERRY_PICK, REVERT or REBASE.
        ref: full name of the branch; HEAD for a revert on a detached HEAD.
        before: its tip at the start; None without a commit.
        inputs: the request, as JSON.
        resolutions: resolutions so far, by conflict key.
        skipped: numbers of steps to skip.
        number: number of the step that it stopped at, from 0.
        met: keys of all conflicts that need or needed a resolution by hand, in order.
        tip: the commit that the branch is about to move to; None before that.
        file: the content of the file that it was read from; empty for a new operation.
    """

    kind: str
    ref: str
    before: ObjectId | None
    inputs: dict[str, Any]
    resolutions: dict[str, Resolution]
    skipped: list[int]
    number: int = 0
    met: list[str] = field(default_factory=list)
    tip: ObjectId | None = None
    file: bytes = b""

    @property
    def said(self) -> str:
        """A description, such as `a merge of idea into main`."""
        branch = self.ref.removeprefix(BRANCHES)
        name = str(self.inputs.get("name", ""))[:80]
        words = {
            MERGE: f"a merge of {name} into {branch}",
            CHERRY_PICK: f"a pick of {name} onto {branch}",
            REVERT: f"a revert on {branch}",
        }
        return words.get(self.kind, f"a rebase of {branch}")

    def numbered(self, found: Iterable[Conflict]) -> tuple[Conflict, ...]:
        """Return conflicts with their numbers, which stay the same until the operation ends."""
        numbers = {key: number for number, key in enumerate(self.met, 1)}
        made = []
        for each in found:
            number = numbers.setdefault(each.key, len(numbers) + 1)
            made.append(replace(each, number=number))
        self.met = list(numbers)
        return tuple(made)

    def by_hand(self, settled: Iterable[Conflict]) -> tuple[Conflict, ...]:
        """Return resolved conflicts; those resolved by hand have numbers."""
        numbered = {
            c.key: c for c in self.numbered(c for c in settled if c.key in self.resolutions)
        }
        return tuple(numbered.get(each.key, each) for each in settled)


def _path(store: Store) -> str:
    target = store.refs.head_target()
    return store.layout.stopped_file(target if isinstance(target, str) else NAME)


def stopped_refs(store: Store) -> list[str]:
    """Return the full names of the branches with an operation in progress, sorted; "HEAD" for a detached HEAD.

    What has a damaged file and too long a name is left out.
    """
    layout = store.layout
    refs = []
    for name in filter(is_stopped_file, store.disk.names(layout.local_dir)):
        ref = ref_of_stopped_file(name)
        if ref is None:  # too long for a file name
            try:
                stop = _read(store, os.path.join(layout.local_dir, name))
            except errors.FormatError:
                continue
            ref = None if stop is None else stop.ref
        refs += [ref] if ref else []
    return sorted(refs)


def read_stop(store: Store) -> Stop | None:
    """Return the operation in progress on HEAD's branch, or None.

    Raises:
        FormatError: the file is damaged; `Stopped.abort` removes it.
    """
    return _read(store, _path(store))


def _read(store: Store, path: str) -> Stop | None:
    data = read_file(store.disk, path, limit=MAXIMUM_BYTES)
    if data is None:
        return None
    import json  # rarely needed, and slow to import

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
            {key: Resolution(*said) for key, said in fields["resolutions"].items()},
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
    """Save a stopped operation.

    Args:
        store: the repository's store.
        stop: the operation.
        instead_of: the expected content of the file; None overwrites any content.

    Raises:
        StateError: the operation is no longer in progress.
        ConcurrencyError: another process changed the file.
        StorageError: the disk failed.
    """
    if instead_of is None:
        stop.tip = None  # it stopped, so an earlier tip is obsolete
    import json  # as above

    fields = {
        "before": None if stop.before is None else str(stop.before),
        "inputs": stop.inputs,
        "kind": stop.kind,
        "met": stop.met,
        "number": stop.number,
        "ref": stop.ref,
        "resolutions": {
            key: [said.choice, said.text, said.about]
            for key, said in sorted(stop.resolutions.items())
        },
        "skipped": stop.skipped,
        **({"tip": str(stop.tip)} if stop.tip is not None else {}),
    }
    data = json.dumps(fields, indent=1, sort_keys=True).encode() + b"\n"
    path, scratch = store.layout.stopped_file(stop.ref), store.layout.tmp_dir

    def write(_: object) -> None:
        held = None if instead_of is None else read_file(store.disk, path)
        if instead_of and held is None:
            raise _not_in_progress_error(
                "it is no longer in progress: another process has continued or aborted it"
            )
        if instead_of is not None and (held or b"") != instead_of:
            raise errors.ConcurrencyError(f"another process changed {path}", path=path)
        replace_file(store.disk, path, data, scratch=scratch)
        stop.file = data

    store.transact(
        write
    )  # under the journal's lock, so that no other process writes the file meanwhile


def check_branch(store: Store, stop: Stop) -> None:
    """Raise RefChangedError if the branch of an operation no longer exists."""
    if stop.before is not None and store.refs.read(stop.ref) is None:
        raise errors.RefChangedError(
            f"{stop.ref} no longer exists, so {stop.said} cannot continue",
            code=errors.ErrorCode.BRANCH_GONE,
            ref=stop.ref,
            expected=stop.before,
        )


def tip_of(store: Store, stop: Stop) -> ObjectId | None:
    """Return the tip of the branch that an operation began on, or the commit of a detached HEAD.

    Raises:
        RefChangedError: the branch no longer exists, or HEAD is no longer detached.
    """
    if stop.ref != NAME:
        check_branch(store, stop)
        return store.refs.read(stop.ref)
    head = store.refs.head()
    if head.ref is not None:
        raise errors.RefChangedError(
            "HEAD is no longer detached, as it was when the revert started", ref=stop.ref
        )
    return head.oid


def save_tip(store: Store, stop: Stop, tip: ObjectId) -> None:
    """Save the commit that a resumed operation is about to move the branch to.

    Raises:
        StateError: another process has continued or aborted it.
        ConcurrencyError: another process has resolved a conflict.
    """
    if stop.file:
        stop.tip = tip
        write_stop(store, stop, stop.file)


def is_written(store: Store, stop: Stop) -> bool:
    """Return True if the branch was already moved, and only the file remained after a crash."""
    now = store.refs.head().oid if stop.ref == NAME else store.refs.read(stop.ref)
    if stop.tip is None or now is None or not store.objects.contains(stop.tip):
        return False
    is_ancestor = commits_of(store).is_ancestor
    if stop.before is not None and is_ancestor(stop.tip, stop.before):
        return now == stop.tip  # the rebase dropped the last commits
    return is_ancestor(stop.tip, now)


def clear_stop(store: Store) -> None:
    """Delete the file of the operation in progress on HEAD's branch."""

    def remove(_: object) -> None:
        store.disk.remove(_path(store))

    # Under the lock, so that a concurrent resolution does not restore it.
    store.transact(remove)


def required_stop(store: Store, kind: str = "") -> Stop:
    """Return the operation in progress on HEAD's branch.

    Raises:
        StateError: there is none, or it is of another kind.
    """
    found = read_stop(store)
    if found is None or (kind and found.kind != kind):
        what = WORDS.get(kind, "merge, pick, revert or rebase")
        also = "" if found is None else f", but a {WORDS[found.kind]} is"
        waiting = "" if found is None else found.kind
        raise _not_in_progress_error(f"no {what} is in progress{also}", kind=kind, waiting=waiting)
    return found


def _not_in_progress_error(message: str, **data: str) -> errors.StateError:
    return errors.StateError(message, code=errors.ErrorCode.NOTHING_IN_PROGRESS, **data)


def refuse_while_stopped(store: Store, refs: Collection[str]) -> None:
    """Raise StateError if an operation is in progress on one of some refs."""
    for ref in refs:
        path = store.layout.stopped_file(ref)
        if store.disk.exists(path) and (found := _read(store, path)) is not None:
            raise errors.StateError(
                f"{found.said} is in progress",
                code=errors.ErrorCode.IN_PROGRESS,
                ref=ref,
                kind=found.kind,
            )
