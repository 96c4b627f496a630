"""Automatic checkpoints: made before a merge and at milestones in messages.

They are off unless the setting `automatic_checkpoints` names triggers. `before` is called before a command that changes
a branch, `after` when a commit was added, and `ImportMilestones` while an import runs. Names such as
`auto/20260302-091500000-tests-passed-8a3fe622` hold time, trigger and commit, so that the limits on number and age need
no tag to be read. `undo` skips automatic checkpoints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from trace_store import checkpoints, context, errors
from trace_store.base.frozen import value
from trace_store.base.ident import format_time
from trace_store.base.oid import ObjectId
from trace_store.context.activity import Action, ToDo
from trace_store.context.compiler import ContextCompiler
from trace_store.contracts import FAST, RefEdit
from trace_store.contracts.protocols import RefReader
from trace_store.contracts.ref_names import AUTOMATIC
from trace_store.history.draft import CommitResult
from trace_store.importers.contract import PlannedMessage
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.message import Message, load_message, load_parts
from trace_store.objects.operations import stored_messages
from trace_store.objects.parts import Part, Text, ToolCall, ToolResult
from trace_store.objects.reports import report_of
from trace_store.store.config import AUTOMATIC_SETTING, TRIGGERS
from trace_store.store.store import Store
from trace_store.writer import Writer

Messages = Sequence[Message | PlannedMessage]
Found = Sequence[tuple[str | None, "Milestone"]]
"""Milestones with the full name of their branch, None if HEAD is detached."""

LIMIT, DAYS, STEP = (f"automatic_checkpoint_{what}" for what in ("limit", "days", "tokens"))
DEFAULTS = {LIMIT: 20, DAYS: 30, STEP: 50_000}
MERGE, REBASE, COMPRESS, TODOS, FILES, TESTS, TOPIC, TOKENS = TRIGGERS
_OF_TOOLS = frozenset((TODOS, FILES, TESTS))
_MILESTONES = _OF_TOOLS | {TOPIC, TOKENS}
_TOOL_PARTS = (ToolCall.type, ToolResult.type)
_PROMPT_PARTS = (*_TOOL_PARTS, Text.type)
MAXIMUM_COMMITS = 200
"""Number of newest commits of an imported file to check."""
_EARLIER_COMMITS = 60
"""Number of commits before the new ones in which calls, prompts and the last usage report are looked for."""
_TOPIC_PROMPTS, _TOPIC_CHARACTERS, _TOPIC_WORDS, _TOPIC_OVERLAP = 3, 1_000, 8, 0.1
_DAY = 86_400_000
_AHEAD = 1_000
"""How many milliseconds the times of checkpoints may be ahead of the clock."""
_STAMP = str.maketrans("T", "-", "-:.Z")
_NAME = AUTOMATIC + r"(\d{8}-\d{9})-([a-z-]+)-([0-9a-f]{12})"
_NO_MARKS = dict.fromkeys(map(ord, "-T:.Z"))
_WORD = r"\w{4,}"
_COMMON = """
about after also because been before could does every from have here into just like make more need only other please
should some than that their them then there these they this those what when where which will with would your
"""
"""Words that tell nothing about a topic."""


@value
class Milestone:
    """A commit at which an automatic checkpoint is due, with its trigger and the reason."""

    commit: ObjectId
    trigger: str
    reason: str


@value
class _NewCommit:
    """A new commit; `token_count` is that of its usage report, or 0."""

    oid: ObjectId
    parent: ObjectId | None
    messages: Messages
    token_count: int


def triggers(store: Store) -> frozenset[str]:
    """Return the triggers that are on; reads nothing but the settings in memory."""
    said = str(store.config.get(AUTOMATIC_SETTING))
    return frozenset(TRIGGERS if said == "on" else said.split(",")) & {*TRIGGERS}


def before(writer: Writer, change: str) -> None:
    """Save a branch before a change, if that is a trigger ("merge", "rebase" or "compress") and is on."""
    store = writer.store
    if change in TRIGGERS and change in triggers(store):
        head = store.refs.head()
        if head.oid is not None:
            _write(writer, [(head.ref, Milestone(head.oid, change, f"before a {change}"))])


def after(writer: Writer, result: CommitResult) -> list[str]:
    """Save the milestones of a new commit, and return the refs of the checkpoints.

    Disk errors are ignored, since the commit is already written.
    """
    store, tip = writer.store, result.oid
    wanted = triggers(store) & _MILESTONES
    found = [*_of_messages(store, [_read_new(store, tip)], wanted)] if wanted - {TOKENS} else []
    if TOKENS in wanted:
        total, added = _estimate(writer.contexts, tip)
        found += _of_tokens(store, [(tip, total - added), (tip, total)])
    return _save(writer, [(result.ref, each) for each in found])


class ImportMilestones:
    """Milestones of an import, found in the messages that it has in memory; a `Watcher` of `import_paths`.

    Of each file, the last MAXIMUM_COMMITS new commits are looked at. Tokens are those of usage reports, since counting
    costs more than the import.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._store = store = writer.store
        self._wanted = triggers(store) & _MILESTONES
        self._commits: dict[ObjectId, _NewCommit] = {}
        self._found: list[tuple[str | None, Milestone]] = []

    def note(
        self, oid: ObjectId, parent: ObjectId | None, messages: Messages, token_count: int
    ) -> None:
        """Keep a new commit until the end of its file."""
        self._commits[oid] = _NewCommit(oid, parent, messages, token_count)
        if len(self._commits) > MAXIMUM_COMMITS:
            del self._commits[next(iter(self._commits))]

    def end_file(self, branches: Iterable[tuple[str, ObjectId | None]]) -> None:
        """Find the milestones on the branches of a file, given their tips."""
        for ref, tip in branches:
            line: list[_NewCommit] = []
            while tip is not None and (new := self._commits.pop(tip, None)) is not None:
                line.append(new)
                tip = new.parent
            if line:
                line.reverse()
                found = [*_of_messages(self._store, line, self._wanted)]
                if TOKENS in self._wanted:
                    found += _of_tokens(self._store, _reported(self._store, line))
                self._found += [(ref, each) for each in found]
        self._commits.clear()

    def found(self) -> list[tuple[str | None, Milestone]]:
        """Return the milestones so far, with their branches."""
        return self._found

    def take(self, found: list[tuple[str | None, Milestone]]) -> None:
        """Add the milestones of a file."""
        self._found += found

    def end(self, _: object) -> None:
        """Save the milestones; disk errors are ignored, as in `after`."""
        _save(self._writer, self._found)


