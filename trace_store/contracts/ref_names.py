"""Names of refs: their rules, their namespaces, and checks of names that callers give.

Rule: names become directories on every operating system, and command arguments, so one function checks both names from
callers and names in files. Full names start with `refs/`. A component that looks like an object id would be taken for a
tip.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.oid import HEX_CHARACTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PREFIX = "refs/"

MAXIMUM_COMPONENT_BYTES = 100
MAXIMUM_NAME_BYTES = 400
_FORBIDDEN = frozenset('<>:"|?*[\\~^ ')
_SPECIAL = frozenset(("HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD"))
_HEX = frozenset("0123456789abcdef")
_ACCEPTED_NAMES = 16 * 1024
"""Valid names are cached, because a command checks each several times."""
_accepted: set[str] = set()
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{name}{digit}" for name in ("com", "lpt") for digit in range(10)]
)
BRANCHES = "refs/heads/"
SESSIONS = BRANCHES + "sessions/"
"""Branches of imported sessions: `refs/heads/sessions/<format>/<id>`."""
TAGS = "refs/tags/"
CHECKPOINTS = "refs/checkpoints/"
AUTOMATIC = CHECKPOINTS + "auto/"
"""Automatic checkpoints; `undo` skips them."""
FORKS = CHECKPOINTS + "forks/"
"""Fork points, one checkpoint for each forked branch."""
TRAJECTORIES = "refs/trajectories/"
RUNS = "refs/runs/"
RECORDS = "refs/records/"
LINES = (BRANCHES, RECORDS)
"""Refs with a context, whose history verbs may extend."""
TITLES = "refs/titles/"
"""Titles that users gave to sessions: `refs/titles/<format>/<session>`."""
FILES = "refs/transcripts/"
"""Archived source files: `refs/transcripts/<format>/<session>/<id>`."""
TRASH = "refs/trash/"
RECOVERED = TRASH + "recovered/"
"""Values that refs would have lost when a journal was removed under running processes."""
STAGED = "refs/staged/"
"""Commits undone by `reset --soft`, one ref per branch: `refs/staged/heads/<branch>`."""
ORIGINAL = "ORIG_HEAD"
"""The revision for HEAD before the last command that moved it."""

MERGE, BY_TIME, CHOOSE = "merge", "by time", "choose"
"""How two tips of a ref become one: as branches, in the order of their times without conflicts, or by a choice."""


class Namespace:
    """What holds for all refs of a namespace.

    Attributes:
        prefix: of their full names.
        join: how two tips of one become one: MERGE, BY_TIME or CHOOSE.
        kind: what one is called; if it is deleted, it goes to the trash as this kind. "" if it never does.
        listing: the subject of `Repo` that lists them, or "".
        is_named_by_users: whether its names must differ by more than case, and cannot be those of revisions.
    """

    __slots__ = ("is_named_by_users", "join", "kind", "listing", "prefix")

    def __init__(
        self,
        prefix: str,
        join: str,
        kind: str,
        listing: str,
        *,
        named_by_users: bool = False,
    ) -> None:
        self.prefix = prefix
        self.join = join
        self.kind = kind
        self.listing = listing
        self.is_named_by_users = named_by_users


NAMESPACES = (
    Namespace(BRANCHES, MERGE, "branch", "branches", named_by_users=True),
    Namespace(TAGS, CHOOSE, "tag", "tags", named_by_users=True),
    Namespace(CHECKPOINTS, CHOOSE, "checkpoint", "checkpoints", named_by_users=True),
    Namespace(TRAJECTORIES, BY_TIME, "trajectory", "trajectories"),
    Namespace(RUNS, BY_TIME, "run", "runs"),
    Namespace(RECORDS, CHOOSE, "record", ""),
    Namespace(TRASH, CHOOSE, "", "trash"),
    Namespace(FILES, CHOOSE, "", "transcripts"),
    Namespace(TITLES, CHOOSE, "", "sessions"),
    Namespace(STAGED, CHOOSE, "", ""),
)
"""All namespaces that Trace gives a meaning.

