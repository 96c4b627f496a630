"""What several plumbing commands need: the repository, and sets of commits and objects."""

from __future__ import annotations

from trace_cli.runtime import Invocation
from trace_store import maintenance
from trace_store.errors import DetachedHeadError
from trace_store.objects.codec import BLOB, blob_content, kind_of
from trace_store.objects.content import text_of
from trace_store.oid import is_full_id
from trace_store.refs import check_ref_name
from trace_store.revision import commits_of, resolve, resolve_commit, resolve_range
from trace_store.store import Store, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
        maintenance.seal_if_due_by_age(store)


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
        exclude += commits_of(store).merge_bases(*found.include)
    return list(found.include), exclude


def object_sets(store: Store, text: str) -> tuple[list[ObjectId], list[ObjectId]]:
    """Return the objects that `A`, `^A`, `A..B` or `A...B` starts from, and those whose reach it leaves out.

    Unlike `reach`, a tag is the tag itself, and any object is a start.

    Raises:
        RevisionNotFoundError, AmbiguousRevisionError, InvalidInputError: as in `trace_store.revision`.
    """
    if text.startswith("^"):
        return [], [resolve(store, text[1:])]
    return reach(store, text) if ".." in text else ([resolve(store, text)], [])


def all_tips(store: Store) -> list[ObjectId]:
    """Return every tip of every ref, and HEAD when it is detached."""
    found = [tip for _, tips in store.refs.iterate_tips() for tip in tips]
    head = store.refs.head()
    if head.ref is None and head.oid is not None:
        found.append(head.oid)
    return list(dict.fromkeys(found))


def object_name(line: str) -> str:
    """Return the object that a line of standard input names: what follows a full id is passed over.

    So what one command lists another takes, whatever stood between them.
    """
    first, space, _ = line.partition(" ")
    return first if space and is_full_id(first) else line


def size_of(data: bytes) -> int:
    """Return the size that objects are listed with: of a blob its content's, else of its canonical bytes."""
    return len(content_of(data))


def content_of(data: bytes) -> bytes:
    """Return the content of a blob, and the canonical bytes of any other object."""
    return blob_content(data) if kind_of(data) == BLOB else data


def content_fields(content: bytes) -> dict[str, str]:
    """Return content for JSON: `text`, or `base64` when it is not UTF-8."""
    try:
        return {"text": text_of(content)}
    except UnicodeDecodeError:
        from binascii import b2a_base64

        return {"base64": b2a_base64(content, newline=False).decode("ascii")}


def json_line(record: dict[str, Any], *, ascii_only: bool) -> bytes:
    """Return a record as JSON on one line, without its end; lone surrogates as escapes."""
    import json  # as dear as the rest of a command, which does without it otherwise

    text = json.dumps(record, ensure_ascii=ascii_only)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(record).encode()
