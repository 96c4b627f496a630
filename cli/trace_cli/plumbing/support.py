"""What several plumbing commands need: the repository, and sets of commits."""

from __future__ import annotations

from importlib import import_module

from trace_cli.runtime import Invocation
from trace_store.errors import DetachedHeadError
from trace_store.graph import merge_bases
from trace_store.objects.commit import parents_of
from trace_store.refs import check_ref_name
from trace_store.revision import resolve_commit, resolve_range
from trace_store.store import Store, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.oid import ObjectId


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
        # Sealing costs more to import than most commands take, and few commands seal.
        import_module("trace_store.maintenance.schedule").seal_if_due_by_age(store)


def full_ref(store: Store, text: str) -> str:
    """Return the ref that a command is told to move: a checked full name; HEAD is the branch it stands for.

    Raises:
        InvalidRefNameError: not the name of a ref.
        DetachedHeadError: HEAD stands for a commit.
    """
    if text != "HEAD":
        return check_ref_name(text)
    ref = store.refs.head().ref
    if ref is None:
        raise DetachedHeadError("HEAD is detached: it stands for a commit, not for a branch")
    return ref


def reach(store: Store, text: str) -> tuple[list[ObjectId], list[ObjectId]]:
    """Return the commits that `A`, `^A`, `A..B` or `A...B` starts from, and those whose past it leaves out.

    Raises:
        RevisionNotFoundError, AmbiguousRevisionError, InvalidInputError: as in `trace_store.revision`.
    """
    if text.startswith("^"):
        return [], [resolve_commit(store, text[1:])]
    found = resolve_range(store, text)
    exclude = list(found.exclude)
    if found.symmetric:
        one, other = found.include

        def parents(oid: ObjectId) -> list[ObjectId]:
            return parents_of(store.objects.read(oid))

        exclude += merge_bases(one, other, parents)
    return list(found.include), exclude