Refs are files that git carries. What is local, such as HEAD, reflogs and upstreams, is no ref.
"""
_NAMED_BY_USERS = frozenset(
    each.prefix.split("/")[1] for each in NAMESPACES if each.is_named_by_users
)
_MERGED = tuple(each.prefix for each in NAMESPACES if each.join == MERGE)

_NO_BRANCHES = frozenset(("HEAD", "@", "-", ORIGINAL))


def namespace_of(name: str) -> Namespace | None:
    """Return the namespace of a full ref name; None if Trace gives it no meaning."""
    return next((each for each in NAMESPACES if name.startswith(each.prefix)), None)


def joins_by_merge(name: str) -> bool:
    """Return True if two tips of this ref (full name) are merged, so that one may contain the other."""
    return name.startswith(_MERGED)


def joins_by_time(name: str) -> bool:
    """Return True if two tips of this ref (full name) join by time, without conflicts."""
    namespace = namespace_of(name)
    return namespace is not None and namespace.join == BY_TIME


def is_ref_name(name: str) -> bool:
    """Return True if this is a valid full ref name."""
    if name in _accepted:
        return True
    if problem_of(name):
        return False
    if len(_accepted) < _ACCEPTED_NAMES:
        _accepted.add(name)
    return True


def problem_of(name: str) -> str:
    """Return the fault of a full ref name, as the end of a sentence.

    "" if valid.
    """
    if not name.startswith(PREFIX):
        return "does not start with refs/"
    if not name.isascii() or not name.isprintable():
        return "has characters other than printable ASCII"
    if len(name) > MAXIMUM_NAME_BYTES:
        return f"is longer than {MAXIMUM_NAME_BYTES} bytes"
    if "@{" in name:
        return "contains '@{'"
    if not _FORBIDDEN.isdisjoint(name):
        return 'contains a space or one of < > : " | ? * [ \\ ~ ^'
    components = name.split("/")
    if len(components) < 3:
        return "has no component after its namespace"
    if len(components) == 3 and components[2] in _SPECIAL and components[1] in _NAMED_BY_USERS:
        return "is reserved for revisions"
    for component in components:
        problem = _component_problem(component)
        if problem:
            return problem
    return ""


def _component_problem(component: str) -> str:
    if not component:
        return "has an empty component"
    if len(component) > MAXIMUM_COMPONENT_BYTES:
        return f"has a component longer than {MAXIMUM_COMPONENT_BYTES} bytes"
    if component[0] in "-.":
        return "has a component that starts with '-' or '.'"
    if component.lower().endswith((".", ".lock", ".log")):
        return (
            "has a component that ends with '.', '.lock' or '.log'"  # `a.log` is the reflog of `a`
        )
    if ".." in component:
        return "contains '..'"
    if component == "@":
        return "has a component '@'"
    if len(component) == HEX_CHARACTERS and _HEX.issuperset(component.lower()):
        return "has a component that looks like an object id"
    if component.split(".")[0].lower() in _DEVICES:
        return "has a component that is a device name on Windows"
    return ""


def named_by_users(name: str) -> bool:
    """Return True for a branch, a tag or a checkpoint, given its full name."""
    return name.split("/", 2)[1] in _NAMED_BY_USERS


class UsedNames:
    """The names in use, to find those that differ only by case.

    macOS and Windows treat such names as one file, so one ref would overwrite the other.
    """

    __slots__ = ("_by_lower",)

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._by_lower: dict[str, str] = {}
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Add a name and the folders in it."""
        lower = name.lower()
        while lower not in self._by_lower:
            self._by_lower[lower] = name
            name, _, _ = name.rpartition("/")
            lower = name.lower()
            if not name:
                break

    def case_conflict(self, name: str) -> str:
        """Return a used name or folder that differs from this one only by case, or ""."""
        while name:
            used = self._by_lower.get(name.lower(), name)
            if used != name:
                return used
            name = name.rpartition("/")[0]
        return ""


def check_text(name: object) -> None:
    """Check the type of a name.

    Raises:
        InvalidRefNameError: it is not text.
    """
    if not isinstance(name, str):
        raise errors.InvalidRefNameError(
            f"a name must be text, not {type(name).__name__}", name=name
        )


def check_ref_name(name: str) -> str:
    """Return a full ref name unchanged if it is valid.

    Raises:
        InvalidRefNameError: it is not; the message says why.
    """
    if not is_ref_name(name):
        problem = problem_of(name)
        raise errors.InvalidRefNameError(f"invalid ref name: {name[:200]!r} {problem}", name=name)
    return name


def staged_ref(ref: str) -> str:
    """Return the staging ref of a branch (full name) or of `HEAD`."""
    return STAGED + ref.removeprefix("refs/")


def full_name(ref: str) -> str:
    """Return the full name of a ref, given that or the short name of a branch.

    Raises:
        InvalidRefNameError: it is not a valid name.
    """
    check_text(ref)
    return check_ref_name(ref) if ref.startswith("refs/") else branch_ref(ref)


def short_name(ref: str) -> str:
    """Return a ref's short name, without `refs/heads/`, `refs/tags/` and the like."""
    namespace = namespace_of(ref)
    return ref.removeprefix(namespace.prefix) if namespace is not None and namespace.kind else ref


def branch_ref(name: str) -> str:
    """Return the full name of a branch, which need not exist.

    Raises:
        InvalidRefNameError: the name is invalid.
        RefNotFoundError: it is the full name of another kind of ref.
    """
    check_text(name)
    if name in _NO_BRANCHES:
        raise errors.InvalidRefNameError(f"{name} is not a valid branch name", ref=name)
    full = name if name.startswith("refs/") else BRANCHES + name
    check_ref_name(full)
    if not full.startswith(BRANCHES):
        raise errors.RefNotFoundError(f"not a branch: {name}", ref=full)
    return full


def line_ref(name: str) -> str:
    """Return the full name of a ref whose history verbs may extend: a branch, or a record given by its full name.

    Raises:
        InvalidRefNameError, RefNotFoundError: as in `branch_ref`.
    """
    check_text(name)
    return check_ref_name(name) if name.startswith(RECORDS) else branch_ref(name)


def check_case_conflicts(created: Sequence[str], names: Iterable[str]) -> None:
    """Check that no new ref differs from an existing one only by case.

    Args:
        created: full names of the new refs.
        names: full names of the existing refs.

    Raises:
        InvalidRefNameError: one does.
    """
    used = UsedNames(names)
    for name in filter(named_by_users, created):
        other = used.case_conflict(name)
        if other:
            raise errors.InvalidRefNameError(
                f"{name} differs from {other} only by case; they would be the same file on macOS and Windows",
                name=name,
                other=other,
            )
        used.add(name)
