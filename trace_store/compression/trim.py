"""Trim: a reversible reduction of a context to a token target, without a model.

The steps run in order of increasing harm, each from the oldest message on, until the target is met:

    superseded   a read of a file that was read again or changed later
    duplicate    an output that a later one repeats word for word
    reasoning    the reasoning of old turns
    failed       the output of a failed call, down to its error
    output       old tool outputs, cut to their head and tail, shorter in each round
    arguments    long arguments of old calls, such as the text of a file that was written
    episode      the work between two messages of the user, replaced by a note of what was done
    prose        old answers, cut to their first paragraph

User messages, instructions, pinned and important messages, the last to-do list, and the newest messages are never
changed. Shortened messages keep their old version and replaced ones stay in the history, so `restore` and `undo` bring
everything back. Changes are tried out in a `WorkingContext`, which knows the tokens of each message.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import groupby

from trace_store import errors
from trace_store.compression.selection import private_salt, select
from trace_store.context.activity import (
    READ,
    RUN,
    WRITE,
    Action,
    Outcome,
    action_of,
    activity_of,
    outcome_of,
)
from trace_store.context.compiler import ContextCompiler
from trace_store.frozen import replace, value
from trace_store.history.commit import new_draft, write
from trace_store.objects import operations as ops
from trace_store.objects.message import Message
from trace_store.objects.parts import Reasoning, Text, ToolCall, ToolResult
from trace_store.revision import resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from trace_store.context.compiled import CompiledContext, CompiledMessage
    from trace_store.context.fold import Fold
    from trace_store.history.draft import CommitResult, Draft
    from trace_store.objects.address import Address
    from trace_store.objects.content import Salt
    from trace_store.objects.parts import Part
    from trace_store.store.handle import Store

SUPERSEDED = "superseded"
DUPLICATE = "duplicate"
REASONING = "reasoning"
FAILED = "failed"
OUTPUT = "output"
ARGUMENTS = "arguments"
EPISODE = "episode"
PROSE = "prose"

STEPS = (SUPERSEDED, DUPLICATE, REASONING, FAILED, OUTPUT, ARGUMENTS, EPISODE, PROSE)
DEDUPLICATION = (SUPERSEDED, DUPLICATE)
"""The steps of `dedupe`: they remove only content that is elsewhere in the context."""

KEPT_TURNS = 2
"""Number of last user turns to leave whole, as far as they fit in half of the target without its fixed part."""
SMALLEST_TAIL = 1000
"""At least this many tokens of newest messages stay whole."""
OUTPUT_TOKENS = (1000, 300, 80, 0)
"""Token limits for old outputs, tried in turn; 0 leaves one line."""
FAILED_TOKENS = 120
"""Token limit for the output of a failed call."""
_ARGUMENT_CHARACTERS = 400
_PROSE_CHARACTERS = 400
_SMALLEST_DUPLICATE = 200
_CHARACTERS_PER_TOKEN = 4
_NAMES = 4
_NOTE_TOKENS = 90
SUMMARY = "summary"
"""The kind of messages that replace others."""
REASON = "trim"
"""The `reason` recorded in the replace operations."""
_INSTRUCTION_ROLES = frozenset({"system", "developer"})


@value
class TrimStep:
    """The savings of one step of a trim.

    Attributes:
        reason: one of STEPS.
        count: number of messages that it shortens or replaces.
        tokens: the tokens saved.
    """

    reason: str
    count: int
    tokens: int


@value
class TrimResult:
    """A trim, planned or done.

    Attributes:
        target: the requested tokens; None for a deduplication.
        before, after: the tokens of the context.
        steps: the savings of each step, in order.
        stays: if the target is not met, the tokens of untrimmed content by reason, largest first.
        changes: the addresses of shortened messages, each with the reason.
        replaced: the addresses of replaced messages.
        commit: the commit, or None if nothing was written.
    """

    target: int | None
    before: int
    after: int
    steps: tuple[TrimStep, ...]
    stays: Mapping[str, int]
    changes: tuple[tuple[Address, str], ...]
    replaced: tuple[Address, ...]
    commit: CommitResult | None = None

    @property
    def met(self) -> bool:
        """Whether the context fits the target."""
        return self.target is None or self.after <= self.target


class _Trim:
    """A trim in progress.

    Attributes:
        savings: the tokens that each change saves, by step.
        reasons: the last step that changed a message, by position.
    """

    def __init__(
        self,
        working: WorkingContext,
        target: int,
        keep_last: int | None,
        within: Collection[Address],
    ) -> None:
        self.working = working
        self.target = target
        self.outside = {
            at for at, each in enumerate(working.messages) if each.address not in within
        }
        self.tail = self._start_of_tail(keep_last)
        self.savings: dict[str, list[int]] = {}
        self.reasons: dict[int, str] = {}

    def _start_of_tail(self, keep_last: int | None) -> int:
        """Return the position from which messages stay whole."""
        working = self.working
        turns = working.user_turns()
        count = KEPT_TURNS if keep_last is None else keep_last
        if not count:
            return len(working.messages)
        first = turns[-count] if len(turns) >= count else 0
        if keep_last is not None:
            return first
        rest = working.total - sum(working.tokens)
        fixed = rest + sum(working.tokens[at] for at in {*turns, *working.kept})
        at, room = len(working.messages), max(SMALLEST_TAIL, (self.target - fixed) // 2)
        while at > first and room >= working.tokens[at - 1]:
            at -= 1
            room -= working.tokens[at]
        return at

    def is_done(self) -> bool:
        return self.working.total <= self.target

    def run(self, steps: Sequence[str]) -> None:
        """Take the steps in order until the target is met."""
        rules = (
            *(self._superseded, self._duplicates, self._reasoning, self._failed),
            *(self._outputs, self._arguments, self._episodes, self._prose),
        )
        for step, rule in zip(STEPS, rules, strict=True):
            for at, saved in rule() if step in steps and not self.is_done() else ():
                if saved:
                    self.savings.setdefault(step, []).append(saved)
                    self.reasons[at] = step
                if self.is_done():
                    return

    def _may_change(self, at: int, *, old: bool = True) -> bool:
        """Return True if a message may be shortened; `old` excludes the newest ones."""
        return (
            at not in self.working.kept and at not in self.outside and not (old and at >= self.tail)
        )

    def _old_outputs(self) -> Iterator[Output]:
        return (each for each in self.working.outputs if self._may_change(each.at))

    # Content that is elsewhere in the context

    def _superseded(self) -> Iterator[tuple[int, int]]:
        working = self.working
        for output, later, said in superseded(working.outputs):
            # After a change, the model may still need the earlier text.
            if self._may_change(output.at, old=later.action.kind != READ):
                text = f"[{output.action.subject} {said} {working.short_address(later.at)}]"
                yield output.at, working.shorten_output(output, text)

    def _duplicates(self) -> Iterator[tuple[int, int]]:
        working = self.working
        for output, later in duplicates(working.outputs):
            if self._may_change(output.at, old=False):
                text = f"[the same output as {working.short_address(later.at)}]"
                yield output.at, working.shorten_output(output, text)

    # Shortening

    def _failed(self) -> Iterator[tuple[int, int]]:
        for output in self._old_outputs():
            if output.outcome.failed:
                yield output.at, self._shorten_output(output, FAILED_TOKENS)

    def _outputs(self) -> Iterator[tuple[int, int]]:
        for tokens in OUTPUT_TOKENS:
            for output in self._old_outputs():
                if output.action.kind != "plan":
                    yield output.at, self._shorten_output(output, tokens)

    def _shorten_output(self, output: Output, tokens: int) -> int:
        if self.reasons.get(output.at) in DEDUPLICATION:
            return 0
        address = self.working.short_address(output.at)
        code = output.outcome.exit_code
        text = shortened(output.text, tokens, address, "" if code is None else f"exit code {code}")
        return self.working.shorten_output(output, text) if text else 0

    def _reasoning(self) -> Iterator[tuple[int, int]]:
        return self._rewrite(lambda part, _: None if isinstance(part, Reasoning) else part)

    def _arguments(self) -> Iterator[tuple[int, int]]:
        return self._rewrite(_shorter_call)

    def _prose(self) -> Iterator[tuple[int, int]]:
        return self._rewrite(_first_paragraph, "assistant")

    def _rewrite(
        self, rewrite: Callable[[Part, str], Part | None], role: str = ""
    ) -> Iterator[tuple[int, int]]:
        """Rewrite the parts of old messages; `rewrite` gets the address, too, and None drops a part."""
        working = self.working
        for at, message in enumerate(working.messages):
            if self._may_change(at) and working.tokens[at] and role in ("", message.role):
                parts = working.current_parts(at)
                made = [rewrite(part, working.short_address(at)) for part in parts]
                kept = [part for part in made if part is not None]
                if kept and kept != list(parts):
                    yield at, working.shorten(at, kept)

    # Replacement by notes

    def _episodes(self) -> Iterator[tuple[int, int]]:
        working = self.working
        episodes = [at for at in range(len(working.messages)) if self._is_episode(at)]
        for adjacent in _adjacent(working.whole_units(episodes)):
            for run in _adjacent(working.whole_units(adjacent)):
                positions = self._needed(run)
                yield positions[0], working.replace(positions, note_text(working, positions))

    def _is_episode(self, at: int) -> bool:
        """Return True if a note may replace it: no user message or last answer of a turn."""
        working = self.working
        if not self._may_change(at) or working.is_user_turn(at):
            return False
        if working.messages[at].role != "assistant" or at + 1 >= len(working.messages):
            return True
        return not working.is_user_turn(at + 1)

    def _needed(self, run: list[int]) -> list[int]:
        """Return as much of a run as is needed, or all of it."""
        working = self.working
        needed = working.total - self.target + _NOTE_TOKENS
        open_until = -1
        for count, at in enumerate(run, 1):
            needed -= working.tokens[at]
            open_until = max(open_until, *working.unit(at))
            if needed <= 0 and at >= open_until:
                return run[:count]
        return run

    # Untrimmed content

    def stays(self) -> dict[str, int]:
        """Return the tokens of untrimmed content by reason, largest first."""
        working = self.working
        found: Counter[str] = Counter()
        for at, message in enumerate(working.messages):
            if at in working.kept:
                name = (
                    message.priority if message.priority != "normal" else "instructions and to-dos"
                )
            elif working.is_user_turn(at):
                name = "messages of the user"
            elif at >= self.tail:
                name = "newest messages"
            elif at in self.outside:
                name = "messages outside the range"
            else:
                name = "rest of trimmed messages"
            found[name] += working.tokens[at]
        found["notes"] = sum(working.count(note) for _, note in working.notes)
        rest = working.total - sum(found.values())
        found["tool schemas, and the difference to the provider's count"] = max(0, rest)
        return {name: tokens for name, tokens in found.most_common() if tokens}

    def result(self, target: int | None, before: int) -> TrimResult:
        """Return the result; `before` is the number of tokens at the start."""
        working = self.working
        return TrimResult(
            target,
            before,
            working.total,
            tuple(TrimStep(step, len(each), sum(each)) for step, each in self.savings.items()),
            {} if target is None or self.is_done() else self.stays(),
            tuple((working.messages[at].address, self.reasons[at]) for at in sorted(working.parts)),
            tuple(working.messages[at].address for run, _ in working.notes for at in run),
        )


def trim(
    store: Store,
    range: str = "",
    *,
    to: int | None,
    author: str,
    keep_last: int | None = None,
    steps: Sequence[str] = STEPS,
    partial: bool = False,
    dry_run: bool = False,
    message: str = "",
    salt: Callable[[], Salt] | None = None,
) -> TrimResult:
    """Make the context of a branch fit a number of tokens, in one commit.

    Args:
        store: the store.
        range: the messages that may change, as in `selection.select`; "" is all.
        to: the maximum tokens of the context, counted as by `token_count`; None saves as much as possible.
        author: the author of the commit.
        keep_last: number of last user turns that stay whole, however large. None keeps KEPT_TURNS of them, as far as
            they fit in half of the tokens that are not fixed.
        steps: the steps to take, of STEPS.
        partial: if the target cannot be met, trim as far as possible.
        dry_run: write nothing.
        message: the commit message; by default it states the tokens before and after.
        salt: returns the salt of private content: what is written is private if a message that it is of is.

    Returns:
        The savings. If the target cannot be met, `stays` explains the rest.

    Raises:
        BudgetError: the target cannot be met; `needed` is the smallest possible number of tokens.
        InvalidInputError: a number is negative, or the range is malformed or names no message.
        RevisionNotFoundError, MessageNotFoundError: a side of the range does not exist.
        UnbornBranchError: the branch has no commit.
        RefChangedError: another process moved the branch; nothing was written.
        StorageError: the disk failed; nothing was written.
    """
    if (to is not None and to < 0) or (keep_last is not None and keep_last < 0):
        raise errors.InvalidInputError(
            "the target and the number of turns to keep must not be negative"
        )
    context, state = working_state(store)
    tip = context.commit
    assert tip is not None
    working = WorkingContext(context, state)
    before = working.total
    within = select(store, tip, state, range)
    planned = _Trim(working, -1 if to is None else to, keep_last, within)
    planned.run(steps)
    result = planned.result(to, before)
    if dry_run:
        return result
    if not (partial or to is None or result.met):
        raise errors.BudgetError(
            f"the context cannot be trimmed to {to:,} tokens; the smallest possible is "
            f"{result.after:,}",
            code=errors.ErrorCode.TARGET_UNREACHABLE,
            needed=result.after,
            allowed=to,
        )
    if not result.steps:
        return result
    changed = [*(address for address, _ in result.changes), *result.replaced]
    draft = new_draft(store, salt=private_salt(store, state, changed, salt))
    working.draft_into(draft)
    commit = write(
        store,
        draft,
        author=author,
        message=message or f"{REASON}: {before:,} to {working.total:,} tokens",
        meta={REASON: {"before": before, "after": working.total, "target": to or 0}},
        onto=tip,
    )
    return replace(result, commit=commit)


def working_state(store: Store) -> tuple[CompiledContext, Fold]:
    """Return the context of HEAD's branch and its fold.

    Raises:
        UnbornBranchError: the branch has no commit.
    """
    contexts = ContextCompiler(store)
    return contexts.compile(), contexts.fold(resolve_commit(store, "HEAD"))


def superseded(outputs: Sequence[Output]) -> Iterator[tuple[Output, Output, str]]:
    """Return each read of a file, the later call that repeats or outdates it, and how in words."""
    found = []
    uses: dict[str, list[Output]] = {}  # of each file after the output, newest first
    for output in reversed(outputs):
        action = output.action
        if action.kind not in (READ, WRITE) or not action.paths or output.outcome.failed:
            continue
        if action.kind == READ:
            known = reversed(uses.get(action.paths[0], ()))
            later = next((each for each in known if _supersedes(each.action, action)), None)
            if later is not None and later.at != output.at:
                verb = "read again" if later.action.kind == READ else "changed"
                found.append((output, later, f"was {verb} in"))
        for path in action.paths:
            uses.setdefault(path, []).append(output)
    return reversed(found)


def _supersedes(later: Action, read: Action) -> bool:
    return set(read.paths) <= set(later.paths) and (
        later.kind == WRITE or later.span in ("", read.span)
    )


def duplicates(outputs: Sequence[Output]) -> Iterator[tuple[Output, Output]]:
    """Yield each output with the newest later one that is identical."""
    newest: dict[str, Output] = {}
    for output in outputs:
        newest[output.text] = output
    for output in outputs:
        later = newest[output.text]
        if later.at != output.at and len(output.text) >= _SMALLEST_DUPLICATE:
            yield output, later


def shortened(text: str, tokens: int, address: str, outcome: str = "") -> str:
    """Return a text's head and tail with a note between; "" if it is short enough.

    Args:
        text: the text.
        tokens: approximate number of tokens to keep; 0 keeps only the note.
        address: where the whole text is.
        outcome: how a command ended, for the note.
    """
    room = tokens * _CHARACTERS_PER_TOKEN
    if len(text) <= room + 160:
        return ""
    head, tail = text[: room * 3 // 5], text[len(text) - room * 2 // 5 :] if room else ""
    head = head[: head.rfind("\n") + 1] or head
    tail = tail[tail.find("\n") + 1 :] or tail
    gone = text[len(head) : len(text) - len(tail)]
    size = f"{gone.count(chr(10)) + 1:,} lines" if "\n" in gone else f"{len(gone):,} characters"
    said = f"[{size} removed{', ' + outcome if outcome else ''}: trace expand {address}]"
    return "\n".join(each for each in (head.rstrip("\n"), said, tail) if each)


def note_text(working: WorkingContext, positions: Sequence[int]) -> str:
    """Return a note to replace messages: their number, and a summary of their calls."""
    activity = activity_of([working.messages[at] for at in positions])
    said = []
    for verb, wanted in (("read", READ), ("changed", WRITE)):
        names = [step.action.subject for step in activity.steps if step.action.kind == wanted]
        said += [f"{verb} {_some(names)}"] if names else []
    ran = [
        step.action.subject[:60] + (" (failed)" if step.outcome and step.outcome.failed else "")
        for step in activity.steps
        if step.action.kind == RUN
    ]
    said += [f"ran {_some(ran)}"] if ran else []
    what = f": {'; '.join(said)}" if said else ""
    count = f"{len(positions)} message{'' if len(positions) == 1 else 's'}"
    return f"[{count} removed{what}. trace expand {working.short_address(positions[0])}]"


def _some(names: Sequence[str]) -> str:
    """Return the last few names, and how many more there are."""
    distinct = list(dict.fromkeys(names))
    more = len(distinct) - _NAMES
    return ", ".join(distinct[-_NAMES:]) + (f" and {more} more" if more > 0 else "")


def _shorter_call(call: Part, address: str) -> Part:
    """Return a call with its long texts shortened, if its arguments are a JSON object."""
    if not isinstance(call, ToolCall):
        return call
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call
    if not isinstance(arguments, dict):
        return call
    made = {key: _shorter_argument(each, address) for key, each in arguments.items()}
    if made == arguments:
        return call
    return ToolCall(call.id, call.name, json.dumps(made, ensure_ascii=False))


def _shorter_argument(argument: object, address: str) -> object:
    if isinstance(argument, str) and len(argument) > _ARGUMENT_CHARACTERS:
        return shortened(argument, _ARGUMENT_CHARACTERS // 8, address) or argument
    if isinstance(argument, list):
        return [_shorter_argument(each, address) for each in argument]
    if isinstance(argument, dict):
        return {key: _shorter_argument(each, address) for key, each in argument.items()}
    return argument


def _first_paragraph(part: Part, address: str) -> Part:
    if not isinstance(part, Text) or len(part.text) <= _PROSE_CHARACTERS:
        return part
    first = part.text.strip().split("\n\n", 1)[0][:_PROSE_CHARACTERS].rstrip()
    return Text(
        f"{first}\n[{len(part.text) - len(first):,} characters removed: trace expand {address}]"
    )


def _adjacent(positions: Iterable[int]) -> Iterator[list[int]]:
    for _, run in groupby(enumerate(positions), lambda each: each[1] - each[0]):
        yield [at for _, at in run]


@value
class Output:
    """A tool result in a context.

    Attributes:
        at: the position of its message.
        call_id: the id of its call.
        action: what its call does.
        outcome: how it ended.
        text: its text, as it is in the history.
    """

    at: int
    call_id: str
    action: Action
    outcome: Outcome
    text: str


class WorkingContext:
    """A context in which changes can be tried out, to measure what they save.

    Attributes:
        messages: the messages of the compiled context.
        tokens: the tokens of each, with the changes so far; 0 for a message that is replaced.
        total: the tokens of the whole context, with the changes so far.
        parts: the new parts of shortened messages, by position.
        notes: for each replaced run, its positions and the note in its place.
        outputs: the tool results, oldest first.
        kept: positions that are never changed: instructions, pinned and important messages, placeholders of removed
            ones, and the unit with the last to-do list.
    """

    def __init__(self, context: CompiledContext, fold: Fold) -> None:
        self._context = context
        self._fold = fold
        self.messages: list[CompiledMessage] = list(context.messages)
        self.tokens = [total for total, _ in context.message_tokens()]
        self.total = context.token_count
        self.parts: dict[int, tuple[Part, ...]] = {}
        self.notes: list[tuple[list[int], Message]] = []
        self.outputs: list[Output] = []
        self._position = {message.address: at for at, message in enumerate(self.messages)}
        todo_calls = self._read_calls()
        self.kept = {at for at, each in enumerate(self.messages) if _is_protected(each)}
        self.kept.update(*(self.unit(at) for at in todo_calls[-1:]))

    def _read_calls(self) -> list[int]:
        """Set `outputs`, and return the positions of the calls that set the to-do list."""
        todo_calls: list[int] = []
        calls: dict[str, Action] = {}
        for at, message in enumerate(self.messages):
            if message.ghost:
                continue
            for part in message.parts:
                if isinstance(part, ToolCall):
                    calls[part.id] = action = action_of(part)
                    todo_calls += [at] if action.kind == "plan" else []
                elif isinstance(part, ToolResult) and part.call_id in calls:
                    text = "\n".join(each.text for each in part.content if isinstance(each, Text))
                    self.outputs.append(
                        Output(at, part.call_id, calls[part.call_id], outcome_of(part), text)
                    )
        return todo_calls

    def unit(self, at: int) -> list[int]:
        """Return the positions of the visible messages in the unit of the message at `at`, sorted."""
        members = self._fold.unit(self.messages[at].address)
        return sorted(self._position[each] for each in members if each in self._position)

    def whole_units(self, positions: Iterable[int]) -> list[int]:
        """Return the positions whose whole unit is among the given positions, sorted."""
        inside = set(positions)
        return [at for at in sorted(inside) if inside.issuperset(self.unit(at))]

    def user_turns(self) -> list[int]:
        """Return the positions of the messages that the user wrote."""
        return [at for at in range(len(self.messages)) if self.is_user_turn(at)]

    def is_user_turn(self, at: int) -> bool:
        """Return True if the user wrote a message: it has text, no tool result, and is not a summary."""
        message = self.messages[at]
        return (
            message.role == "user"
            and message.kind != SUMMARY
            and any(isinstance(part, Text) and part.text.strip() for part in message.parts)
            and not any(isinstance(part, ToolResult) for part in message.parts)
        )

    def current_parts(self, at: int) -> tuple[Part, ...]:
        """Return the parts of a message, with the changes so far."""
        return self.parts.get(at) or self.messages[at].parts

    def shorten(self, at: int, parts: Sequence[Part]) -> int:
        """Shorten a message if that saves tokens; return the tokens saved."""
        message = self.messages[at]
        saved = self.tokens[at] - self.count(
            Message(message.role, parts, kind=message.kind, name=message.name, model=message.model)
        )
        if saved <= 0:
            return 0
        self.parts[at] = tuple(parts)
        self.tokens[at] -= saved
        self.total -= saved
        return saved

    def shorten_output(self, output: Output, text: str) -> int:
        """Shorten a tool result to a text; return the tokens saved."""
        parts = [
            ToolResult(part.call_id, text, part.is_error, call=part.call)
            if isinstance(part, ToolResult) and part.call_id == output.call_id
            else part
            for part in self.current_parts(output.at)
        ]
        return self.shorten(output.at, parts)

    def replace(self, positions: Sequence[int], text: str) -> int:
        """Replace adjacent messages by a note if that saves tokens; return the savings."""
        note = Message("user", text, kind=SUMMARY)
        saved = sum(self.tokens[at] for at in positions) - self.count(note)
        if saved <= 0:
            return 0
        self.notes.append((list(positions), note))
        for at in positions:
            self.tokens[at] = 0
            self.parts.pop(at, None)
        self.total -= saved
        return saved

    def draft_into(self, draft: Draft) -> None:
        """Add the operations of the changes to a draft."""
        for at in sorted(self.parts):
            draft.edit(self.messages[at].address, self.parts[at])
        for positions, note in self.notes:
            targets = [self.messages[at].address for at in positions]
            draft.replace(targets, [note], reason=REASON, sources=targets)

    def count(self, message: Message) -> int:
        """Return the tokens of a message."""
        return self._context.plain([message]).message_tokens()[0][0]

    def short_address(self, at: int) -> str:
        """Return the short address of a message."""
        address: Address = self.messages[at].address
        return address.short(8)


def _is_protected(message: CompiledMessage) -> bool:
    return (
        message.role in _INSTRUCTION_ROLES
        or message.kind == "instruction"
        or message.priority in (ops.PINNED, ops.IMPORTANT)
        or message.ghost
    )
