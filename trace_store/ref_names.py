"""Which names a ref may have.

Rule: names become directories on every operating system, and arguments of commands, so one function decides, for
names that a caller gives and for those that stand in a file alike. Full names begin with `refs/`; a component that
looks like an object id would be taken for a tip.
"""

from __future__ import annotations

from trace_store.oid import HEX_CHARACTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIX = "refs/"

MAXIMUM_COMPONENT_BYTES = 100
MAXIMUM_NAME_BYTES = 400
_FORBIDDEN = frozenset('<>:"|?*[\\~^ ')
_SPECIAL = frozenset(("HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD"))
_NAMED_BY_USERS = frozenset(("heads", "tags", "checkpoints"))
_HEX = frozenset("0123456789abcdef")
_ACCEPTED_NAMES = 16 * 1024
"""Names that were found to be allowed are remembered: a command meets each several times."""
_accepted: set[str] = set()
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{name}{digit}" for name in ("com", "lpt") for digit in range(10)]
)


def is_ref_name(name: str) -> bool:
    """Tell whether this is an allowed full ref name."""
    if name in _accepted:
        return True
    if problem_of(name):
        return False
    if len(_accepted) < _ACCEPTED_NAMES:
        _accepted.add(name)
    return True


def problem_of(name: str) -> str:
    """Return what is wrong with a full ref name, as the end of a sentence; nothing when it is allowed."""
    if not name.startswith(PREFIX):
        return "does not begin with refs/"
    if not name.isascii() or not name.isprintable():
        return "holds characters other than printable ASCII"
    if len(name) > MAXIMUM_NAME_BYTES:
        return f"is longer than {MAXIMUM_NAME_BYTES} bytes"
    if "@{" in name:
        return "holds '@{'"
    if not _FORBIDDEN.isdisjoint(name):
        return 'holds a space or one of < > : " | ? * [ \\ ~ ^'
    components = name.split("/")
    if len(components) < 3:
        return "has no part after its namespace"
    if len(components) == 3 and components[2] in _SPECIAL and components[1] in _NAMED_BY_USERS:
        return "is a name that revisions use for something else"
    for component in components:
        problem = _component_problem(component)
        if problem:
            return problem
    return ""


def _component_problem(component: str) -> str:
    if not component:
        return "has an empty part"
    if len(component) > MAXIMUM_COMPONENT_BYTES:
        return f"has a part longer than {MAXIMUM_COMPONENT_BYTES} bytes"
    if component[0] in "-.":
        return "has a part that begins with '-' or '.'"
    if component.lower().endswith((".", ".lock", ".log")):
        return "has a part that ends with '.', '.lock' or '.log'"  # `a.log` is the reflog of `a`
    if ".." in component:
        return "holds '..'"
    if component == "@":
        return "has a part '@'"
    if len(component) == HEX_CHARACTERS and _HEX.issuperset(component.lower()):
        return "has a part that looks like an object id"
    if component.split(".")[0].lower() in _DEVICES:
        return "has a part that names a device on Windows"
    return ""


def named_by_users(name: str) -> bool:
    """Return True for a branch, a tag or a checkpoint, given its full name."""
    return name.split("/", 2)[1] in _NAMED_BY_USERS


class Spellings:
    """The spellings of names that are in use, to find those that differ by case only.

    macOS and Windows take such names for the same file, so one ref would overwrite the other.
    """

    __slots__ = ("_by_lower",)

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._by_lower: dict[str, str] = {}
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Take note of a name in use, and of the folders in it."""
        lower = name.lower()
        while lower not in self._by_lower:
            self._by_lower[lower] = name
            name, _, _ = name.rpartition("/")
            lower = name.lower()
            if not name:
                break

    def twin(self, name: str) -> str:
        """Return a name, or folder of one, in use that differs from this one by case only; "" if there is none."""
        while name:
            there = self._by_lower.get(name.lower(), name)
            if there != name:
                return there
            name = name.rpartition("/")[0]
        return ""
