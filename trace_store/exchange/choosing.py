"""Which refs go into a bundle.

Rule: a bundle carries refs, so every word has to lead to one. A ref goes with the refs under it, and the branch of a
session with the files that are kept of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trace_store.errors import (
    AmbiguousRevisionError,
    InvalidInputError,
    NotFoundError,
    RefNotFoundError,
    StateError,
    UnbornBranchError,
)
from trace_store.exchange.bundle_format import BundledRef
from trace_store.oid import ObjectId
from trace_store.refs import BRANCHES, TRASH
from trace_store.refs.names import FILES
from trace_store.revision import ref_of, resolve, resolve_commit
from trace_store.store import Store

SESSIONS = BRANCHES + "sessions/"


@dataclass(frozen=True, slots=True)
class Choice:
    """What goes into a bundle.

    Attributes:
        refs: sorted by name.
        since: commits whose history the receiver has.
    """

    refs: tuple[BundledRef, ...]
    since: tuple[ObjectId, ...]


def choose(
    store: Store,
    words: Sequence[str],
    *,
    everything: bool = False,
    trash: bool = False,
    since: Iterable[str] = (),
) -> Choice:
    """Return the refs that words name, and what they leave out.

    Args:
        store: where from.
        words: refs, sessions by the beginning of their id, folders of refs; `A..B` is `B` without what A reaches, `^A`
            only leaves out. Without any, the branch that HEAD is on.
        everything: every ref but those in the trash.
        trash: those too.
        since: commits whose history is left out.

    Raises:
        RefNotFoundError: a word leads to nothing.
        AmbiguousRevisionError: the ids of several sessions begin like this.
        InvalidInputError: a word names an object that no ref stands for.
        UnbornBranchError: HEAD's branch has no commit.
        StateError: there is no ref, or HEAD is detached.
    """
    every = dict(store.refs.iterate_tips())
    hidden = list(since)
    names: set[str] = set()
    if everything:
        names.update(name for name in every if trash or not name.startswith(TRASH))
    for word in words or ([] if everything else ["HEAD"]):
        if word.startswith("^"):
            hidden.append(word[1:])
            continue
        if "..." in word:
            raise InvalidInputError(f"a bundle carries refs, not what {word[:120]!r} compares")
        left, dots, right = word.partition("..")
        if dots:
            hidden.append(left or "HEAD")
        names.update(_named(store, list(every), (right or "HEAD") if dots else word))
    if not names:
        raise StateError("there is no ref to bundle")
    refs = tuple(BundledRef(name, every[name]) for name in sorted(names))
    return Choice(refs, tuple(resolve_commit(store, word) for word in hidden))


def _named(store: Store, every: list[str], word: str) -> list[str]:
    """Return the refs that a word names, those under them, and the files that are kept of sessions."""
    if word in ("HEAD", "@"):
        head = store.refs.head()
        if head.ref is None:
            raise StateError("HEAD is detached: it stands for a commit, and a bundle carries refs")
        if head.oid is None:
            raise UnbornBranchError("HEAD has no commit yet", revision=word)
        return _with_files(every, _under(every, head.ref))
    full = ref_of(store, word)
    if full is not None:
        return _with_files(every, _under(every, full))
    folder = word.rstrip("/")
    for place in ("", "refs/", BRANCHES, SESSIONS):
        found = _under(every, place + folder) if folder else []
        if found:
            return _with_files(every, found)
    found = _session(every, word)
    if found:
        return _with_files(every, found)
    try:
        oid = resolve(store, word)
    except NotFoundError:
        raise RefNotFoundError(f"there is no ref {word[:120]!r}", ref=word) from None
    raise InvalidInputError(f"a bundle carries refs, and none is named by {word[:120]!r}", oid=oid)


def _under(every: list[str], name: str) -> list[str]:
    return [each for each in every if each == name or each.startswith(name + "/")]


def _session(every: list[str], word: str) -> list[str]:
    """Return the refs of the session whose id begins like this."""
    found = {
        "/".join(parts[:2])
        for parts in (
            name[len(SESSIONS) :].split("/") for name in every if name.startswith(SESSIONS)
        )
        if len(parts) > 1 and (parts[1].startswith(word) or "/".join(parts[:2]).startswith(word))
    }
    if len(found) > 1:
        raise AmbiguousRevisionError(
            f"several sessions begin with {word[:120]!r}", revision=word, candidates=sorted(found)
        )
    return [name for session in found for name in _under(every, SESSIONS + session)]


def _with_files(every: list[str], names: list[str]) -> list[str]:
    found = list(names)
    for name in names:
        if name.startswith(SESSIONS):
            found += _under(every, FILES + name[len(SESSIONS) :])
    return found
