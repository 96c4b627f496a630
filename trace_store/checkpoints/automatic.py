"""Automatic checkpoints: made before a merge and at milestones in messages.

They are off unless the setting `automatic_checkpoints` names triggers. `before` is called before a command that changes
a branch, `after` when commits were added; if no trigger is on, neither reads anything. Names such as
`auto/20260302-091500000-tests-passed-8a3fe622` hold time, trigger and commit, so that the limits on number and age need
no tag to be read. `undo` skips automatic checkpoints.
"""

from __future__ import annotations

import re
from itertools import pairwise

from trace_store import errors
from trace_store.checkpoints.hard import BRANCH, IS_AUTOMATIC, TRIGGER, new_tag
from trace_store.config import AUTOMATIC_SETTING, TRIGGERS
from trace_store.context.activity import (
    OTHER,
    PLAN,
    RUN,
    WRITE,
    action_of,
    kind_of_tool,
    outcome_of,
    update_todos,
)
from trace_store.context.calls import CALL
from trace_store.contracts import FAST, RefEdit, Transaction
from trace_store.frozen import value
from trace_store.ident import format_time
from trace_store.objects.address import RESULT, Address
from trace_store.objects.commit import read_commit
from trace_store.objects.message import load_message, load_parts
from trace_store.objects.operations import added_messages
from trace_store.objects.reports import report_of
from trace_store.oid import ObjectId
from trace_store.refs.names import AUTOMATIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from trace_store.context.activity import Action, ToDo
    from trace_store.context.compiler import ContextCompiler
    from trace_store.contracts import RefReader
    from trace_store.importers.report import ImportReport
    from trace_store.objects.commit import Commit
    from trace_store.objects.operations import Stored
    from trace_store.store.handle import Store

LIMIT, DAYS, STEP = (f"automatic_checkpoint_{what}" for what in ("limit", "days", "tokens"))
DEFAULTS = {LIMIT: 20, DAYS: 30, STEP: 50_000}
MERGE, REBASE, COMPRESS, TODOS, FILES, TESTS, TOPIC, TOKENS = TRIGGERS
_MILESTONES = frozenset((TODOS, FILES, TESTS, TOPIC, TOKENS))
MAXIMUM_COMMITS = 100
"""Number of newest commits of an import to check."""
_EARLIER_COMMITS = 60
"""Number of commits before the new ones in which the last prompts and the last usage report are looked for."""
_TOPIC_PROMPTS, _TOPIC_WORDS, _TOPIC_OVERLAP = 3, 8, 0.1
_DAY = 86_400_000
_NAME = re.compile(r"(\d{8}-\d{9})-([a-z-]+)-([0-9a-f]{12})")
_WORD = re.compile(r"[^\W\d_]{4,}")
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


def triggers(store: Store) -> frozenset[str]:
    """Return the triggers that are on; reads nothing but the settings in memory."""
    said = store.config.get(AUTOMATIC_SETTING)
    if not isinstance(said, str) or said in ("", "off"):
        return frozenset()
    return frozenset(TRIGGERS) if said == "on" else frozenset(said.split(",")) & {*TRIGGERS}


def before(store: Store, trigger: str, *, author: str) -> None:
    """Save HEAD's branch before a command changes it, if the trigger ("merge", "rebase" or "compress") is on."""
    head = store.refs.head()
    if trigger in triggers(store) and head.oid is not None:
        _write(store, [(head.ref, Milestone(head.oid, trigger, f"before a {trigger}"))], author)


def after(contexts: ContextCompiler, tip: ObjectId, ref: str | None, *, author: str) -> list[str]:
    """Save the milestones of a new commit whose triggers are on.

    Args:
        contexts: the compiler of the repository's store.
        tip: the commit.
        ref: full name of its branch; None if HEAD is detached.
        author: who added it.

    Returns:
        The refs of the checkpoints. Disk errors are ignored, since the commit is already written.
    """
    wanted = triggers(contexts.store) & _MILESTONES
    if not wanted:
        return []
    line = _line(contexts.store, tip, 1)
    found = [*_of_messages(contexts.store, line, wanted)]
    if TOKENS in wanted:
        is_tip = ref is not None and contexts.store.refs.read(ref) == tip  # which has an index
        total = contexts.compile(ref if is_tip else tip).token_count
        before = total - contexts.weigh_added(line[0][1])
        found += _of_tokens(contexts.store, [(tip, before), (tip, total)])
    return _save(contexts.store, [(ref, each) for each in found], author)


