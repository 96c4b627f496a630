"""Hard checkpoints: tag objects under `refs/checkpoints/` that name the exact state of a branch.

Saving one writes only a tag and a ref, however long the history is. A checkpoint is never moved: a name in use is
refused. Restoring moves or creates a branch; the old tip goes to the trash.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.ident import check_author
from trace_store.base.oid import ObjectId
from trace_store.contracts import RefEdit
from trace_store.contracts.ref_names import (
    AUTOMATIC,
    BRANCHES,
    CHECKPOINTS,
    FORKS,
    check_ref_name,
    check_text,
)
from trace_store.objects.codec import COMMIT, TAG, kind_of
from trace_store.objects.commit import Commit, Tag
from trace_store.store import revision as revisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trace_store.base.ident import Time
    from trace_store.contracts.protocols import RefReader
    from trace_store.store.store import Store
    from trace_store.writer import Change

ARCHIVED = CHECKPOINTS + "archived/"
RESERVED = (AUTOMATIC, FORKS, ARCHIVED)
"""Prefixes of checkpoints that Trace names itself."""
HARD, SOFT = "hard", "soft"
MANUAL = "manual"
TRIGGER, IS_AUTOMATIC, BRANCH = "trigger", "automatic", "branch"
FORM = "checkpoint"
"""The key in the metadata of a soft checkpoint's commit; its value is `soft`."""


@value
class Checkpoint:
    """One checkpoint.

    Attributes:
        ref: its full name.
        oid: the object that the ref names.
        commit: the commit to return to; of a soft checkpoint, the commit that holds the summary.
        form: "hard" or "soft".
        reason: the reason for it, or "".
        trigger: "manual", "fork", "archive", or the trigger of an automatic one.
        is_automatic: whether Trace made it by itself.
        branch: full name of the branch that it was made from, or "".
        author: who made it, or "".
        time: when, in milliseconds since the epoch; 0 if unknown.
        meta: further facts about it.
    """

    JSON = "name -oid branch? is_archived author? -meta"

    ref: str
    oid: ObjectId
    commit: ObjectId
    form: str
    reason: str
    trigger: str
    is_automatic: bool
    branch: str
    author: str
    time: Time
    meta: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its short name."""
        return self.ref.removeprefix(CHECKPOINTS)

    @property
    def is_archived(self) -> bool:
        """Whether it is a branch that lost to another one in `fork merge`."""
        return self.ref.startswith(ARCHIVED)


@value
class Restored:
    """The result of a restore.

    Attributes:
        checkpoint: what was restored.
        ref: full name of the branch; None if HEAD is detached.
        before: the old tip; None for a new branch.
        after: the new tip.
        kept: the ref that keeps the old tip; None if the new one contains it.
    """

    JSON = "checkpoint=checkpoint.ref commit=after changed"

    checkpoint: Checkpoint
    ref: str | None
    before: ObjectId | None
    after: ObjectId
    kept: str | None

    @property
    def changed(self) -> bool:
        """Whether the branch moved, or is new."""
        return self.before != self.after


def find_checkpoint(store: Store, name: str) -> Checkpoint:
    """Return the checkpoint with a name.

    Raises:
        RefNotFoundError: there is no such checkpoint.
        InvalidRefNameError: the name is not valid.
        ObjectNotFoundError, CorruptObjectError: its object is missing or damaged.
    """
    full = checkpoint_ref(name)
    oid = store.refs.read(full)
    if oid is None:
        raise errors.RefNotFoundError(
            f"no checkpoint {full.removeprefix(CHECKPOINTS)[:100]!r}",
            ref=full,
            code=errors.ErrorCode.CHECKPOINT_NOT_FOUND,
        )
    return read_checkpoint(store, full, oid, strict=True)


def checkpoint_ref(name: str) -> str:
    """Return the full name of a checkpoint.

    Raises:
        InvalidRefNameError: the name is not valid.
    """
    check_text(name)
    for prefix in (CHECKPOINTS, CHECKPOINTS.removeprefix("refs/")):
        name = name.removeprefix(prefix)
    return check_ref_name(CHECKPOINTS + name)


def free_name(name: str) -> str:
    """Return the full name of a new checkpoint; raises as `Checkpoints.save`."""
    full = checkpoint_ref(name)
    if full.startswith(RESERVED):
        prefix = full.removeprefix(CHECKPOINTS).partition("/")[0]
        raise errors.InvalidRefNameError(
            f"names that start with {prefix}/ are for checkpoints that Trace makes", ref=full
        )
    return full


def name_in_use(full: str) -> errors.AlreadyExistsError:
    """Return the error for a checkpoint name that is already in use."""
    name = full.removeprefix(CHECKPOINTS)
    return errors.AlreadyExistsError(
        f"checkpoint {name} already exists",
        code=errors.ErrorCode.CHECKPOINT_EXISTS,
        name=name,
        ref=full,
    )


def branch_meta(store: Store, ref: str) -> dict[str, str]:
    """Return the metadata of a checkpoint about the branch that a revision names, if it names one."""
    branch = revisions.branch_of(store, ref) or ""
    return {BRANCH: branch} if branch.startswith(BRANCHES) else {}


def write_checkpoint(
    change: Change, full: str, made: Tag | Commit, *, note: str = ""
) -> Checkpoint:
    """Write a checkpoint and its ref.

    Raises:
        AlreadyExistsError: the name is in use.
    """
    oid = change.add(made)

    def edits(refs: RefReader) -> list[RefEdit]:
        if refs.read(full) is not None:
            raise name_in_use(full)
        return [RefEdit(full, oid, None)]

    change.write(edits, f"checkpoint: {full.removeprefix(CHECKPOINTS)}{note}")
    return find_checkpoint(change.writer.store, full)


def new_tag(
    full: str,
    commit: ObjectId,
    author: str,
    time: int,
    reason: str,
    meta: Mapping[str, Any],
) -> Tag:
    """Return the tag object of a hard checkpoint."""
    name = full.removeprefix(CHECKPOINTS)
    return Tag(commit, name, check_author(author), time, reason, meta)


def read_checkpoint(store: Store, ref: str, oid: ObjectId, *, strict: bool = False) -> Checkpoint:
    """Return the checkpoint of a ref, without details if its object is missing and not `strict`."""
    try:
        data = store.objects.read(oid)
        kind = kind_of(data)
        if kind == TAG:
            tag = Tag.decode(data)
            return _checkpoint(ref, oid, tag.target, HARD, tag)
        if kind == COMMIT and (commit := Commit.decode(data)).meta.get(FORM) == SOFT:
            return _checkpoint(ref, oid, oid, SOFT, commit)
    except (errors.ObjectNotFoundError, errors.CorruptObjectError):
        if strict:
            raise
    return Checkpoint(ref, oid, oid, HARD, "", MANUAL, False, "", "", 0, {})


def _checkpoint(
    ref: str, oid: ObjectId, commit: ObjectId, form: str, made: Tag | Commit
) -> Checkpoint:
    meta = made.meta
    trigger, branch = _text(meta.get(TRIGGER)) or MANUAL, _text(meta.get(BRANCH))
    by = bool(meta.get(IS_AUTOMATIC)), branch, made.author, made.time
    return Checkpoint(ref, oid, commit, form, made.message, trigger, *by, meta)


def _text(given: object) -> str:
    return given if isinstance(given, str) else ""
