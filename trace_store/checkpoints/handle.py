"""Checkpoints and forks: `repo.checkpoints` and `repo.branches.fork`."""

from __future__ import annotations

from trace_store.checkpoints import comparison, forks, hard
from trace_store.checkpoints import soft as soft_checkpoints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.checkpoints.comparison import ForkComparison
    from trace_store.checkpoints.forks import Choice, Fork
    from trace_store.checkpoints.hard import Checkpoint, Restored
    from trace_store.checkpoints.soft import Injected
    from trace_store.context.compiler import ContextCompiler
    from trace_store.history.branches import DeletedRef
    from trace_store.history.diff import ContextDiff
    from trace_store.llm.contract import Model
    from trace_store.oid import ObjectId
    from trace_store.secrets.guard import Guard


class Checkpoints:
    """The checkpoints of a repository.

    Each method raises the errors of the function that it calls.
    """

    def __init__(self, contexts: ContextCompiler, *, author: str, guard: Guard) -> None:
        self._contexts = contexts
        self._store = contexts.store
        self._author = author
        self._guard = guard

    def save(
        self,
        name: str,
        *,
        ref: str = "HEAD",
        reason: str = "",
        soft: bool = False,
        model: Model | None = None,
    ) -> Checkpoint:
        """Save the state of a branch, or with `soft` a summary of it, and return the checkpoint.

        `model` writes the prose of the summary; without one, it is built by rules.

        Raises:
            As `hard.save_checkpoint` and `soft.save_soft`.
        """
        reason = self._guard.gathering().text(reason) if reason else reason
        if soft:
            return soft_checkpoints.save_soft(
                self._contexts,
                name,
                ref=ref,
                author=self._author,
                reason=reason,
                model=model,
                guard=self._guard,
            )
        return hard.save_checkpoint(self._store, name, ref=ref, author=self._author, reason=reason)

    def show(self, name: str) -> Checkpoint:
        """Return one checkpoint; raises as `hard.find_checkpoint`."""
        return hard.find_checkpoint(self._store, name)

    def text(self, name: str) -> str:
        """Return the summary of a soft checkpoint; raises as `soft.soft_text`."""
        return soft_checkpoints.soft_text(self._store, self.show(name))

    def data(self, name: str) -> dict[str, Any]:
        """Return the state that a soft checkpoint holds; raises as `soft.soft_data`."""
        return soft_checkpoints.soft_data(self._store, self.show(name))

    def source(self, checkpoint: Checkpoint) -> ObjectId | None:
        """Return the commit that a checkpoint saves.

        Return None if it is a soft checkpoint of an empty branch.
        """
        if checkpoint.form != hard.SOFT:
            return checkpoint.commit
        return soft_checkpoints.soft_source(self._store, checkpoint)

    def diff(self, name: str, ref: str = "HEAD", *, model: str = "") -> ContextDiff:
        """Return what changed since a checkpoint; raises as `hard.diff_checkpoint`."""
        return hard.diff_checkpoint(self._contexts, name, ref, model=model)

    def restore(self, name: str, *, ref: str = "HEAD", branch: str = "") -> Restored:
        """Move a branch to a checkpoint, or create `branch` there; raises as `hard.restore_checkpoint`."""
        return hard.restore_checkpoint(
            self._store, name, ref=ref, branch=branch, author=self._author
        )

    def delete(self, *names: str) -> list[DeletedRef]:
        """Move checkpoints to the trash; raises as `hard.delete_checkpoints`."""
        return hard.delete_checkpoints(self._store, names, author=self._author)

    def inject(self, name: str, *, ref: str = "") -> Injected:
        """Put a soft checkpoint at the start of a context, once; raises as `soft.inject_checkpoint`."""
        return soft_checkpoints.inject_checkpoint(
            self._contexts, name, ref=ref, author=self._author
        )

    def list(self, *patterns: str) -> list[Checkpoint]:
        """Return the checkpoints, sorted by name, including automatic ones.

        Patterns such as `auto/*` select some.
        """
        return hard.list_checkpoints(self._store, patterns)


class Forks:
    """Forks of a repository: `repo.branches.fork("idea")` creates one."""

    def __init__(self, contexts: ContextCompiler, *, author: str, guard: Guard) -> None:
        self._contexts = contexts
        self._author = author
        self._guard = guard

    def __call__(self, name: str, *, start: str = "", ref: str = "HEAD") -> Fork:
        """Create a branch with a recorded fork point; raises as `forks.fork`."""
        return forks.fork(self._contexts.store, name, start=start, ref=ref, author=self._author)

    def of(self, ref: str) -> Fork | None:
        """Return a branch's fork record (by full name) or None; raises as `forks.fork_of`."""
        return forks.fork_of(self._contexts.store, ref)

    def compare(self, left: str, right: str) -> ForkComparison:
        """Return two branches side by side; raises as `comparison.compare_forks`."""
        return comparison.compare_forks(self._contexts, left, right)

    def merge(self, winner: str, loser: str, *, reason: str = "") -> Choice:
        """Add the loser's conclusion to the winner, and archive the loser.

        Raises as `forks.choose_fork`.
        """
        return forks.choose_fork(
            self._contexts, winner, loser, author=self._author, reason=reason, guard=self._guard
        )
