"""The to-do list of a rebase: its commits, and an action for each.

pick ab12cd34 the commit message           reapply the commit
reword ab12cd34 another message            with the rest of the line as its message
edit ab12cd34                              stop to edit its messages
squash ab12cd34                            squash it into the commit before
fixup ab12cd34                             the same, without its commit message
drop ab12cd34                              leave it out, like a commit without a line
"""

from __future__ import annotations

from trace_store import errors, history
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.merge import in_progress
from trace_store.objects.commit import parents_of, read_commit
from trace_store.store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from trace_store.store.store import Store


def commits_since(store: Store, upstream: ObjectId | None, tip: ObjectId) -> list[ObjectId]:
    """Return a tip's first-parent commits that are not ancestors of `upstream`, oldest first.

    Without an upstream, return all of them.
    """
    new = set(commits_of(store).topological([tip], [] if upstream is None else [upstream]))
    found: list[ObjectId] = []
    oid = tip
    while oid in new:
        found.append(oid)
        above = parents_of(store.objects.read(oid))
        if not above:
            break
        oid = above[0]
    found.reverse()
    return found


def add_new_commits(store: Store, stop: in_progress.Stop) -> None:
    """Add to a rebase the commits made on its branch since it began.

    Raises:
        RefChangedError: the branch no longer contains its old tip.
    """
    if stop.kind != in_progress.REBASE:
        return
    tip, before = store.refs.read(stop.ref), stop.before
    if tip == before:
        return
    new = [] if tip is None or before is None else commits_since(store, before, tip)
    if not new or parents_of(store.objects.read(new[0]))[:1] != [before]:
        raise errors.RefChangedError(
            f"{stop.ref} no longer contains the tip that is being rebased",
            ref=stop.ref,
            expected=before,
        )
    stop.inputs["steps"] += [Step(PICK, oid).as_json() for oid in new]
    stop.before = tip


PICK, REWORD, EDIT, SQUASH, FIXUP = "pick", "reword", "edit", "squash", "fixup"
DROP = "drop"
REVERT = "revert"
"""The action of a revert; not allowed in a to-do list."""
ACTIONS = (PICK, REWORD, EDIT, SQUASH, FIXUP, DROP)
SHORT = {"p": PICK, "r": REWORD, "e": EDIT, "s": SQUASH, "f": FIXUP, "d": DROP}
SQUASHING = (SQUASH, FIXUP)
"""Actions that squash a commit into the one before it."""


@value
class Step:
    """A step of a pick, revert or rebase.

    Attributes:
        action: "pick", "reword", "edit", "squash", "fixup" or "drop"; or "revert".
        oid: the commit.
        message: the new commit message; "" keeps the old one, or generates that of a revert. A "reword" needs one.
        number: the number of a single message to pick; None for the whole commit.
    """

    JSON = "commit=oid -message -number"

    action: str
    oid: ObjectId
    message: str = ""
    number: int | None = None

    def as_json(self) -> list[Any]:
        """Return it as JSON."""
        return [self.action, str(self.oid), self.message, self.number]


INSTRUCTIONS = """
# One commit per line, oldest first. Lines can be reordered.
#   pick ID              reapply the commit
#   reword ID MESSAGE    with another message
#   edit ID              stop to edit its messages
#   squash ID            squash it into the commit before
#   fixup ID             the same, without its commit message
#   drop ID              leave it out, like a commit without a line
"""


