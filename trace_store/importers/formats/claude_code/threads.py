"""Threads of one session, and the commits of each round.

Rule: one API message is one message, however its lines are spread over the file, and the results of its parallel calls
are one message behind it. So the lines of a round are gathered, and leave in the order in which a model was shown
them: the API message, the results, and then whatever the user and the harness said.

Rule: numbers and ids only, no content; all of it can be saved and taken up again, so that a file that grew is read from
where it was left.

Rule: looks at links only to find what file order cannot tell: a subagent's lines among the session's, a prompt that
goes back behind what was said since, and a root at which the context began anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from trace_store.frozen import field, mutable
from trace_store.importers.contract import Place, PlannedCommit, PlannedMessage, PlannedThread
from trace_store.importers.formats.claude_code.links import Finder, Spoken
from trace_store.importers.formats.claude_code.records import (
    AUTHOR,
    is_harness_text,
    is_prompt,
    observed_usage,
)
from trace_store.importers.names import ref_component, short_id
from trace_store.importers.parts import author_of, storable_name
from trace_store.objects.parts import Part, ToolCall, ToolResult
from trace_store.transcripts.records import Record

ASSISTANT = "assistant"
RESULTS = "results"
TURN = "turn"
LATE = "late"
MICROCOMPACTION = "microcompaction"


@mutable
class Group:
    """The records of one commit to be.

    Attributes:
        kind: one of the constants above.
        number: of the planned commit.
        key: what the commit is known by.
        time: of its first record, or None.
        message_id: of an API message.
        prompt: whether a turn was begun by the user, and not by the harness.
        restart: whether the context begins anew with it.
        said: the records that say something, in order.
        records: these and the others that it carries along, in the order of the file.
        agents: ids of subagents whose results it holds.
    """

    kind: str
    number: int
    key: str
    time: int | None
    message_id: str = ""
    prompt: bool = False
    restart: bool = False
    said: list[Record] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)

    def author(self) -> str:
        """Return who the commit is from."""
        if self.kind == ASSISTANT:
            return author_of(AUTHOR, _model(self.said[-1].data))
        if self.kind == TURN and self.prompt:
            return author_of(AUTHOR, "user")
        return author_of(AUTHOR, "")

    def messages(self) -> tuple[PlannedMessage, ...]:
        """Return the messages the commit adds."""
        if self.kind == ASSISTANT:
            return (self._api_message(),)
        if self.kind in (RESULTS, LATE):
            parts = [part for record in self.said for part in record.parts]
            results = [part for part in parts if isinstance(part, ToolResult)]
            others = [part for part in parts if not isinstance(part, ToolResult)]
            return (PlannedMessage("tool", (*results, *others), kind="tool_io"),)
        return tuple(turn_message(record) for record in self.said)

    def usage(self) -> dict[str, int | str]:
        """Return what the provider reported: the last line of an API message has the final numbers."""
        if self.kind != ASSISTANT:
            return {}
        message = self.said[-1].data["message"]
        return observed_usage(message, final=message.get("stop_reason") is not None)

    def call_ids(self) -> Iterator[str]:
        """Yield the ids of the calls whose results it holds."""
        for record in self.said:
            for part in record.parts:
                if isinstance(part, ToolResult):
                    yield part.call_id

    def _api_message(self) -> PlannedMessage:
        parts: list[Part] = [part for record in self.said for part in record.parts]
        data = self.said[-1].data
        labels: tuple[str, ...] = ()
        if data.get("isApiErrorMessage") is True:
            labels = ("api-error",)
        return PlannedMessage(
            "assistant",
            tuple(parts),
            model=_model(data),
            id=storable_name(data["message"].get("id")),
            labels=labels,
            # An error of the API is shown to the user in the model's place, and never sent to a model.
            skipped=bool(labels),
        )


def turn_message(record: Record) -> PlannedMessage:
    """Return the message of a user record, an attachment or a local command."""
    data = record.data
    kind = ""
    if data.get("type") != "user" or data.get("isMeta") is True:
        kind = "instruction"
        if data.get("type") == "system" or _attachment_type(data) == "queued_command":
            kind = "freeform" if data.get("type") == "system" else ""
    elif is_harness_text(record.parts):
        kind = "freeform"
    only_shown = data.get("isVisibleInTranscriptOnly") is True and not data.get("isCompactSummary")
    return PlannedMessage("user", record.parts, kind=kind, skipped=only_shown)


def _attachment_type(data: dict[str, Any]) -> Any:
    attachment = data.get("attachment")
    return attachment.get("type") if isinstance(attachment, dict) else None


def _model(data: dict[str, Any]) -> str:
    return storable_name(data["message"].get("model"))


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


BEGINNING = -1


class Belonging(NamedTuple):
    """Where a record goes; a tuple, since there are as many as records.

    Attributes:
        thread: which thread.
        rewind: the commit that a prompt goes back to; BEGINNING for the very start; None when it does not.
        restart: whether the context begins anew.
        begun: the name of a thread that begins with it.
    """

    thread: Thread
    rewind: int | None = None
    restart: bool = False
    begun: PlannedThread | None = None


def belonging(
    session: Session, record: Record, origin: Spoken | str | None, *, own_agent: bool
) -> Belonging:
    """Return where a record that says something goes.

    Args:
        session: what is known of the session; a new subagent is added to it.
        record: the record.
        origin: what it hangs on, from the Finder.
        own_agent: whether the file is a subagent's own, so that being on the side means nothing.
    """
    if record.data.get("isSidechain") is True and not own_agent:
        return _on_the_side(session, record, origin)
    live = session.threads[session.live]
    if isinstance(origin, str):
        return _at_a_root(session, live, record, origin)
    if origin is None:
        return Belonging(live)
    thread = session.threads[origin[0]]
    if thread.side:
        return Belonging(live)
    if thread is not live and session.table.is_ancestor(origin[1], live.tip):
        thread = live
    thread.linked = True
    if thread is live and is_prompt(record) and _was_answered(session, live, origin[1]):
        target = session.table.compaction_of(origin[1], live.tip)
        if target == origin[1] or _was_answered(session, live, target):
            return Belonging(live, rewind=target)
    return Belonging(thread)


def side_thread(session: Session, record: Record, origin: Spoken | str | None) -> Thread | None:
    """Return the subagent that a record of the side belongs to, when it is known."""
    agent = record.data.get("agentId")
    if isinstance(agent, str) and agent:
        index = session.sides.get(agent)
    elif isinstance(origin, str):
        index = session.sides.get(origin)
    elif origin is not None and session.threads[origin[0]].side:
        index = origin[0]
    else:
        index = None
        if origin is None:
            index = next((t.index for t in reversed(session.threads) if t.side), None)
    return None if index is None else session.threads[index]


def _on_the_side(session: Session, record: Record, origin: Spoken | str | None) -> Belonging:
    known = side_thread(session, record, origin)
    if known is not None:
        return Belonging(known)
    live = session.threads[session.live]
    thread = session.new_thread(side=True)
    # It is called by the API message whose round is open, which may not have left it yet.
    thread.tip = live.api.number if live.api is not None else live.tip
    thread.fresh = thread.tip is not None
    agent = record.data.get("agentId")
    if isinstance(agent, str) and agent:
        session.sides[agent] = thread.index
        name = session.unique_name("agents", ref_component(agent))
    else:
        uuid = str(record.data.get("uuid") or f"line-{record.line}")
        session.sides[origin if isinstance(origin, str) else uuid] = thread.index
        name = session.unique_name("agents", short_id(uuid), ref_component(uuid))
    return Belonging(thread, begun=PlannedThread(thread.index, name))


def _at_a_root(session: Session, live: Thread, record: Record, root: str) -> Belonging:
    if live.empty and not live.root:
        live.root = root
        return Belonging(live)
    if root == live.root or root in session.restarts:
        back_to_start = root == live.root and live.linked and is_prompt(record)
        if back_to_start and not live.empty and root != record.data.get("uuid"):
            return Belonging(live, rewind=BEGINNING)
        return Belonging(live)
    if not live.linked:
        return Belonging(live)
    session.restarts.add(root)
    return Belonging(live, restart=True)


def _was_answered(session: Session, thread: Thread, number: int) -> bool:
    """Tell whether something was said after a commit that a new prompt there would leave behind."""
    for index, turn in enumerate(thread.turns):
        if turn.number == number:
            return any(later.prompt and later.kind == TURN for later in thread.turns[index + 1 :])
    here = [group.number for group in (thread.api, thread.results) if group is not None]
    if number in here:
        return any(turn.prompt and turn.kind == TURN for turn in thread.turns)
    if thread.api is not None or thread.results is not None:
        return True
    # The round holds turns alone, so what left it before them is what they answer.
    return number != thread.tip or any(turn.prompt for turn in thread.turns)
