"""The messages of the agents' sessions during a chapter.

Prompts, thinking and tool calls are not copied into a trajectory. Each event links the tip of its agent's branch. The
messages of a chapter are in the commits between the tips linked before it and the tips linked in it.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.context.content import message_line
from trace_store.frozen import replace, value
from trace_store.objects import operations as ops
from trace_store.objects.commit import read_commit
from trace_store.objects.message import load_message
from trace_store.objects.parts import Reasoning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Commit
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store
    from trace_store.trajectories.reading import Chapter

WIDTH = 120
"""Maximum number of characters in the line of a message."""


@value
class SessionMessage:
    """A message of a session.

    Attributes:
        address: its address.
        time: the time of its commit, in milliseconds since the epoch.
        agent: the author of its commit.
        line: its role and the start of its content; "" if it holds only thinking.
        thinking: the model's thinking in it, or "".
    """

    address: Address
    time: int
    agent: str
    line: str
    thinking: str


def session_messages(
    store: Store, chapter: Chapter, *, lines: bool = True, thinking: bool = True
) -> list[SessionMessage]:
    """Return the messages that were added to the linked sessions during a chapter, oldest first.

    Without `lines`, only messages with thinking are returned, and without `thinking`, only those with a line.

    Missing commits, such as those of a branch that was not fetched, are skipped.

    Raises:
        CorruptObjectError: an object is damaged.
    """
    found: list[tuple[ObjectId, Commit]] = []
    known = set(chapter.before)
    for tip in chapter.tips:
        branch: list[tuple[ObjectId, Commit]] = []
        oid: ObjectId | None = tip
        while oid is not None and oid not in known:
            known.add(oid)
            try:
                commit = read_commit(oid, store.objects.read)
            except errors.ObjectNotFoundError:
                break
            if commit.time < chapter.started:  # a branch that no earlier event links
                break
            branch.append((oid, commit))
            oid = commit.parents[0] if commit.parents else None
        found += reversed(branch)
    found.sort(key=lambda each: each[1].time)
    messages = (each for oid, commit in found for each in _messages_of(store, oid, commit))
    wanted = (
        replace(each, line=each.line if lines else "", thinking=each.thinking if thinking else "")
        for each in messages
    )
    return [each for each in wanted if each.line or each.thinking]


def _messages_of(store: Store, oid: ObjectId, commit: Commit) -> list[SessionMessage]:
    read = store.objects.read
    found = []
    for address, stored in ops.added_messages(commit, oid):
        if ops.BORN in stored:  # a merge or a cherry-pick added it
            continue
        types = {part["type"] for part in stored["parts"]}
        line = "" if types == {"reasoning"} else message_line(stored, read, WIDTH)
        thinking = ""
        if "reasoning" in types:
            parts = load_message(stored, read).parts
            thinking = "\n".join(part.text for part in parts if isinstance(part, Reasoning))
        found.append(SessionMessage(address, commit.time, commit.author, line, thinking))
    return found
