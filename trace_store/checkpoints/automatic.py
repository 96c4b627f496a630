"""Automatic checkpoints: made before a merge and at milestones in messages.

They are off unless the setting `automatic_checkpoints` names triggers. `before` is called before a command that changes
a branch, `after` when commits were added; if no trigger is on, neither reads anything. Names such as
`auto/20260302-091500000-tests-passed-8a3fe622` contain time, trigger and commit, so the limits on number and age are
applied without reading tags. `undo` skips automatic checkpoints.
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
    activity_of,
    outcome_of,
)
from trace_store.context.calls import CALL
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import value
from trace_store.ident import format_time
from trace_store.objects.address import RESULT, Address
from trace_store.objects.commit import read_commit
from trace_store.objects.message import load_message, load_parts
from trace_store.objects.operations import USAGE, added_messages
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.objects.reports import report_of
from trace_store.oid import ObjectId
from trace_store.refs.names import AUTOMATIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.context.activity import Action
    from trace_store.context.compiler import ContextCompiler
    from trace_store.contracts import RefReader
    from trace_store.importers.report import ImportReport
    from trace_store.objects.commit import Commit
    from trace_store.objects.message import Message
    from trace_store.objects.operations import Stored
    from trace_store.objects.parts import Part
    from trace_store.store.handle import Store

LIMIT, DAYS, STEP = (f"automatic_checkpoint_{what}" for what in ("limit", "days", "tokens"))
DEFAULTS = {LIMIT: 20, DAYS: 30, STEP: 50_000}
MERGE, REBASE, COMPRESS, TODOS, FILES, TESTS, TOPIC, TOKENS = TRIGGERS
_MILESTONES = frozenset((TODOS, FILES, TESTS, TOPIC, TOKENS))
MAXIMUM_COMMITS = 100
"""Number of newest commits of an import to check."""
_FEW_COMMITS = 8
"""With more new commits, token counts come from usage reports, and prompts before the new commits are ignored."""
_TOPIC_COMMITS = 60
"""Number of earlier commits to search for prompts."""
_TOPIC_PROMPTS = 3
"""Number of earlier prompts to compare a prompt with."""
_TOPIC_WORDS = 8
"""Prompts with fewer distinct words are not compared."""
_TOPIC_OVERLAP = 0.1
"""A prompt that shares a smaller part of its words with the earlier prompts starts a new topic."""
_DAY = 86_400_000
_NAME = re.compile(r"(\d{8}-\d{9})-([a-z-]+)-([0-9a-f]{12})")
_WORD = re.compile(r"[^\W\d_]{4,}")
_COMMON = frozenset(
    [
        "about",
        "after",
        "also",
        "because",
        "been",
        "before",
        "could",
        "does",
        "every",
        "from",
        "have",
        "here",
        "into",
        "just",
        "like",
        "make",
        "more",
        "need",
        "only",
        "other",
        "please",
        "should",
        "some",
        "than",
        "that",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "what",
        "when",
        "where",
        "which",
        "will",
        "with",
        "would",
        "your",
    ]
)


@value
class Milestone:
    """A commit at which an automatic checkpoint is due, with its trigger and the reason."""

    commit: ObjectId
    trigger: str
    reason: str


def triggers(store: Store) -> frozenset[str]:
    """Return the triggers that are on; reads nothing but the settings in memory."""
    setting = store.config.get(AUTOMATIC_SETTING)
    if not isinstance(setting, str) or setting in ("", "off"):
        return frozenset()
    return frozenset(TRIGGERS) if setting == "on" else frozenset(setting.split(",")) & {*TRIGGERS}


def before(store: Store, trigger: str, *, ref: str | None = None, author: str) -> str | None:
    """Save a branch before a command changes it, if the trigger is on.

    Args:
        store: the repository's store.
        trigger: "merge", "rebase" or "compress".
        ref: full name of the branch; None is HEAD.
        author: who runs the command.

    Returns:
        The checkpoint's ref; None if the trigger is off or the branch has no commit.
    """
    if trigger not in triggers(store):
        return None
    head = store.refs.head()
    tip = head.oid if ref is None else store.refs.read(ref)
    if tip is None:
        return None
    due = [Milestone(tip, trigger, f"before a {trigger}")]
    created = _write(store, due, ref or head.ref, author)
    return created[0] if created else None


def after(
    contexts: ContextCompiler, tip: ObjectId, ref: str | None, count: int = 1, *, author: str
) -> list[str]:
    """Save checkpoints at the milestones in a branch's last commits.

    Only triggers that are on make milestones.

    Args:
        contexts: the compiler of the repository's store.
        tip: the last commit.
        ref: full name of the branch; None if HEAD is detached.
        count: how many commits are new.
        author: who added them.

    Returns:
        The refs of the checkpoints. Disk errors are ignored, since the commits are already written.
    """
    store = contexts.store
    wanted = triggers(store) & _MILESTONES
    if not wanted or count < 1:
        return []
    due = list(milestones(contexts, tip, ref, count, wanted))
    try:
        return _write(store, due, ref, author) if due else []
    except (errors.StorageError, errors.ConcurrencyError):
        return []


def after_import(contexts: ContextCompiler, report: ImportReport, *, author: str) -> list[str]:
    """Save checkpoints at the milestones that an import added to branches.

    Return the refs of the checkpoints.
    """
    created: list[str] = []
    for file in report.files:
        for branch in file.branches if file.commits else ():
            created += after(contexts, branch.oid, branch.ref, file.commits, author=author)
    return created


def milestones(
    contexts: ContextCompiler, tip: ObjectId, ref: str | None, count: int, wanted: frozenset[str]
) -> Iterator[Milestone]:
    """Yield the milestones among the last commits of a history, oldest first; at most MAXIMUM_COMMITS are read.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the history is incomplete or damaged.
    """
    store = contexts.store
    commits = _last_commits(store, tip, min(count, MAXIMUM_COMMITS))
    tools = _ToolMilestones(store, wanted)
    has_many = len(commits) > _FEW_COMMITS
    prompts: list[frozenset[str]] | None = [] if has_many else None
    for oid, commit in commits:
        for _, stored in added_messages(commit, oid):
            if wanted & {TODOS, FILES, TESTS}:
                yield from tools.milestones_in(oid, stored)
            if TOPIC in wanted and stored["role"] == "user" and commit.parents:
                words = _words(load_message(stored, store.objects.read).text)
                if len(words) >= _TOPIC_WORDS:
                    if prompts is None:
                        prompts = _earlier_prompts(store, commit.parents[0])
                    if _is_new_topic(words, prompts):
                        yield Milestone(commit.parents[0], TOPIC, "before a new topic")
                    prompts = [*prompts, words][-_TOPIC_PROMPTS:]
    if TOKENS in wanted:
        yield from _token_milestones(contexts, ref, commits)


class _ToolMilestones:
    """Milestones in tool calls; loads only relevant calls and their results."""

    def __init__(self, store: Store, wanted: frozenset[str]) -> None:
        self._store = store
        self._wanted = wanted
        self._calls: dict[str, Stored] = {}
        self._kinds: dict[str, str] = {}
        self._plans: list[Message] = []

    def milestones_in(self, oid: ObjectId, stored: Stored) -> Iterator[Milestone]:
        """Yield the milestones in a stored message's results and to-do lists."""
        is_plan = False
        written: list[str] = []
        tests: list[tuple[str, bool]] = []
        for part in stored["parts"]:
            if part["type"] == CALL:
                self._calls[part["id"]] = part
                is_plan = is_plan or self._kind(part) == PLAN
            elif part["type"] == RESULT and (action := self._action(part)) is not None:
                result = self._load(part)
                assert isinstance(result, ToolResult)
                has_failed = outcome_of(result).failed
                if action.kind == WRITE and not has_failed:
                    written.append(action.subject)
                elif action.is_test:
                    tests.append((action.subject, has_failed))
        if FILES in self._wanted and written:
            yield Milestone(oid, FILES, f"wrote {', '.join(written)}"[:200])
        if TESTS in self._wanted and tests:
            what = "failed" if any(failed for _, failed in tests) else "passed"
            yield Milestone(oid, f"{TESTS}-{what}", f"{what}: {tests[-1][0]}"[:200])
        if TODOS in self._wanted and is_plan:
            self._plans.append(load_message(stored, self._store.objects.read))
            todos = activity_of(self._plans).todos
            if todos and all(each.is_done for each in todos):
                yield Milestone(oid, TODOS, f"all {len(todos)} to-dos are done")

    def _action(self, result: Stored) -> Action | None:
        """Return the action of a result's call if it writes a file or runs tests."""
        part = self._calls.get(result["id"]) or self._earlier_call(result)
        if part is None or self._kind(part) not in (RUN, WRITE, OTHER):
            return None
        call = self._load(part)
        assert isinstance(call, ToolCall)
        found = action_of(call)
        return found if found.kind == WRITE or found.is_test else None

    def _earlier_call(self, result: Stored) -> Stored | None:
        """Return the stored call that a result answers, from the commit that added the call."""
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

    def _kind(self, call: Stored) -> str:
        """Return the kind of the tool in a stored call."""
        name = call["name"]
        if name not in self._kinds:
            self._kinds[name] = action_of(ToolCall("", name, "")).kind
        return self._kinds[name]

    def _load(self, part: Stored) -> Part:
        return load_parts([part], self._store.objects.read)[0]