def after_import(store: Store, report: ImportReport, *, author: str) -> list[str]:
    """Save the milestones of branches that an import extended; return their refs.

    At most MAXIMUM_COMMITS of each branch are read. Tokens are those of usage reports, since counting costs more than
    the import.
    """
    wanted = triggers(store) & _MILESTONES
    found: list[tuple[str | None, Milestone]] = []
    for file in report.files if wanted else ():
        for branch in file.branches if file.commits else ():
            line = _line(store, branch.oid, min(file.commits, MAXIMUM_COMMITS))
            made = [*_of_messages(store, line, wanted)]
            if TOKENS in wanted:
                made += _of_tokens(store, _reported(store, line))
            found += [(branch.ref, each) for each in made]
    return _save(store, found, author)


def _save(store: Store, found: Sequence[tuple[str | None, Milestone]], author: str) -> list[str]:
    try:
        return _write(store, found, author) if found else []
    except (errors.StorageError, errors.ConcurrencyError):
        return []


def _of_messages(
    store: Store, line: Sequence[tuple[ObjectId, Commit]], wanted: frozenset[str]
) -> Iterator[Milestone]:
    """Yield the milestones in the messages of some commits, oldest first."""
    tools = _ToolMilestones(store, wanted)
    prompts: list[frozenset[str]] | None = None
    for oid, commit in line:
        for _, stored in added_messages(commit, oid):
            if wanted & {TODOS, FILES, TESTS}:
                yield from tools.of(oid, stored)
            if TOPIC in wanted and stored["role"] == "user" and commit.parents:
                words = _words(load_message(stored, store.objects.read).text)
                if len(words) >= _TOPIC_WORDS:
                    if prompts is None:
                        prompts = _earlier_prompts(store, commit.parents[0])
                    if _is_new_topic(words, prompts):
                        yield Milestone(commit.parents[0], TOPIC, "before a new topic")
                    prompts = [*prompts, words][-_TOPIC_PROMPTS:]


class _ToolMilestones:
    """Milestones in tool calls; loads only relevant calls and their results."""

    def __init__(self, store: Store, wanted: frozenset[str]) -> None:
        self._store = store
        self._wanted = wanted
        self._calls: dict[str, Stored] = {}
        self._todos: dict[str, ToDo] = {}

    def of(self, oid: ObjectId, stored: Stored) -> Iterator[Milestone]:
        """Yield the milestones in a stored message's results and to-do lists."""
        is_plan = False
        written: list[str] = []
        tests: list[tuple[str, bool]] = []
        for part in stored["parts"]:
            if part["type"] == CALL:
                self._calls[part["id"]] = part
                if TODOS in self._wanted and kind_of_tool(part["name"]) == PLAN:
                    update_todos(self._todos, self._load(part), None)
                    is_plan = True
            elif part["type"] == RESULT and (action := self._action(part)) is not None:
                has_failed = outcome_of(self._load(part)).failed
                if action.kind == WRITE and not has_failed:
                    written.append(action.subject)
                elif action.is_test:
                    tests.append((action.subject, has_failed))
        if FILES in self._wanted and written:
            yield Milestone(oid, FILES, f"wrote {', '.join(written)}"[:200])
        if TESTS in self._wanted and tests:
            what = "failed" if any(failed for _, failed in tests) else "passed"
            yield Milestone(oid, f"{TESTS}-{what}", f"{what}: {tests[-1][0]}"[:200])
        if is_plan and self._todos and all(each.is_done for each in self._todos.values()):
            yield Milestone(oid, TODOS, f"all {len(self._todos)} to-dos are done")

    def _action(self, result: Stored) -> Action | None:
        """Return the action of a result's call if it writes a file or runs tests."""
        call = self._calls.get(result["id"]) or self._earlier_call(result)
        if call is None or kind_of_tool(call["name"]) not in (RUN, WRITE, OTHER):
            return None
        found = action_of(self._load(call))
        return found if found.kind == WRITE or found.is_test else None

    def _earlier_call(self, result: Stored) -> Stored | None:
        """Return the stored call of a result from the commit that made it."""
        if "call" not in result or not result["call"][0]:
            return None
        address = Address(*result["call"])
        read = self._store.objects.read
        for oid in self._store.objects.resolve_prefix(address.birth.hex()):
            for each, stored in added_messages(read_commit(oid, read), oid):
                for part in stored["parts"] if each == address else ():
                    if part["type"] == CALL and part["id"] == result["id"]:
                        return part  # type: ignore[no-any-return]
        return None

    def _load(self, part: Stored) -> Any:
        return load_parts([part], self._store.objects.read)[0]


def _of_tokens(store: Store, counts: Iterable[tuple[ObjectId, int]]) -> Iterator[Milestone]:
    """Yield the commits at which the context passes a multiple of the step."""
    step = _number(store, STEP)
    for (_, earlier), (oid, later) in pairwise(counts):
        if later // step > max(0, earlier) // step:
            yield Milestone(oid, TOKENS, f"{later // step * step:,} tokens")