def _read_new(store: Store, oid: ObjectId) -> _NewCommit:
    """Return a stored commit with its tool calls, results and prompts."""
    read = store.objects.read
    commit = read_commit(oid, read)
    messages = []
    for stored in stored_messages(commit):
        wanted = _PROMPT_PARTS if stored["role"] == "user" else _TOOL_PARTS
        if parts := [part for part in stored["parts"] if part["type"] in wanted]:
            messages.append(Message(stored["role"], load_parts(parts, read)))
    return _NewCommit(oid, commit.parents[0] if commit.parents else None, messages, 0)


def _of_messages(
    store: Store, line: Sequence[_NewCommit], wanted: frozenset[str]
) -> Iterator[Milestone]:
    """Yield the milestones in the messages of new commits, oldest first."""
    tools = _ToolMilestones(store, line[0].parent, wanted) if wanted & _OF_TOOLS else None
    topics = _Topics(store, line[0].parent) if TOPIC in wanted else None
    for new in line:
        for message in new.messages:
            if tools is not None:
                yield from tools.of(new.oid, message.parts)
            if topics is not None and message.role == "user":
                said = "\n".join(part.text for part in message.parts if isinstance(part, Text))
                if topics.begins(said) and new.parent is not None:
                    yield Milestone(new.parent, TOPIC, "before a new topic")


