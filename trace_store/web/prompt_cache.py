"""Requests that break a provider's prompt cache: they do not start with the previous request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.context.wording import excerpt
from trace_store.history.diff import EDITED, GHOSTED, MOVED, REMOVED, ContextDiff
from trace_store.history.log import LogEntry
from trace_store.objects import operations as ops
from trace_store.repo.repository import Repo

APPENDS = {ops.ADD, ops.USAGE, ops.CONFIG}
"""Operations that leave earlier messages as they are."""
BREACHES = {
    REMOVED: "was removed",
    EDITED: "was edited",
    GHOSTED: "became a placeholder",
    MOVED: "has another place",
}
"""What can happen to a message that was sent, by kind of change."""
MOST_STEPS = 5_000
"""Commits to search for another one."""
MOST_BREACHES = 20


@value
class Breach:
    """What broke the prompt cache.

    Attributes:
        text: what happened, in words.
        commit: the commit that did it, if it is known.
    """

    text: str
    commit: ObjectId | None = None


def request_before(repo: Repo, commit: ObjectId) -> ObjectId | None:
    """Return the commit whose context was sent last, up to a commit: the parent of the last answer.

    If the first commit has an answer, its own context is taken as the request.
    """
    answer = next(filter(_is_answer, _steps(repo, commit)), None)
    return next(iter(answer.parents), answer.oid) if answer is not None else None


def breaches(repo: Repo, answers: Iterable[ObjectId]) -> dict[ObjectId, Breach]:
    """Return what broke the prompt cache before some answers of a branch, the oldest answer first."""
    found: dict[ObjectId, Breach] = {}
    wanted = list(answers)
    answer: LogEntry | None = None
    is_changed = False
    for entry in _steps(repo, wanted[-1]) if wanted else ():
        is_changed = is_changed or not APPENDS.issuperset(entry.operations)
        if not _is_answer(entry):
            continue
        if answer is not None and is_changed and entry.parents:
            breach = breach_of(repo.diff(entry.parents[0], answer.parents[0]))
            if breach is not None:
                found[answer.oid] = breach
        answer, is_changed = None, False
        if entry.oid in wanted and entry.parents:
            wanted.remove(entry.oid)
            answer = entry
        if (answer is None and not wanted) or len(found) == MOST_BREACHES:
            break
    return found


def _steps(repo: Repo, commit: ObjectId) -> Iterator[LogEntry]:
    return islice(repo.log(commit, first_parent=True), MOST_STEPS)


def _is_answer(entry: LogEntry) -> bool:
    """Return True if a model wrote a message of the commit; the summary of a compaction answers nothing."""
    if not entry.message_count or ops.REPLACE in entry.operations:
        return False
    return any(
        stored["role"] == "assistant" for _, stored in ops.added_messages(entry.commit, entry.oid)
    )


def breach_of(diff: ContextDiff) -> Breach | None:
    """Return what first differs from the request before; None if all of it is sent again."""
    if diff.tools_differ:
        names = ", ".join(dict.fromkeys((*diff.tools_before, *diff.tools_after)))
        return Breach(f"the tools changed ({excerpt(names, 120)}), and a request begins with them")
    place = diff.common_count
    if place == len(diff.before):
        return None
    for change in diff.changes:
        was, known = change.before, [kind for kind in BREACHES if kind in change.kinds]
        if was is not None and was.position == place and known:
            by = change.before_by or change.after_by
            is_replaced = known == [REMOVED] and by is not None and by.operation == ops.REPLACE
            what = "was replaced" if is_replaced else BREACHES[known[0]]
            text = f"message {place + 1} {what} ({was.summary(60) or was.role})"
            return Breach(text, None if by is None else by.commit)
    return Breach(f"a message was inserted before message {place + 1}")
