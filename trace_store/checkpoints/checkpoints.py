"""Checkpoints: `repo.checkpoints`."""

from __future__ import annotations

from trace_store import errors, history
from trace_store.base import check
from trace_store.checkpoints import hard
from trace_store.checkpoints import soft as soft_checkpoints
from trace_store.checkpoints.forks import Forks as Forks
from trace_store.contracts.ref_names import CHECKPOINTS, branch_ref
from trace_store.objects.message import load_message
from trace_store.objects.operations import added_messages
from trace_store.store import revision as revisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.base.oid import ObjectId
    from trace_store.checkpoints.hard import Checkpoint, Restored
    from trace_store.checkpoints.soft import Injected
    from trace_store.checkpoints.work_state import WorkState
    from trace_store.history.diff import ContextDiff
    from trace_store.history.trash_refs import DeletedRef
    from trace_store.llm.contract import Model
    from trace_store.writer import Writer


class Checkpoints:
    """The checkpoints of a repository.

    A method that takes the name of a checkpoint raises the errors of `show`.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._store = writer.store

    def save(
        self,
        name: str,
        *,
        ref: str = "HEAD",
        reason: str = "",
        soft: bool = False,
        range: str = "",
        model: Model | None = None,
    ) -> Checkpoint:
        """Save the state of a branch, or with `soft` a summary of it, and return the checkpoint.

        Args:
            name: the checkpoint's short name.
            ref: a branch or another revision.
            reason: why.
            soft: save a summary.
            range: the messages to summarise, such as `A..B`; "" is the whole context.
            model: writes the prose of the summary; without one, it is built by rules.

        Raises:
            AlreadyExistsError: the name is in use.
            InvalidRefNameError: the name is not valid, or reserved for checkpoints that Trace makes.
            As `resolve_commit`, and `soft.save_soft`.
        """
        check.text(ref=ref, reason=reason, range=range)
        check.flag(soft=soft)
        check.function(model=model)
        if soft:
            return soft_checkpoints.save_soft(self._writer, name, ref, reason, model, range)
        if range:
            raise errors.InvalidInputError("a range requires `soft`")
        store, change = self._store, self._writer.begin()
        full = hard.free_name(name)
        commit = revisions.resolve_commit(store, ref)
        meta = {hard.TRIGGER: hard.MANUAL, **hard.branch_meta(store, ref)}
        tag = hard.new_tag(full, commit, change.author, store.clock.now(), reason, meta)
        return hard.write_checkpoint(change, full, tag)

    def state(self, ref: str = "HEAD", *, range: str = "") -> WorkState:
        """Return the state of the work on a branch, or in a range of its messages; raises as `soft.state_at`.

        A soft checkpoint saves the same: tasks, decisions, checks, files, open ends. Nothing is written.
        """
        check.text(ref=ref, range=range)
        return soft_checkpoints.state_at(self._writer, ref, range)

    def show(self, name: str) -> Checkpoint:
        """Return one checkpoint; raises as `hard.find_checkpoint`."""
        return hard.find_checkpoint(self._store, name)

    def text(self, name: str) -> str:
        """Return the summary of a soft checkpoint; raises as `data`."""
        found = self.show(name)
        (_, stored), *_ = added_messages(
            soft_checkpoints.soft_commit(self._store, found), found.commit
        )
        return load_message(stored, self._store.objects.read).text

    def data(self, name: str) -> dict[str, Any]:
        """Return the state that a soft checkpoint holds; raises as `soft.soft_data`."""
        return soft_checkpoints.soft_data(self._store, self.show(name))

    def source(self, checkpoint: Checkpoint) -> ObjectId | None:
        """Return the commit that a checkpoint saves.

        Return None if it is a soft checkpoint of an empty branch.
        """
        check.instance(hard.Checkpoint, checkpoint=checkpoint)
        if checkpoint.form != hard.SOFT:
            return checkpoint.commit
        return soft_checkpoints.soft_source(self._store, checkpoint)

    def diff(self, name: str, ref: str = "HEAD", *, model: str = "") -> ContextDiff:
        """Return what changed in a context since a checkpoint; raises as `show` and `resolve_commit`."""
        check.text(ref=ref, model=model)
        return history.diff.diff(self._writer.contexts, self.show(name).commit, ref, model=model)

    def restore(self, name: str, *, ref: str = "HEAD", branch: str = "") -> Restored:
        """Move a branch to a checkpoint, or create one there; the old tip goes to the trash.

        Args:
            name: the checkpoint.
            ref: the branch to move. Moving HEAD's branch also sets ORIG_HEAD.
            branch: create this branch instead, and move none.

        Raises:
            StateError: it is a soft checkpoint, or a merge, pick, revert or rebase is in progress on the branch.
            AlreadyExistsError: there is a branch named `branch`.
            As `show`, and as `find_branch`.
        """
        check.text(ref=ref, branch=branch)
        store, found = self._store, self.show(name)
        if found.form == hard.SOFT:
            raise errors.StateError(
                f"{found.name} is a soft checkpoint: a summary, not a state",
                code=errors.ErrorCode.NOT_A_STATE,
                name=found.name,
            )
        moved, before = branch, None
        if not branch:
            head = store.refs.head().ref
            full = head if ref in ("HEAD", "@") else history.branches.find_branch(store, ref)
            if full is None or full == head:
                reset = history.reset.reset_hard(self._writer, found.ref)
                return hard.Restored(found, reset.ref, reset.before, reset.after, reset.kept)
            moved, before = full, store.refs.read(full)
        made = history.branches.Branches(self._writer).create(moved, found.ref, force=not branch)
        return hard.Restored(found, made.ref, before, made.oid, made.kept)

    def delete(self, *names: str) -> list[DeletedRef]:
        """Move checkpoints to the trash, all or none; return what was deleted; raises as `show`."""
        wanted = dict.fromkeys(self.show(name).ref for name in names)
        return history.trash_refs.delete_refs(self._writer, list(wanted), what="checkpoint")

    def inject(self, name: str, *, ref: str = "") -> Injected:
        """Put a soft checkpoint at the start of a context, once; raises as `soft.inject_checkpoint`."""
        check.text(ref=ref)
        branch = self._store.refs.head_target() if ref in ("HEAD", "@") else ref
        if isinstance(branch, str) and branch:
            try:
                branch = history.branches.find_branch(self._store, branch)
            except errors.RefNotFoundError:
                branch = branch_ref(ref)  # a new one
        writer = self._writer.on(branch) if isinstance(branch, str) else self._writer
        return soft_checkpoints.inject_checkpoint(writer, name)

    def list(self, *patterns: str) -> list[Checkpoint]:
        """Return the checkpoints, sorted by name, including automatic ones.

        Patterns such as `auto/*` select some.
        """
        check.texts(patterns=patterns)
        return [
            hard.read_checkpoint(self._store, ref, oid)
            for ref, oid in self._store.refs.iterate(CHECKPOINTS)
            if not patterns or history.branches.matches_any(ref.removeprefix(CHECKPOINTS), patterns)
        ]