def _token_milestones(
    contexts: ContextCompiler, ref: str | None, commits: Sequence[tuple[ObjectId, Commit]]
) -> Iterator[Milestone]:
    """Yield the commits at which the context passes a multiple of the step."""
    step = _read_setting(contexts.store, STEP)
    counts: list[tuple[ObjectId, int]] = []
    if len(commits) <= _FEW_COMMITS:
        tip = commits[-1][0]
        # A branch's tip has a compile index.
        is_tip = ref is not None and contexts.store.refs.read(ref) == tip
        total = contexts.compile(ref if is_tip else tip).token_count
        for oid, commit in reversed(commits):
            counts.insert(0, (oid, total))
            total -= contexts.weigh_added(commit)
        counts.insert(0, (commits[0][0], total))
    else:
        for oid, commit in commits:
            if any(operation.name == USAGE for operation in commit.operations):
                report = report_of(commit)
                counts += [] if report is None else [(oid, report.token_count)]
    for (_, earlier), (oid, later) in pairwise(counts):
        if later // step > max(0, earlier) // step:
            yield Milestone(oid, TOKENS, f"{later // step * step:,} tokens")


def _last_commits(store: Store, tip: ObjectId, count: int) -> list[tuple[ObjectId, Commit]]:
    """Return the last commits along first parents, oldest first."""
    found: list[tuple[ObjectId, Commit]] = []
    oid: ObjectId | None = tip
    while oid is not None and len(found) < count:
        commit = read_commit(oid, store.objects.read)
        found.append((oid, commit))
        oid = commit.parents[0] if commit.parents else None
    return found[::-1]