class _ToolMilestones:
    """Milestones in tool calls and their results."""

    def __init__(self, store: Store, before: ObjectId | None, wanted: frozenset[str]) -> None:
        self._read = store.objects.read
        self._before = _walk(store, before)
        self._wanted = wanted
        self._calls: dict[str, ToolCall] = {}
        self._earlier: dict[str, Mapping[str, Any]] = {}
        self._todos: dict[str, ToDo] = {}

    def of(self, oid: ObjectId, parts: Sequence[Part]) -> Iterable[Milestone]:
        """Return the milestones in a message's results and to-do lists."""
        is_plan = False
        actions: list[tuple[Action, bool]] = []
        for part in parts:
            if isinstance(part, ToolCall):
                self._calls[part.id] = part
                activity = context.activity
                if TODOS in self._wanted and activity.kind_of_tool(part.name) == activity.PLAN:
                    activity.update_todos(self._todos, part, None)
                    is_plan = True
            elif isinstance(part, ToolResult) and (action := self._action(part)) is not None:
                actions.append((action, context.activity.outcome_of(part).failed))
        return self._reached(oid, actions, is_plan) if actions or is_plan else ()

    def _reached(
        self, oid: ObjectId, actions: Sequence[tuple[Action, bool]], is_plan: bool
    ) -> Iterator[Milestone]:
        """Yield the milestones of a message, given its actions and whether each failed."""
        written = [each.subject for each, failed in actions if not (each.is_test or failed)]
        if FILES in self._wanted and written:
            yield Milestone(oid, FILES, f"wrote {', '.join(written)}"[:200])
        tests = [(each.subject, failed) for each, failed in actions if each.is_test]
        if TESTS in self._wanted and tests:
            what = "failed" if any(failed for _, failed in tests) else "passed"
            yield Milestone(oid, f"{TESTS}-{what}", f"{what}: {tests[-1][0]}"[:200])
        if is_plan and self._todos and all(each.is_done for each in self._todos.values()):
            yield Milestone(oid, TODOS, f"all {len(self._todos)} to-dos are done")

    def _action(self, result: ToolResult) -> Action | None:
        """Return the action of a result's call if it writes a file or runs tests."""
        call = self._calls.get(result.call_id) or self._earlier_call(result.call_id)
        activity = context.activity
        kinds = (activity.RUN, activity.WRITE, activity.OTHER)
        if call is None or activity.kind_of_tool(call.name) not in kinds:
            return None
        action = activity.action_of(call)
        return action if action.kind == activity.WRITE or action.is_test else None

    def _earlier_call(self, id: str) -> ToolCall | None:
        """Return the last call with an id in the commits before the new ones, read only as far as needed."""
        while id not in self._earlier and (step := next(self._before, None)) is not None:
            for stored in stored_messages(step[1]):
                for part in stored["parts"]:
                    if part["type"] == ToolCall.type:
                        self._earlier.setdefault(part["id"], part)
        found = load_parts([self._earlier[id]], self._read)[0] if id in self._earlier else None
        return found if isinstance(found, ToolCall) else None


class _Topics:
    """The prompts of new commits, to find those that begin a new topic."""

    def __init__(self, store: Store, before: ObjectId | None) -> None:
        self._read = store.objects.read
        self._before = _walk(store, before)
        self._is_first = before is None
        self._prompts: list[str] = []
        self._words: dict[str, frozenset[str]] = {}

    def begins(self, said: str) -> bool:
        """Add the next prompt; return True if it shares hardly a word with the last ones."""
        prompt = said[:_TOPIC_CHARACTERS]
        is_new = not self._is_first and self._is_new(prompt)
        self._is_first = False
        self._prompts.append(prompt)
        return is_new

    def _is_new(self, prompt: str) -> bool:
        words = self._words_of(prompt)
        if len(words) < _TOPIC_WORDS:
            return False
        while len(self._prompts) < _TOPIC_PROMPTS and (step := next(self._before, None)):
            added = stored_messages(step[1])
            self._prompts[:0] = [
                load_message(each, self._read).text[:_TOPIC_CHARACTERS]
                for each in added
                if each["role"] == "user"
            ]
        known = frozenset[str]().union(*map(self._words_of, self._prompts[-_TOPIC_PROMPTS:]))
        few = _TOPIC_OVERLAP * min(len(words), len(known))
        return len(known) >= _TOPIC_WORDS and len(words & known) < few

    def _words_of(self, prompt: str) -> frozenset[str]:
        if prompt not in self._words:
            self._words[prompt] = _words(prompt)
        return self._words[prompt]


def _estimate(contexts: ContextCompiler, tip: ObjectId) -> tuple[int, int]:
    """Return the tokens of a context and those that its last commit added, estimated from the length of text.

    An exact count would load the encoding, which takes longer than the commit.
    """
    tokenizer = context.tokens.tokenizer
    contexts = contexts.on(contexts.store, tokenizer.get_tokenizer(tokenizer.HEURISTIC_ENCODING))
    is_head = contexts.store.refs.head().oid == tip  # which has an index
    compiled = contexts.compile("HEAD" if is_head else tip)
    added = len(stored_messages(contexts.read_commit(tip)))
    counts = compiled.message_tokens(max(0, len(compiled) - added))
    return compiled.token_count, sum(total for total, _ in counts)


def _of_tokens(store: Store, counts: Iterable[tuple[ObjectId, int]]) -> Iterator[Milestone]:
    """Yield the commits at which the context passes a multiple of the step."""
    step = _number(store, STEP)
    for (_, earlier), (oid, later) in pairwise(counts):
        if later // step > max(0, earlier) // step:
            yield Milestone(oid, TOKENS, f"{later // step * step:,} tokens")


