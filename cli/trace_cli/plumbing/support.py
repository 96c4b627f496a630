"""What several plumbing commands need: the repository, and its refs."""

from __future__ import annotations

from trace_cli.runtime import Invocation
from trace_store import errors, maintenance, refs
from trace_store.store.discovery import find
from trace_store.store.handle import Store


def open_store(invocation: Invocation) -> Store:
    """Return the repository that the command is about, open; it is a context manager.

    Raises:
        RepositoryNotFoundError: there is none here.
        UnsupportedFormatError: a newer version wrote it.
    """
    return Store.open(
        find(invocation.folder, invocation.environment, explicit=invocation.directory)
    )


def seal_if_due(store: Store) -> None:
    """Seal what has waited for half a minute, or is much. A script that writes a lot does not outgrow the journal."""
    if store.unsealed().due(store.clock.now()):
        maintenance.schedule.seal_if_due_by_age(store)


def full_ref(store: Store, text: str) -> str:
    """Return the ref that a command is told to move: a checked full name; HEAD is the branch it stands for.

    Raises:
        InvalidRefNameError: not the name of a ref.
        DetachedHeadError: HEAD stands for a commit.
    """
    if text != "HEAD":
        return refs.names.check_ref_name(text)
    ref = store.refs.head().ref
    if ref is None:
        raise errors.DetachedHeadError("HEAD is detached: it stands for a commit, not for a branch")
    return ref