def _earlier_prompts(store: Store, tip: ObjectId) -> list[frozenset[str]]:
    """Return the words of each of the last prompts.

    Only the last `_TOPIC_COMMITS` commits are searched.
    """
    found: list[frozenset[str]] = []
    for oid, commit in reversed(_last_commits(store, tip, _TOPIC_COMMITS)):
        for _, stored in added_messages(commit, oid):
            if stored["role"] == "user":
                words = _words(load_message(stored, store.objects.read).text)
                found.insert(0, words)
        if len(found) >= _TOPIC_PROMPTS:
            break
    return found[-_TOPIC_PROMPTS:]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text[:4_000].lower())) - _COMMON


def _is_new_topic(words: frozenset[str], earlier: Sequence[frozenset[str]]) -> bool:
    known = frozenset[str]().union(*earlier)
    if len(known) < _TOPIC_WORDS:
        return False
    return len(words & known) < _TOPIC_OVERLAP * min(len(words), len(known))


def _write(store: Store, due: Sequence[Milestone], ref: str | None, author: str) -> list[str]:
    """Save milestones, drop checkpoints beyond the limits, and return the new refs."""
    limit, now = _read_setting(store, LIMIT), store.clock.now()
    existing = dict(store.refs.iterate(AUTOMATIC))
    known = {match.groups()[1:] for name in existing if (match := _parse_name(name))}
    created: dict[str, tuple[ObjectId, bytes]] = {}
    for at, each in enumerate(due):
        key = each.trigger, each.commit.short()
        if key in known:
            continue
        known.add(key)
        name = f"{AUTOMATIC}{_stamp(now + at)}-{each.trigger}-{each.commit.short()}"
        meta = {IS_AUTOMATIC: 1, TRIGGER: each.trigger} | ({BRANCH: ref} if ref else {})
        _, oid, data = new_tag(
            store, name, each.commit, author, each.reason, dict(sorted(meta.items()))
        )
        created[name] = oid, data
    kept = _within_limits(
        [*existing, *created], limit, _stamp(now - _read_setting(store, DAYS) * _DAY)
    )
    new = [name for name in created if name in kept]
    old = [name for name in existing if name not in kept]
    if not new and not old:
        return []

    def build(refs: RefReader) -> Transaction:
        edits = [RefEdit(name, created[name][0], None) for name in new if refs.read(name) is None]
        edits += [RefEdit(n, None, existing[n]) for n in old if refs.read(n) == existing[n]]
        return Transaction([created[name] for name in new], edits, "checkpoint: automatic")

    store.transact(build, author=author)
    return new


def _within_limits(names: Sequence[str], limit: int, oldest: str) -> set[str]:
    """Return the names to keep: the newest `limit` of each trigger, unless older than `oldest`."""
    kept: set[str] = set()
    counts: dict[str, int] = {}
    for name in sorted(names, reverse=True):
        match = _parse_name(name)
        if match is None:
            kept.add(name)  # not created by Trace
            continue
        stamp, trigger, _ = match.groups()
        counts[trigger] = counts.get(trigger, 0) + 1
        if counts[trigger] <= limit and stamp >= oldest:
            kept.add(name)
    return kept


def _parse_name(name: str) -> re.Match[str] | None:
    return _NAME.fullmatch(name.removeprefix(AUTOMATIC))


def _stamp(milliseconds: int) -> str:
    digits = "".join(c for c in format_time(max(0, milliseconds)) if c.isdigit())
    return f"{digits[:8]}-{digits[8:17]}"


def _read_setting(store: Store, key: str) -> int:
    setting = store.config.get(key)
    return setting if isinstance(setting, int) and setting > 0 else DEFAULTS[key]