class Todo(list[Step]):
    """The steps of a rebase, oldest first, and the same as text for an editor."""

    __slots__ = ("_store",)

    def __init__(self, store: Store, steps: Iterable[Step]) -> None:
        super().__init__(steps)
        self._store = store

    def summary(self, step: Step) -> str:
        """Return the summary of a step's commit for its line in the list."""
        commit = read_commit(step.oid, self._store.objects.read)
        entry = history.log.entry_of(self._store, step.oid, commit)
        summary = entry.summary(60, target_width=40)
        return "".join(c if c.isprintable() else " " for c in summary)

    @property
    def text(self) -> str:
        """The list for an editor, with instructions."""
        lines = [f"{each.action} {each.oid.short()} {self.summary(each)}".rstrip() for each in self]
        return "".join(f"{line}\n" for line in lines) + INSTRUCTIONS

    def lines(self, text: str) -> list[str]:
        """Return the lines of an edited list, without comments and blank lines."""
        return [line for _, line in _lines(text)]

    def read(self, text: str, reword: Callable[[str], str] | None = None) -> list[Step]:
        """Return the steps of an edited list; commits without a line are dropped.

        Args:
            text: the list.
            reword: called with the old message of each commit whose `reword` line still has its summary; returns the
                new message.

        Raises:
            InvalidInputError: a line is not valid, names no commit of the range, or repeats one; a reword has no
                message, or the first commit is squashed.
        """
        return [self._reworded(each, reword) for each in _read(text, [step.oid for step in self])]

    def _reworded(self, step: Step, reword: Callable[[str], str] | None) -> Step:
        if reword is None or step.action != REWORD:
            return step
        if step.message != self.summary(step):
            return step
        before = read_commit(step.oid, self._store.objects.read).message
        return Step(REWORD, step.oid, reword(before))


def _read(text: str, known: Sequence[ObjectId]) -> list[Step]:
    steps: list[Step] = []
    for number, line in _lines(text):
        words = line.split(None, 2)
        action = SHORT.get(words[0], words[0])
        if action not in ACTIONS or len(words) < 2:
            raise errors.InvalidInputError(
                f"line {number} of the to-do list is not valid: {line[:80]!r}",
                code=errors.ErrorCode.INVALID_TODO,
                line=number,
            )
        oid = _find_commit(words[1], known, number)
        if any(step.oid == oid for step in steps):
            raise errors.InvalidInputError(f"line {number} repeats {oid.short()}", line=number)
        message = words[2].strip() if action == REWORD and len(words) > 2 else ""
        steps.append(Step(action, oid, message))
    return complete(steps, known)


def complete(steps: Sequence[object], known: Sequence[ObjectId]) -> list[Step]:
    """Check steps, and add a `drop` for each commit without one.

    Raises:
        InvalidInputError: a value is not a step, an action is unknown, a commit is not in the range or repeated, a
            reword has no message, or the first commit is squashed.
    """
    if isinstance(steps, str | bytes) or not hasattr(steps, "__iter__"):
        raise errors.InvalidInputError(
            f"a plan must be a list of steps, not {type(steps).__name__}"
        )
    range_: set[ObjectId] = {*known}
    listed: set[ObjectId] = set()
    found: list[Step] = []
    for step in steps:
        if not isinstance(step, Step):
            raise errors.InvalidInputError(f"a plan must contain only steps, not {step!r:.80}")
        found.append(step)
        if step.action not in ACTIONS:
            raise errors.InvalidInputError(
                f"{str(step.action)[:40]!r} is not one of {', '.join(ACTIONS)}"
            )
        if step.action == REWORD and not step.message:
            raise errors.InvalidInputError(f"reword {step.oid.short()} needs a message")
        if step.oid not in range_:
            raise errors.InvalidInputError(f"{str(step.oid)[:12]} is not a commit of the range")
        if step.oid in listed:
            raise errors.InvalidInputError(f"{step.oid.short()} is repeated")
        listed.add(step.oid)
    first = next((step for step in found if step.action != DROP), None)
    if first is not None and first.action in SQUASHING:
        raise errors.InvalidInputError(
            "the first commit cannot be squashed: no commit comes before it"
        )
    # The added drops come first, so that messages that depend on these commits are left out as well.
    return [*(Step(DROP, oid) for oid in known if oid not in listed), *found]


def _lines(text: str) -> list[tuple[int, str]]:
    """Return the lines of a list with their numbers, without comments and blank lines."""
    numbered = enumerate(text.splitlines(), 1)
    return [(at, line) for at, line in numbered if line.strip() and line.lstrip()[0] != "#"]


def _find_commit(prefix: str, known: Sequence[ObjectId], line: int) -> ObjectId:
    found = [oid for oid in known if str(oid).startswith(prefix)]
    if len(found) != 1 or len(prefix) < 4:
        raise errors.InvalidInputError(
            f"line {line} does not name a commit of the range: {prefix[:64]!r}", line=line
        )
    return found[0]
