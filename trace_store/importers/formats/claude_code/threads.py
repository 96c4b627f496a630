"""Lines of work in one session, and what its plan remembers of the commits behind them.

Rule: numbers and ids only, no content; all of it can be saved and taken up again, so that a file that grew is read from
where it was left.
"""

from __future__ import annotations

from collections.abc import Sequence
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

    __slots__ = ("answers", "calls", "cleared", "keys", "reused", "rows", "summaries")

    def __init__(self) -> None:
        # By number: (parent, how many messages, what is left of the context before). None leaves all of it;
        # what is left stands behind the commit's own messages.
        self.rows: dict[int, tuple[int | None, int, tuple[Place, ...] | None]] = {}
        self.summaries: set[int] = set()  # numbers of compactions
        self.keys: dict[int, str] = {}
        self.calls: dict[str, int] = {}  # call -> the API message's commit
        self.reused: dict[
            str, list[int]
        ] = {}  # call -> all of these, where it is the id of several
        self.answers: dict[str, int] = {}  # call -> the commit with its result
        self.cleared: dict[int, list[tuple[int, tuple[str, ...]]]] = {}

    def note_call(self, call: str, number: int) -> None:
        """Remember which commit holds a call."""
        first = self.calls.get(call, number)
        if first != number:
            self.reused.setdefault(call, [first]).append(number)
        self.calls[call] = number

    def add(self, commit: PlannedCommit, *, left: tuple[Place, ...] | None = None) -> None:
        """Remember a commit, and what it leaves of the context before it; None is all."""
        self.rows[commit.number] = (commit.parent, len(commit.messages), left)
        self.keys[commit.number] = commit.key

    def context(self, tip: int | None) -> tuple[Place, ...]:
        """Return the messages of a commit's context, in order."""
        pieces: list[Sequence[Place]] = []
        while tip is not None:
            parent, count, left = self.rows[tip]
            own = [(tip, index) for index in range(count)]
            pieces.append(own if left is None else [*own, *left])
            tip = parent if left is None else None
        return tuple(place for piece in reversed(pieces) for place in piece)

    def present(self, tip: int | None) -> set[int]:
        """Return the commits whose messages a commit's context holds."""
        return {number for number, _ in self.context(tip)}

    def compaction_of(self, number: int, tip: int | None) -> int:
        """Return the compaction behind which talk goes on that hangs on a message before it.

        Claude Code hangs the next prompt on what a compaction preserved, or on the last row before it. Both are the
        end of the context. It is not a rewind.

        Args:
            number: the commit that something hangs on.
            tip: the commit that the session goes on from.

        Returns:
            The newest such compaction; the number itself when there is none.
        """
        while tip is not None and tip != number:
            if tip not in self.rows:
                break
            parent, _, left = self.rows[tip]
            if tip in self.summaries and (
                parent == number or any(kept == number for kept, _ in left or ())
            ):
                return tip
            tip = parent
        return number

    def with_partners(self, places: Sequence[Place], tip: int | None) -> tuple[Place, ...]:
        """Return messages of a context with the calls and results that belong to them, each once."""
        present = set(self.context(tip))
        calls_of: dict[int, list[int]] = {}
        answers_of: dict[int, list[int]] = {}
        for call, number in self.calls.items():
            answer = self.answers.get(call)
            if answer is not None and (number, 0) in present and (answer, 0) in present:
                calls_of.setdefault(answer, []).append(number)
                answers_of.setdefault(number, []).append(answer)
        given = [place for place in dict.fromkeys(places) if place in present]
        found: dict[Place, None] = {}
        for place in given:
            for number in (*calls_of.get(place[0], ()), place[0]):
                found.setdefault((number, 0) if number != place[0] else place)
                for answer in answers_of.get(number, ()):
                    if (answer, 0) not in given:
                        found.setdefault((answer, 0))
        return tuple(found)

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
        present = self.present(tip)
        holders: dict[int, set[str]] = {}
        for call in calls:
            holder = self.answers.get(call)
            if holder in present and holder is not None:
                holders.setdefault(holder, set()).add(call)
        found: list[tuple[Place, tuple[str, ...]]] = []
        for holder, now in sorted(holders.items()):
            for by, earlier in self.cleared.get(holder, ()):
                if self.is_ancestor(by, tip):
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
            "reused": self.reused,
            "rows": [[n, *row, self.keys[n]] for n, row in self.rows.items()],
            "summaries": sorted(self.summaries),
        }

    @classmethod
    def load(cls, saved: Any) -> CommitTable:
        """Return what was saved."""
        table = cls()
        table.answers = dict(saved["answers"])
        table.calls = dict(saved["calls"])
        table.reused = {call: list(numbers) for call, numbers in saved["reused"].items()}
        table.cleared = {h: [(by, tuple(ids)) for by, ids in v] for h, v in saved["cleared"]}
        for number, parent, count, left, key in saved["rows"]:
            places = None if left is None else tuple((n, index) for n, index in left)
            table.rows[number] = (parent, count, places)
            table.keys[number] = key
        table.summaries = set(saved["summaries"])
        return table


def note_group(table: CommitTable, group: Group) -> None:
    """Remember where the calls or results of a group are."""
    if group.kind == ASSISTANT:
        for record in group.said:
            for part in record.parts:
                if isinstance(part, ToolCall):
                    table.note_call(part.id, group.number)
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
        strays: uuids of rows that belong to other sessions.
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
    strays: set[str] = field(default_factory=set)
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
