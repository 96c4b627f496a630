"""Names of branches and sessions.

Rule: reads, never writes. A session is known by its format and id; the kept files tell which commits are of it.

Rule: the same id always gives the same name, and every name is fit for a ref on every file system.
"""

from __future__ import annotations

import string

from trace_store.errors import FormatError, NotFoundError
from trace_store.importers.dedupe import chain, read_commit
from trace_store.objects.content import bytes_of
from trace_store.oid import ObjectId, digest
from trace_store.ref_names import is_ref_name
from trace_store.refs.names import BRANCHES, FILES
from trace_store.revision import SESSIONS
from trace_store.store.handle import Store
from trace_store.transcripts.segments import segments_of

AGENTS = "agents"


def branch_of(store: Store, folder: str) -> str:
    """Return the branch of a session or a subagent.

    It is the one that has its name; else the one that holds its last commit with the fewest commits since, as after a
    rename. When no branch does, it is the name again.

    Args:
        store: where it is.
        folder: `<format>/<session>`, for a subagent with `/agents/<agent>`.
    """
    named = SESSIONS + folder
    if store.refs.read(named) is not None:
        return named
    last = _last_commit(store, folder)
    if last is None:
        return named
    found = []
    for ref, tip in store.refs.iterate(BRANCHES):
        if ref.startswith(SESSIONS):
            continue  # it is another session's, or another branch of this one
        steps = _steps(store, tip)
        if last in steps:
            found.append((steps[last], ref))
    return min(found)[1] if found else named


def session_of(store: Store, ref: str) -> tuple[str, str, str] | None:
    """Return the format, the session and the subagent that a branch is of; None when nothing tells.

    A branch with another name than a session's is of the session whose last commit is the nearest behind its tip.
    """
    if ref.startswith(SESSIONS):
        return _named(ref.removeprefix(SESSIONS))
    tip = store.refs.read(ref)
    if tip is None:
        return None
    steps = _steps(store, tip)
    found = []
    for folder in dict.fromkeys(name.rpartition("/")[0] for name, _ in store.refs.iterate(FILES)):
        last = _last_commit(store, folder.removeprefix(FILES))
        if last is not None and last in steps:
            found.append((steps[last], folder.removeprefix(FILES)))
    return _named(min(found)[1]) if found else None


def _named(folder: str) -> tuple[str, str, str] | None:
    parts = folder.split("/")
    if len(parts) == 2:
        return parts[0], parts[1], ""
    return (parts[0], parts[1], parts[3]) if len(parts) == 4 and parts[2] == AGENTS else None


def _last_commit(store: Store, folder: str) -> ObjectId | None:
    """Return the newest commit of a session's own line that a file was kept with; None when no file is kept."""
    place = f"{FILES}{folder}/"
    kept: list[ObjectId] = []
    for ref, tip in store.refs.iterate(place):
        if "/" not in ref.removeprefix(place):  # else a subagent's
            kept += _last_of_file(store, tip)
    aside: set[bytes] = set()
    for _, tip in store.refs.iterate(f"{SESSIONS}{folder}/") if kept else ():
        aside.update(_steps(store, tip))
    own = [oid for oid in kept if oid not in aside] or kept
    return max(own, key=lambda oid: read_commit(store, oid).time, default=None)


def _last_of_file(store: Store, tip: ObjectId) -> list[ObjectId]:
    """Return the commits of the last part of a kept file that has any, the latest in the file first."""
    try:
        segments = segments_of(tip, store.objects.read)
    except (NotFoundError, FormatError):
        return []
    return next((list(each.commits[::-1]) for each in reversed(segments) if each.commits), [])


def _steps(store: Store, tip: ObjectId) -> dict[ObjectId, int]:
    """Return how far each commit lies behind a tip, as far as they are here."""
    steps: dict[ObjectId, int] = {}
    try:
        for number, (oid, _) in enumerate(chain(store, tip)):
            steps[oid] = number
    except (NotFoundError, FormatError):
        return steps
    return steps


MAXIMUM_CHARACTERS = 80
SHORT_CHARACTERS = 8

_GOOD = frozenset(string.ascii_letters + string.digits + "._-")
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)


def ref_component(text: str) -> str:
    """Return an id as one component of a ref name; ids that are fit for it stay as they are."""
    clean = "".join(c if c in _GOOD else "-" for c in text)
    if (
        clean == text
        and 0 < len(text) <= MAXIMUM_CHARACTERS
        and text[0] not in ".-"
        and text[-1] != "."
        and ".." not in text
        and not text.lower().endswith((".lock", ".log"))
        and text.split(".")[0].lower() not in _DEVICES
        and not (len(text) == 64 and set(text) <= set(string.hexdigits))
        and is_ref_name(f"{BRANCHES}{text}")
    ):
        return text
    return distinct_component(text)


def distinct_component(text: str) -> str:
    """Return an id as a component that no other id has, also where names that differ by case only are one."""
    # Two ids must not share a name because of the characters they lost.
    clean = "".join(c if c in _GOOD else "-" for c in text)
    kept = clean.replace(".", "-").strip("-")[: MAXIMUM_CHARACTERS // 2].rstrip("-")
    return f"{kept or 'id'}-{digest(bytes_of(text)).hex()[:12]}"


def short_id(text: str) -> str:
    """Return the first characters of an id, as a component of a ref name."""
    return ref_component(text[:SHORT_CHARACTERS])