def _reported(
    store: Store, line: Sequence[tuple[ObjectId, Commit]]
) -> Iterator[tuple[ObjectId, int]]:
    """Yield the token counts that providers reported for some commits, after the last one before them."""
    found = [(oid, report.token_count) for oid, commit in line if (report := report_of(commit))]
    first = line[0][1]
    if found and first.parents:
        for oid, commit in _walk(store, first.parents[0], _EARLIER_COMMITS):
            if report := report_of(commit):
                yield oid, report.token_count
                break
    yield from found


def _line(store: Store, tip: ObjectId, count: int) -> list[tuple[ObjectId, Commit]]:
    """Return the last commits along first parents, oldest first."""
    return [*_walk(store, tip, count)][::-1]


def _walk(store: Store, tip: ObjectId, count: int) -> Iterator[tuple[ObjectId, Commit]]:
    """Yield the last commits along first parents, newest first."""
    for _ in range(count):
        commit = read_commit(tip, store.objects.read)
        yield tip, commit
        if not commit.parents:
            break
        tip = commit.parents[0]


def _earlier_prompts(store: Store, tip: ObjectId) -> list[frozenset[str]]:
    """Return the words of the last prompts, of few commits."""
    found: list[frozenset[str]] = []
    for oid, commit in _walk(store, tip, _EARLIER_COMMITS):
        for _, stored in added_messages(commit, oid):
            if stored["role"] == "user":
                found.insert(0, _words(load_message(stored, store.objects.read).text))
        if len(found) >= _TOPIC_PROMPTS:
            break
    return found[-_TOPIC_PROMPTS:]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text[:4_000].lower())) - {*_COMMON.split()}


def _is_new_topic(words: frozenset[str], earlier: Sequence[frozenset[str]]) -> bool:
    known = frozenset[str]().union(*earlier)
    if len(known) < _TOPIC_WORDS:
        return False
    return len(words & known) < _TOPIC_OVERLAP * min(len(words), len(known))


def _write(store: Store, found: Sequence[tuple[str | None, Milestone]], author: str) -> list[str]:
    """Save milestones, drop checkpoints beyond the limits, and return the new refs.

    It does not wait for the disk: the next durable transaction syncs the checkpoints, too.
    """
    limit, now = _number(store, LIMIT), store.clock.now()
    there = dict(store.refs.iterate(AUTOMATIC))
    known = {match.groups()[1:] for name in there if (match := _parsed(name))}
    made: dict[str, tuple[ObjectId, bytes]] = {}
    for at, (ref, each) in enumerate(found):
        key = each.trigger, each.commit.short()
        if key in known:
            continue
        known.add(key)
        name = f"{AUTOMATIC}{_stamp(now + at)}-{each.trigger}-{each.commit.short()}"
        meta = {IS_AUTOMATIC: 1, TRIGGER: each.trigger} | ({BRANCH: ref} if ref else {})
        _, oid, data = new_tag(
            store, name, each.commit, author, each.reason, dict(sorted(meta.items()))
        )
        made[name] = oid, data
    kept = _within_limits([*there, *made], limit, _stamp(now - _number(store, DAYS) * _DAY))
    new = [name for name in made if name in kept]
    old = [name for name in there if name not in kept]
    if not new and not old:
        return []

    def build(refs: RefReader) -> Transaction:
        edits = [RefEdit(name, made[name][0], None) for name in new]
        edits += [RefEdit(n, None, there[n]) for n in old if refs.read(n) == there[n]]
        return Transaction([made[name] for name in new], edits, "checkpoint: automatic")

    store.transact(build, author=author, durability=FAST)
    return new


def _within_limits(names: Sequence[str], limit: int, oldest: str) -> set[str]:
    """Return the names to keep: the newest of each trigger, and none that is too old."""
    kept: set[str] = set()
    counts: dict[str, int] = {}
    for name in sorted(names, reverse=True):
        match = _parsed(name)
        if match is None:
            kept.add(name)  # not created by Trace
            continue
        stamp, trigger, _ = match.groups()
        counts[trigger] = counts.get(trigger, 0) + 1
        if counts[trigger] <= limit and stamp >= oldest:
            kept.add(name)
    return kept


def _parsed(name: str) -> re.Match[str] | None:
    return _NAME.fullmatch(name.removeprefix(AUTOMATIC))


def _stamp(milliseconds: int) -> str:
    digits = "".join(c for c in format_time(max(0, milliseconds)) if c.isdigit())
    return f"{digits[:8]}-{digits[8:17]}"


def _number(store: Store, key: str) -> int:
    said = store.config.get(key)
    return said if isinstance(said, int) and said > 0 else DEFAULTS[key]
