"""Names of session branches, and the mapping between branches and sessions.

Invariant: read-only. A session is identified by format and id; its stored source files tell which commits belong to
it. A session id always maps to the same name, valid as a ref on every file system.
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
    """Return the branch of a session or subagent.

    This is the branch with its name. After a rename it is the branch with the session's last commit and the fewest
    commits since. If there is none, it is the session's name.

    Args:
        store: the repository.
        folder: `<format>/<session>`, for a subagent with `/agents/<agent>`.
    """
    named = SESSIONS + folder
    if store.refs.read(named) is not None:
        return named
    last = _last_commit(store, folder)
    if last is None:
        return named
    candidates = []
    for ref, tip in store.refs.iterate(BRANCHES):
        if ref.startswith(SESSIONS):
            continue  # another session's branch, or a side branch of this one
        steps = _distances(store, tip)
        if last in steps:
            candidates.append((steps[last], ref))
    return min(candidates)[1] if candidates else named


def session_of(store: Store, ref: str) -> tuple[str, str, str] | None:
    """Return format, session and subagent of a branch; None if unknown.

    A branch with another name belongs to the session whose last commit is nearest to its tip.
    """
    if ref.startswith(SESSIONS):
        return _parse_folder(ref.removeprefix(SESSIONS))
    tip = store.refs.read(ref)
    if tip is None:
        return None
    steps = _distances(store, tip)
    candidates = []
    for folder in dict.fromkeys(name.rpartition("/")[0] for name, _ in store.refs.iterate(FILES)):
        last = _last_commit(store, folder.removeprefix(FILES))
        if last is not None and last in steps:
            candidates.append((steps[last], folder.removeprefix(FILES)))
    return _parse_folder(min(candidates)[1]) if candidates else None


def _parse_folder(folder: str) -> tuple[str, str, str] | None:
    parts = folder.split("/")
    if len(parts) == 2:
        return parts[0], parts[1], ""
    return (parts[0], parts[1], parts[3]) if len(parts) == 4 and parts[2] == AGENTS else None


def _last_commit(store: Store, folder: str) -> ObjectId | None:
    """Return the newest commit of a session's main branch with a source file.

    None if there is no file.
    """
    place = f"{FILES}{folder}/"
    commits: list[ObjectId] = []
    for ref, tip in store.refs.iterate(place):
        if "/" not in ref.removeprefix(place):  # else a subagent's
            commits += _last_of_file(store, tip)
    side_commits: set[bytes] = set()
    for _, tip in store.refs.iterate(f"{SESSIONS}{folder}/") if commits else ():
        side_commits.update(_distances(store, tip))
    own = [oid for oid in commits if oid not in side_commits] or commits
    return max(own, key=lambda oid: read_commit(store, oid).time, default=None)


def _last_of_file(store: Store, tip: ObjectId) -> list[ObjectId]:
    """Return the commits of the last segment that has any, latest first."""
    try:
        segments = segments_of(tip, store.objects.read)
    except (NotFoundError, FormatError):
        return []
    return next((list(each.commits[::-1]) for each in reversed(segments) if each.commits), [])


def _distances(store: Store, tip: ObjectId) -> dict[ObjectId, int]:
    """Return the distance of each available ancestor from a tip."""
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
    """Return an id as one component of a ref name, unchanged if it is valid."""
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
    """Return an id as a unique component, also on case-insensitive file systems."""
    # The hash keeps ids apart that differ only in removed characters.
    clean = "".join(c if c in _GOOD else "-" for c in text)
    kept = clean.replace(".", "-").strip("-")[: MAXIMUM_CHARACTERS // 2].rstrip("-")
    return f"{kept or 'id'}-{digest(bytes_of(text)).hex()[:12]}"


def short_id(text: str) -> str:
    """Return the first characters of an id as a component of a ref name."""
    return ref_component(text[:SHORT_CHARACTERS])
