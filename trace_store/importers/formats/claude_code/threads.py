"""Lines of work in one session, and what its plan remembers of the commits behind them.

Rule: numbers and ids only, no content; all of it can be saved and taken up again, so that a file that grew is read from
where it was left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trace_store.importers.contract import Place, PlannedCommit, Record
from trace_store.importers.formats.claude_code.finding import Finder
from trace_store.importers.formats.claude_code.groups import ASSISTANT, RESULTS, Group
from trace_store.objects.parts import ToolCall
from trace_store.values import field, mutable


@mutable
class Thread:
    """One line of work: the session itself, a subagent, or what a rewind left behind.

    Attributes:
        index: its number.
        side: whether it is a subagent inside the session's file.
        tip: the last commit that left its round, or the one it branched from, or None.
        last: the last commit with messages in file order, also when it is still in the round.
        time: of the last record that had one.
        root: the uuid at which its chain of parents ends, when it is known.
        linked: whether a parent link of it was ever found, so that missing ones mean something.
        fresh: whether its next commit takes the context so far out, since a subagent begins without it.
        api, results, turns: the round: the API message, the results, and the rest.
        waiting: records without a place of their own, which go with the next that has one.
        held: groups of closed rounds that wait for the commit they branch from.
    """

    index: int
    side: bool = False
    tip: int | None = None
    last: int | None = None
    time: int = 0
    root: str = ""
    linked: bool = False
    fresh: bool = False
    api: Group | None = None
    results: Group | None = None
    turns: list[Group] = field(default_factory=list)
    waiting: list[Record] = field(default_factory=list)
    held: list[Group] = field(default_factory=list)

    def groups(self) -> list[Group]:
        """Return the groups of the round in the order in which they leave it."""
        return [group for group in (self.api, self.results, *self.turns) if group is not None]

    def clear(self) -> None:
        """Begin a new round."""
        self.api = self.results = None
        self.turns = []

    @property
    def empty(self) -> bool:
        """Whether nothing was said in it."""
        return self.tip is None and self.last is None


class CommitTable:
    """What is remembered of planned commits: how they hang together, and where calls and results are."""

    __slots__ = ("answers", "calls", "cleared", "keys", "rows")

    def __init__(self) -> None:
        # By number: (parent, how many messages, whether the context before is gone).
        self.rows: dict[int, tuple[int | None, int, bool]] = {}
        self.keys: dict[int, str] = {}
        self.calls: dict[str, int] = {}  # call -> the API message's commit
        self.answers: dict[str, int] = {}  # call -> the commit with its result
        self.cleared: dict[int, list[tuple[int, tuple[str, ...]]]] = {}

    def add(self, commit: PlannedCommit, *, resets: bool) -> None:
        """Remember a commit."""
        self.rows[commit.number] = (commit.parent, len(commit.messages), resets)
        self.keys[commit.number] = commit.key

    def chain(self, tip: int | None) -> Iterator[int]:
        """Yield the commits whose messages a commit's context holds, from the newest back."""
        while tip is not None:
            yield tip
            parent, _, resets = self.rows[tip]
            tip = None if resets else parent

    def context(self, tip: int | None) -> tuple[Place, ...]:
        """Return the messages of a commit's context, in order."""
        return tuple(
            (number, index)
            for number in reversed(list(self.chain(tip)))
            for index in range(self.rows[number][1])
        )

    def after(self, ancestor: int | None, tip: int | None) -> list[int]:
        """Return the commits between two, the tip included, oldest first; all of them when there is no ancestor."""
        found = []
        while tip is not None and tip != ancestor:
            found.append(tip)
            tip = self.rows[tip][0]
        return found[::-1]

    def is_ancestor(self, number: int, tip: int | None) -> bool:
        """Tell whether a commit is another one or lies behind it."""
        while tip is not None and tip != number:
            tip = self.rows[tip][0] if tip in self.rows else None
        return tip is not None

    def clearing(
        self, tip: int | None, number: int, calls: list[str]
    ) -> list[tuple[Place, tuple[str, ...]]]:
        """Return which results of which messages are cleared once these calls are, as seen from a commit."""
        present = set(self.chain(tip))
        holders: dict[int, set[str]] = {}
        for call in calls:
            holder = self.answers.get(call)
            if holder in present and holder is not None:
                holders.setdefault(holder, set()).add(call)
        found: list[tuple[Place, tuple[str, ...]]] = []
        for holder, now in sorted(holders.items()):
            for by, earlier in self.cleared.get(holder, ()):
                if by in present:
                    now.update(earlier)
            ids = tuple(sorted(now))
            self.cleared.setdefault(holder, []).append((number, ids))
            found.append(((holder, 0), ids))
        return found

    def save(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            "answers": self.answers,
            "calls": self.calls,
            "cleared": [[h, [[by, list(ids)] for by, ids in v]] for h, v in self.cleared.items()],
            "rows": [[n, *row, self.keys[n]] for n, row in self.rows.items()],
        }

    @classmethod
    def load(cls, saved: Any) -> CommitTable:
        """Return what was saved."""
        table = cls()
        table.answers = dict(saved["answers"])
        table.calls = dict(saved["calls"])
        table.cleared = {h: [(by, tuple(ids)) for by, ids in v] for h, v in saved["cleared"]}
        for number, parent, count, resets, key in saved["rows"]:
            table.rows[number] = (parent, count, resets)
            table.keys[number] = key
        return table


def note_group(table: CommitTable, group: Group) -> None:
    """Remember where the calls or results of a group are."""
    if group.kind == ASSISTANT:
        for record in group.said:
            for part in record.parts:
                if isinstance(part, ToolCall):
                    table.calls[part.id] = group.number
    elif group.kind == RESULTS:
        for call in group.call_ids():
            table.answers[call] = group.number


@mutable
class Session:
    """All that a plan remembers of the file so far.

    Attributes:
        threads: by their index; the first is the session's own beginning.
        live: the thread that the session goes on in.
        sides: subagents inside the file, by agent id or by the uuid of their first record.
        names: names of threads that are taken.
        restarts: uuids of roots at which the context began anew.
        keys: of all planned commits.
        message_ids: of API messages that left their round.
        next_number: for the next planned commit.
        open_count: parts in open rounds.
        holding: threads with groups that wait.
    """

    threads: list[Thread] = field(default_factory=lambda: [Thread(0)])
    live: int = 0
    sides: dict[str, int] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    restarts: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    message_ids: set[str] = field(default_factory=set)
    next_number: int = 0
    open_count: int = 0
    holding: set[int] = field(default_factory=set)
    finder: Finder = field(default_factory=Finder)
    table: CommitTable = field(default_factory=CommitTable)

    def new_thread(self, *, side: bool = False) -> Thread:
        """Add a thread."""
        thread = Thread(len(self.threads), side=side)
        self.threads.append(thread)
        return thread

    def number(self) -> int:
        """Return the number of the next planned commit."""
        self.next_number += 1
        return self.next_number - 1

    def unique_key(self, key: str) -> str:
        """Return the key, or with a count when the transcript uses it for something else too."""
        count, unique = 1, key
        while unique in self.keys:
            count += 1
            unique = f"{key}#{count}"
        self.keys.add(unique)
        return unique

    def unique_name(self, folder: str, *ids: str) -> str:
        """Return the first of the ids whose name under the folder is free."""
        for candidate in ids:
            name = f"{folder}/{candidate}"
            if name.lower() not in map(str.lower, self.names):
                self.names.add(name)
                return name
        return self.unique_name(folder, *(f"{candidate}-2" for candidate in ids))
