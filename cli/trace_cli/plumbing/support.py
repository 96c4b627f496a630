"""Shared by plumbing commands: opening the repository, and refs."""

from __future__ import annotations

import trace_store
from trace_cli.runtime import Invocation
from trace_store import errors, maintenance
from trace_store.contracts.ref_names import check_ref_name
from trace_store.store.discovery import find
from trace_store.store.store import Store

ABSENT = "0" * 64
"""In place of an object id: there is no such ref."""


def open_store(invocation: Invocation) -> Store:
    """Return the repository of this run, open, as a context manager.

    Raises:
        RepositoryNotFoundError: there is no repository here.
        UnsupportedFormatError: a newer version of Trace wrote it.
    """
    store = Store.open(
        find(invocation.folder, invocation.environment, explicit=invocation.directory)
    )
    store.objects.last_resort = lambda: maintenance.came_back(store, invocation.tell_came_back)
    return store


def author_of(invocation: Invocation, store: Store) -> str:
    """Return the author for new commits, tags and reflog entries."""
    environment = invocation.environment
    return environment.given_author or trace_store.store.author_of(environment, store.layout.root)


def seal_if_due(store: Store) -> None:
    """Seal an old or large journal, so that scripts cannot make it grow without bound."""
    if store.unsealed().due(store.clock.now()):
        maintenance.schedule.seal_if_due_by_age(store)


def full_ref(store: Store, text: str) -> str:
    """Return the full name of the ref to move: a checked name, or the branch of HEAD.

    Raises:
        InvalidRefNameError: the text is not a ref name.
        DetachedHeadError: HEAD is not on a branch.
    """
    if text != "HEAD":
        return check_ref_name(text)
    ref = store.refs.head().ref
    if ref is None:
        raise errors.DetachedHeadError("HEAD is detached: it is on no branch")
    return ref
