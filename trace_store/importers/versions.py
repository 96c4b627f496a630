"""Which of two versions of a session goes on from the other, where a plan and a branch part.

Rule: a function of the commits on both sides since they parted. A round has one API message at most; only the
unfinished end of a file, which is a round, is ever planned anew.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from trace_store.importers.known import key_of
from trace_store.importers.making import messages_of
from trace_store.objects.commit import Commit
from trace_store.oid import ObjectId
from trace_store.transcripts.sources import Read, record_count, records_left
from trace_store.transcripts.telling import event_of


def is_older(own: Sequence[Commit], over: Sequence[Commit], read: Read) -> bool:
    """Tell whether a plan ends before a branch does: what it says behind the place where they part is on the branch.

    Args:
        own: the plan's commits since then.
        over: those of the branch.
        read: returns objects.
    """
    keys = {key_of(commit) for commit in over}
    speaking = [commit for commit in own if _speaks(commit)]
    if not speaking and not any(map(_speaks, over)):
        # Both only carry records at the end of the file, of which the younger one has more.
        return sum(record_count(c, read) for c in own) < sum(record_count(c, read) for c in over)
    events = sum(1 for commit in speaking if event_of(commit))
    return (
        len(speaking) < len(over)
        and all(key_of(commit) in keys for commit in speaking)
        and _api_messages(speaking) + events <= 1
    )


def is_made_anew(over: Sequence[Commit], keys: Container[str], *, based: bool) -> bool:
    """Tell whether a plan has all that some commits at the end of a branch have, so that they can give way.

    They do when they were the unfinished end of the file, as it was then. Otherwise the file is another version of the
    session. And all of a subagent's commits give way when it becomes known where it was called from.

    Args:
        over: the commits.
        keys: what the plan's commits are known by.
        based: whether the plan is of a subagent whose caller is known.
    """
    speaking = [commit for commit in over if not _only_carries(commit)]
    if not all(key_of(commit) in keys for commit in speaking):
        return False
    return _api_messages(speaking) <= 1 or (based and not over[-1].parents)


def before_carried(
    tip: ObjectId | None, stop: Container[bytes], read: Read
) -> tuple[ObjectId | None, set[bytes]]:
    """Return where a branch would end without the records it only carries at its end, and these.

    Args:
        tip: where it ends.
        stop: commits at which it is followed no further.
        read: returns objects.
    """
    records: set[bytes] = set()
    while tip is not None and tip not in stop:
        commit = Commit.decode(read(tip))
        if not _only_carries(commit) or not commit.parents:
            break
        records.update(records_left(commit, read))
        tip = commit.parents[0]
    return tip, records


def since_parting(tip: ObjectId | None, over: Sequence[Commit], read: Read) -> list[Commit]:
    """Return the commits that lead to one, newest first, since it parted from those of a branch."""
    shared = {bytes(commit.parents[0]) for commit in over if commit.parents}
    own: list[Commit] = []
    while tip is not None and tip not in shared:
        own.append(Commit.decode(read(tip)))
        tip = own[-1].parents[0] if own[-1].parents else None
    return own


def _only_carries(commit: Commit) -> bool:
    """Tell whether all that an imported commit is for are the records at the end of the file, as it was then."""
    return bool(key_of(commit)) and not _speaks(commit)


def _speaks(commit: Commit) -> bool:
    return bool(commit.operations or event_of(commit))


def _api_messages(commits: Sequence[Commit]) -> int:
    return sum(
        message["role"] == "assistant" for commit in commits for message in messages_of(commit)
    )
