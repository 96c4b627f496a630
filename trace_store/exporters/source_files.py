"""The files that sessions were imported from, byte for byte.

Rule: reads, never writes. Bytes are given only when they hash to what the file held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from trace_store.errors import (
    AmbiguousRevisionError,
    CorruptObjectError,
    InvalidInputError,
    ObjectNotFoundError,
    RevisionNotFoundError,
    TraceError,
)
from trace_store.exporters.contract import AGENTS, Exported
from trace_store.exporters.session import find_branch, session_name
from trace_store.frozen import value
from trace_store.importers.file_head import HEAD_BYTES
from trace_store.importers.names import session_of
from trace_store.importers.registry import format_named
from trace_store.objects.commit import parents_of
from trace_store.oid import ObjectId
from trace_store.refs.names import FILES
from trace_store.store.handle import Store
from trace_store.transcripts.segments import file_size, restore, segments_of

HELD_BYTES = 64 << 20
"""A longer file is checked first and then read again, piece by piece, instead of being held."""


@value
class KeptFile:
    """A file that is kept.

    Attributes:
        format: what it was read as.
        session: the id of its session, as the branch is named.
        agent: of whose own file it is, when it is a subagent's; else empty.
        ref: the ref that keeps it.
        tip: its last segment.
        size: in bytes.
    """

    format: str
    session: str
    agent: str
    ref: str
    tip: ObjectId
    size: int

    @property
    def id(self) -> str:
        """What tells it from other files of the session."""
        return self.ref.rpartition("/")[2]


def kept_files(
    store: Store, prefix: str = "", *, lost: Callable[[str, TraceError], object] | None = None
) -> list[KeptFile]:
    """Return the files that are kept, or those of a format or a session, sorted by ref.

    Args:
        store: where from.
        prefix: nothing, `<format>`, or `<format>/<session>`.
        lost: told the ref of a file whose end is not here or damaged, and why, instead of an error.

    Raises:
        ObjectNotFoundError, CorruptObjectError: what is kept of one is not whole.
    """
    found = []
    for ref, tip in _kept_refs(store, f"{FILES}{prefix}/" if prefix else FILES):
        try:
            found.append(_kept(store, ref, tip))
        except (ObjectNotFoundError, CorruptObjectError) as error:
            if lost is None:
                raise
            lost(ref, error)
    return found


def _kept_refs(store: Store, place: str = FILES) -> Iterator[tuple[str, ObjectId]]:
    """Yield the refs that are called as those of files are; anybody may have put others there."""
    for ref, tip in store.refs.iterate(place):
        parts = ref.removeprefix(FILES).split("/")
        if len(parts) == 3 or (len(parts) == 5 and parts[2] == AGENTS):
            yield ref, tip


def find_file(store: Store, text: str, *, file: str = "") -> KeptFile:
    """Return the file of a session.

    Args:
        store: where from.
        text: a branch of the session, `<format>/<id>`, or an id or the beginning of one.
        file: the beginning of the file's own id, where a session has several.

    Raises:
        RevisionNotFoundError: there is no such session, or no file of it is kept.
        AmbiguousRevisionError: it has several; `.candidates` holds their ids.
        ObjectNotFoundError, CorruptObjectError: what is kept is not whole.
    """
    branch = find_branch(store, text)
    named = session_name(branch)
    renamed = session_of(store, branch) if branch and named is None else None
    if named is not None or renamed is not None:
        format_, session, thread = named or renamed or ("", "", "")
        agent = thread.removeprefix(f"{AGENTS}/")
        if named is not None and not thread.startswith(f"{AGENTS}/"):
            agent = ""
        found = kept_files(store, f"{format_}/{session}")
        own = [each for each in found if each.agent == agent] if agent else []
        found = own or [each for each in found if not each.agent]
    else:
        found = _called(store, text)
    found = [each for each in found if each.id.startswith(file)]
    if not found:
        raise RevisionNotFoundError(f"no file of {text} is kept", revision=text)
    if len(found) > 1 and not file:
        found = _of_branch(store, find_branch(store, text), found) or found
    if len(found) > 1:
        raise AmbiguousRevisionError(
            f"{len(found)} files of {text} are kept",
            revision=text,
            candidates=[f.id for f in found],
        )
    return found[0]


def native_file(store: Store, file: KeptFile) -> Exported:
    """Return a kept file; its bytes are checked before the first is given.

    Raises:
        ObjectNotFoundError: something that it was kept with is not here.
        CorruptObjectError: what comes together is not what the file held.
    """
    read = store.objects.read
    pieces = restore(file.tip, read)
    data: bytes | Iterator[bytes]
    if file.size <= HELD_BYTES:
        data = b"".join(pieces)
        head = data[:HEAD_BYTES]
    else:
        head = next(pieces)[:HEAD_BYTES]
        for _ in pieces:
            pass
        data = restore(file.tip, read)
    return Exported(data, (), file_name(file, head), text=b"\0" not in head)


def file_name(file: KeptFile, head: bytes) -> str:
    """Return what a file may be called, given its first bytes."""
    try:
        known = format_named(file.format)
    except InvalidInputError:
        known = None  # of a package that is not here, or cannot be loaded
    endings = list(known.SUFFIXES) if known is not None else [".jsonl"]
    if known is not None and known.is_document(head):
        # A document that is no JSON, such as a dump of a database, has an ending of its own.
        other = (".jsonl",) if head.lstrip()[:1] in (b"{", b"[") else (".json", ".jsonl")
        endings = [each for each in endings if each not in other] or endings
    elif ".jsonl" in endings:
        endings = [".jsonl"]
    name = f"agent-{file.agent}" if file.agent else file.session
    return name + endings[0]


def _called(store: Store, text: str) -> list[KeptFile]:
    """Return the files of the one session that is called so, or begins like this."""
    names = {"/".join(each.split("/")[:2]) for each in _names(store)}
    text = text.removeprefix("sessions/")
    chosen = [name for name in names if name == text or name.partition("/")[2] == text]
    chosen = chosen or [
        n for n in names if n.startswith(text) or n.partition("/")[2].startswith(text)
    ]
    if len(chosen) > 1:
        raise AmbiguousRevisionError(
            f"several sessions begin with {text[:80]}", revision=text, candidates=sorted(chosen)
        )
    found = kept_files(store, chosen[0]) if chosen and text else []
    return [each for each in found if not each.agent]


def _names(store: Store) -> Iterator[str]:
    return (ref.removeprefix(FILES) for ref, _ in _kept_refs(store))


def _of_branch(store: Store, ref: str, found: Sequence[KeptFile]) -> list[KeptFile]:
    """Return the file that has most of its commits on a branch; several when they have equally many."""
    on_branch: set[bytes] = set()
    oid = store.refs.read(ref) if ref else None
    while oid is not None:
        on_branch.add(oid)
        parents = parents_of(store.objects.read(oid))
        oid = parents[0] if parents else None
    scores = []
    for each in found:
        segments = segments_of(each.tip, store.objects.read)
        named = {commit for segment in segments for commit in segment.commits}
        scores.append(len(named & on_branch))
    return [each for each, score in zip(found, scores, strict=True) if score == max(scores)]


def _kept(store: Store, ref: str, tip: ObjectId) -> KeptFile:
    size = file_size(tip, store.objects.read)
    format_, session, *rest = ref.removeprefix(FILES).split("/")
    agent = rest[1] if len(rest) > 2 else ""
    return KeptFile(format_, session, agent, ref, tip, size)