def _reported(store: Store, line: Sequence[_NewCommit]) -> Iterator[tuple[ObjectId, int]]:
    """Yield the token counts that providers reported for new commits, after the last one before them."""
    counts = [(new.oid, new.token_count) for new in line if new.token_count]
    for oid, commit in _walk(store, line[0].parent) if counts else ():
        if report := report_of(commit):
            yield oid, report.token_count
            break
    yield from counts


def _walk(store: Store, tip: ObjectId | None) -> Iterator[tuple[ObjectId, Commit]]:
    """Yield the commits before the new ones along first parents, newest first."""
    for _ in range(_EARLIER_COMMITS):
        if tip is None:
            break
        commit = read_commit(tip, store.objects.read)
        yield tip, commit
        tip = commit.parents[0] if commit.parents else None


def _words(text: str) -> frozenset[str]:
    import re  # slow to import, and most commits need none

    return frozenset(re.findall(_WORD, text.lower())).difference(_COMMON.split())


def _save(writer: Writer, found: Found) -> list[str]:
    try:
        return _write(writer, found) if found else []
    except (errors.StorageError, errors.ConcurrencyError):
        return []


def _write(writer: Writer, found: Found) -> list[str]:
    """Save milestones, drop checkpoints beyond the limits, and return the new refs.

    It does not wait for the disk: the next durable transaction syncs the checkpoints, too.
    """
    hard, store, change = checkpoints.hard, writer.store, writer.begin()
    now = store.clock.now()
    there = dict(store.refs.iterate(AUTOMATIC))
    rows = [match.group(1, 2, 3, 0) for name in there if (match := re.fullmatch(_NAME, name))]
    expired = _beyond_limits(store, rows, now)
    known = {(trigger, commit) for _, trigger, commit, name in rows if name not in expired}
    # Each has a millisecond of its own, so those of an earlier call may be some milliseconds ahead of the clock.
    newest = max((stamp for stamp, *_ in rows), default="")
    if newest > _stamp(now + _AHEAD):
        newest = ""
    due: dict[str, tuple[int, str | None, Milestone]] = {}
    time = now
    for ref, each in found:
        trigger, commit = each.trigger, each.commit.short()
        if (trigger, commit) in known:
            continue
        known.add((trigger, commit))
        while (stamp := _stamp(time)) <= newest:
            time += 1
        name = f"{AUTOMATIC}{stamp}-{trigger}-{commit}"
        rows.append((stamp, trigger, commit, name))
        due[name] = time, ref, each
        time += 1
    dropped = _beyond_limits(store, rows, now)
    made: dict[str, ObjectId] = {}
    for name, (time, ref, each) in due.items():
        if name not in dropped:
            meta = {hard.IS_AUTOMATIC: 1, **({hard.BRANCH: ref} if ref else {})}
            meta[hard.TRIGGER] = each.trigger
            tag = hard.new_tag(name, each.commit, change.author, time, each.reason, meta)
            made[name] = change.add(tag)
    old = [name for name in there if name in dropped]
    if not made and not old:
        return []

    def edits(refs: RefReader) -> list[RefEdit]:
        gone = [RefEdit(n, None, there[n]) for n in old if refs.read(n) == there[n]]
        return [*(RefEdit(name, oid, None) for name, oid in made.items()), *gone]

    change.write(edits, "checkpoint: automatic", durability=FAST)
    return [*made]


def _beyond_limits(store: Store, rows: Iterable[tuple[str, ...]], now: int) -> set[str]:
    """Return the names to drop, of rows (time, trigger, commit, name): all but the newest of each trigger."""
    limit, oldest = _number(store, LIMIT), _stamp(now - _number(store, DAYS) * _DAY)
    dropped = set()
    counts: dict[str, int] = {}
    for stamp, trigger, _, name in sorted(rows, reverse=True):
        counts[trigger] = counts.get(trigger, 0) + 1
        if counts[trigger] > limit or stamp < oldest:
            dropped.add(name)
    return dropped


def _stamp(milliseconds: int) -> str:
    """Return a time as in a checkpoint's name: `20260302-091500000`."""
    return format_time(max(0, milliseconds)).translate(_STAMP)


def _number(store: Store, key: str) -> int:
    said = store.config.get(key)
    return said if isinstance(said, int) and said > 0 else DEFAULTS[key]
