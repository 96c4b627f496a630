"""The to-do list of a rebase: which commits, and what becomes of each.

Rule: reads, and changes nothing but the steps of what is in progress.

    pick ab12cd34 what the commit says         made anew as it is
    reword ab12cd34 another message            with the rest of the line as its message
    edit ab12cd34                              stops, for other wordings of its messages
    squash ab12cd34                            becomes one with the commit before it
    fixup ab12cd34                             the same, and what was said about it is left out
    drop ab12cd34                              left out, as is a commit without a line

Rule: text in, steps out; what an id means is asked of whoever knows the commits.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.frozen import value
from trace_store.merge import in_progress
from trace_store.objects.commit import parents_of
from trace_store.oid import ObjectId
from trace_store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from trace_store.store.handle import Store


def commits_since(store: Store, upstream: ObjectId | None, tip: ObjectId) -> list[ObjectId]:
    """Return the commits on a tip's line of first parents that another has not in its past, oldest first.

    Without another they are all of the line.
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


def take_along(store: Store, stop: in_progress.Stop) -> None:
    """Add to a rebase what was committed on the branch since it was looked at.

    Raises:
        RefChangedError: the branch does not go on from where it was.
    """
    tip, before = store.refs.read(stop.ref), stop.before
    if stop.kind != in_progress.REBASE or tip == before:
        return
    new = [] if tip is None or before is None else commits_since(store, before, tip)
    if not new or parents_of(store.objects.read(new[0]))[:1] != [before]:
        raise errors.RefChangedError(
            f"{stop.ref} went elsewhere since the rebase began", ref=stop.ref, expected=before
        )
    stop.inputs["steps"] += [Step(PICK, oid).as_json() for oid in new]
    stop.before = tip


PICK, REWORD, EDIT, SQUASH, FIXUP = "pick", "reword", "edit", "squash", "fixup"
DROP = "drop"
DEEDS = (PICK, REWORD, EDIT, SQUASH, FIXUP, DROP)
SHORT = {"p": PICK, "r": REWORD, "e": EDIT, "s": SQUASH, "f": FIXUP, "d": DROP}
JOINED = (SQUASH, FIXUP)
"""What becomes one with the commit before it."""


@value
class Step:
    """What becomes of one commit.

    Attributes:
        deed: "pick", "reword", "edit", "squash", "fixup" or "drop".
        oid: the commit.
        message: for "reword" what is said about it; otherwise "".
        number: of the one message that is picked; None for the commit.
    """

    deed: str
    oid: ObjectId
    message: str = ""
    number: int | None = None

    def as_json(self) -> list[Any]:
        """Return it as JSON."""
        return [self.deed, str(self.oid), self.message, self.number]


def written(steps: Iterable[Step], say: Callable[[ObjectId], str]) -> str:
    """Return a list as text, with what each commit says, and how to change it."""
    lines = [f"{step.deed} {step.oid.short()} {say(step.oid)}".rstrip() for step in steps]
    lines += [
        "",
        "# One commit a line, oldest first; lines may be put in another order.",
        "#   pick ID              as it is",
        "#   reword ID MESSAGE    with another message",
        "#   edit ID              stop, for other wordings of its messages",
        "#   squash ID            one with the commit before it",
        "#   fixup ID             the same, without what was said about it",
        "#   drop ID              left out, as is a commit without a line",
    ]
    return "\n".join(lines) + "\n"


def read(text: str, known: Sequence[ObjectId]) -> list[Step]:
    """Return the steps of a list; commits without a line are dropped.

    Raises:
        InvalidInputError: a line is not understood, or names no commit of the range, or one twice.
    """
    steps: list[Step] = []
    for number, line in lines(text):
        words = line.split(None, 2)
        deed = SHORT.get(words[0], words[0])
        if deed not in DEEDS or len(words) < 2:
            raise errors.InvalidInputError(
                f"line {number} of the to-do list is not understood: {line[:80]!r}",
                code=errors.ErrorCode.INVALID_TODO,
                line=number,
            )
        oid = _named(words[1], known, number)
        if any(step.oid == oid for step in steps):
            raise errors.InvalidInputError(f"line {number} names {oid.short()} again", line=number)
        said = words[2].strip() if deed == REWORD and len(words) > 2 else ""
        steps.append(Step(deed, oid, said))
    return checked(steps, known)


def checked(steps: Sequence[object], known: Sequence[ObjectId]) -> list[Step]:
    """Return steps, and that commits without one are dropped.

    Raises:
        InvalidInputError: they are no steps; a step does what there is no word for, or with a commit that is none of
            the range, or names one again; one rewords without a message; or the first is squashed into nothing.
    """
    if isinstance(steps, str | bytes) or not hasattr(steps, "__iter__"):
        raise errors.InvalidInputError(f"a plan is a list of steps, not {type(steps).__name__}")
    range_: set[ObjectId] = {*known}
    listed: set[ObjectId] = set()
    found: list[Step] = []
    for step in steps:
        if not isinstance(step, Step):
            raise errors.InvalidInputError(f"a plan is made of steps, and has {step!r:.80}")
        found.append(step)
        if step.deed not in DEEDS:
            raise errors.InvalidInputError(f"{str(step.deed)[:40]!r} is none of {', '.join(DEEDS)}")
        if step.deed == REWORD and not step.message:
            raise errors.InvalidInputError(f"there is no message to reword {step.oid.short()} with")
        if step.oid not in range_:
            raise errors.InvalidInputError(f"{str(step.oid)[:12]} is no commit of the range")
        if step.oid in listed:
            raise errors.InvalidInputError(f"{step.oid.short()} is named again")
        listed.add(step.oid)
    first = next((step for step in found if step.deed != DROP), None)
    if first is not None and first.deed in JOINED:
        raise errors.InvalidInputError("there is no commit before the first to squash it into")
    # First, so that what hangs on their messages is left out too, as where they are dropped by a line.
    return [*(Step(DROP, oid) for oid in known if oid not in listed), *found]


def lines(text: str) -> list[tuple[int, str]]:
    """Return the lines of a list that say something, each with its number."""
    numbered = enumerate(text.splitlines(), 1)
    return [(at, line) for at, line in numbered if line.strip() and line.lstrip()[0] != "#"]


def _named(prefix: str, known: Sequence[ObjectId], line: int) -> ObjectId:
    found = [oid for oid in known if str(oid).startswith(prefix)]
    if len(found) != 1 or len(prefix) < 4:
        raise errors.InvalidInputError(
            f"line {line} names no commit of the range: {prefix[:64]!r}", line=line
        )
    return found[0]
