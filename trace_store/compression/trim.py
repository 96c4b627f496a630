"""Trim: a reversible reduction of a context to a token target, without a model.

The steps run in order of increasing harm, each from the oldest message on, until the target is met:

    superseded   a read of a file that was read again, or written as a whole, later
    duplicate    an output whose lines a later one has
    reasoning    the reasoning of old turns
    failed       the output of a failed call, down to what failed
    output       old tool outputs, cut to telling lines, head and tail, shorter in each round, as far as needed
    arguments    long arguments of old calls, such as the text of a file that was written, in the same rounds
    episode      the work between two messages of the user, replaced by a note: actions, failures, conclusion
    prose        old answers, cut to their first paragraph and their decisions

User messages, the user's answers to questions, instructions, pinned and important messages, summaries, the last to-do
list, and the newest messages are never changed. Shortened messages keep their old version and replaced ones stay in
the history, so `restore` and `undo` bring everything back. Changes are tried out in a `WorkingContext`, which knows the
tokens of each message.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import groupby, islice

from trace_store.base.frozen import value
from trace_store.compression.cuts import (
    CHARACTERS_PER_TOKEN,
    first_paragraph,
    is_note,
    note_text,
    shortened,
    shorter_call,
)
from trace_store.compression.repeats import DUPLICATE, SUPERSEDED, earlier_repeats, repeats
from trace_store.compression.selection import UNREAD, select, unread_from
from trace_store.compression.working import INSTRUCTION_ROLES, SUMMARY, working_context
from trace_store.context.activity import AGENT, PLAN, WRITE, may_say_failure
from trace_store.objects.parts import Reasoning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from trace_store.compression.repeats import Repeat
    from trace_store.compression.working import Output, WorkingContext
    from trace_store.context.compiled import CompiledContext
    from trace_store.context.compiler import ContextCompiler
    from trace_store.history.draft import CommitResult
    from trace_store.objects.address import Address
    from trace_store.objects.parts import Part

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
OUTPUT_TOKENS = (4000, 1000, 300, 80, 24)
"""Token limits for old outputs, tried in turn; the last leaves the lines that say most."""
WEIGHT = 4
"""Factor on the token limit of reports of other agents, of instructions, and of texts that notes refer to."""
FAILED_TOKENS = 300
"""Token limit for the output of a failed call."""
SMALLEST_FAILURE = 40
"""At least this many tokens of the output of a failed call stay: what failed."""
_NOTE_TOKENS = 90
DEDUPE = "dedupe"
"""What the message of a commit by `dedupe` begins with; that of a trim with `working.REASON`."""


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
        messages: how much of `before` the messages are, as `CompiledContext.message_part`.
        steps: the savings of each step, in order.
        stays: if the target is not met, the tokens of untrimmed content by reason, largest first.
        changes: the addresses of shortened messages, each with the reason.
        replaced: the addresses of replaced messages.
        older: lines of older versions of files that the context no longer contains, by the address of the read.
        commit: the commit, or None if nothing was written.
    """

    JSON = "met message_tokens=messages -messages changes:address,reason older:address,lines commit=commit.oid changed"

    target: int | None
    before: int
    after: int
    messages: int
    steps: tuple[TrimStep, ...]
    stays: Mapping[str, int]
    changes: tuple[tuple[Address, str], ...]
    replaced: tuple[Address, ...]
    older: tuple[tuple[Address, tuple[str, ...]], ...] = ()
    commit: CommitResult | None = None

    @property
    def met(self) -> bool:
        """Whether the context fits the target."""
        return self.target is None or self.after <= self.target

    @property
    def changed(self) -> bool:
        """Whether something was written."""
        return self.commit is not None


class _Trim:
    """A trim in progress.

    Attributes:
        unread: position of the first message that no model has seen.
        tail: position from which messages stay whole.
        newest_output: position of the newest output that a model has read, if it is before the tail; else -1.
        room: the tokens of it that stay, until everything else is cut and `is_newest_cut`.
        savings: the tokens that each step saves, by position.
        reasons: the last step that changed a message, by position.
    """

    def __init__(
        self,
        working: WorkingContext,
        target: int,
        keep_last: int | None,
        within: Collection[Address],
        share_of_tail: float = 0.5,
    ) -> None:
        """Set the context and the target.

        Args:
            working: the context.
            target: its maximum tokens; -1 saves as much as possible.
            keep_last: as in `plan`.
            within: the messages that may change.
            share_of_tail: how much of the room the newest messages may fill, 0 to 1; they stay whole. The room is the
                target without the messages that always stay.
        """
        self.working = working
        self.target = target
        self.outside = {
            at for at, each in enumerate(working.messages) if each.address not in within
        }
        self.unread = unread_from([each.role for each in working.messages])
        self.newest_output, self.room, self.is_newest_cut = -1, 0, False
        self.tail = self._start_of_tail(keep_last, share_of_tail)
        self.sizes = tuple(working.tokens)
        self.repeats = repeats(working, self._may_leave)
        self.holders: set[int] = set()
        self.references: dict[int, list[Repeat]] = {}
        for each in earlier_repeats(working):
            self._refer(each)
        self.older: list[tuple[Address, tuple[str, ...]]] = []
        self.savings: dict[str, Counter[int]] = {}
        self.reasons: dict[int, str] = {}

    def _start_of_tail(self, keep_last: int | None, share: float) -> int:
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
        at, room = len(working.messages), max(SMALLEST_TAIL, int((self.target - fixed) * share))
        while at > first and room >= working.tokens[at - 1]:
            at -= 1
            room -= working.tokens[at]
        newest = max((each.at for each in working.outputs if each.at < self.unread), default=-1)
        if (
            self.target >= 0 and newest < at
        ):  # the last answer speaks of it, so as much of it stays as fits
            self.newest_output, self.room = newest, room
        return at

    def is_done(self) -> bool:
        return self.working.total <= self.target

    def run(self, steps: Sequence[str]) -> None:
        """Take the steps in order until the target is met."""
        rules: list[tuple[str, Callable[[], Iterator[tuple[int, int]]]]] = [
            (SUPERSEDED, self._superseded),
            (DUPLICATE, self._duplicates),
            (REASONING, self._reasoning),
            (FAILED, self._failed),
        ]
        for tokens in OUTPUT_TOKENS:
            rules.append((OUTPUT, partial(self._outputs, tokens)))
            rules.append((ARGUMENTS, partial(self._arguments, tokens)))
        rules += [(EPISODE, self._episodes), (PROSE, self._prose)]
        rules += [(OUTPUT, partial(self._newest, tokens)) for tokens in OUTPUT_TOKENS]
        for step, rule in rules:
            if step not in steps:
                continue
            for at, saved in rule() if not self.is_done() else ():
                if saved:
                    self.savings.setdefault(step, Counter())[at] += saved
                    self.reasons[at] = step
                if self.is_done():
                    return

    def _may_change(self, at: int, *, old: bool = True) -> bool:
        """Return True if a message may be shortened; `old` excludes the newest ones."""
        if at >= self.unread or at in self.working.kept or at in self.outside:
            return False
        return not (old and at >= self.tail)

    def _old_outputs(self) -> Iterator[Output]:
        asked = self.working.asked
        return (x for x in self.working.outputs if x.at not in asked and self._may_change(x.at))

    # Content that is elsewhere in the context

    def _superseded(self) -> Iterator[tuple[int, int]]:
        return self._repeated(SUPERSEDED)

    def _duplicates(self) -> Iterator[tuple[int, int]]:
        return self._repeated(DUPLICATE)

    def _repeated(self, reason: str) -> Iterator[tuple[int, int]]:
        working = self.working
        for each in self.repeats:
            if each.reason == reason:
                saved = working.shorten_output(each.output, each.note(working))
                if saved:
                    saved += self._tell_references(each.output.at, each.output.place)
                    self._refer(each)
                    self.older.append((working.messages[each.output.at].address, each.gone))
                yield each.output.at, saved

    def _refer(self, reference: Repeat) -> None:
        self.holders.add(reference.holder.at)
        self.references.setdefault(reference.holder.at, []).append(reference)

    def _may_leave(self, output: Output, later: Output) -> bool:
        # The model may still need what it read last for its next change.
        old = later.action.kind == WRITE
        is_answer = output.at in self.working.asked
        return later.at != output.at and not is_answer and self._may_change(output.at, old=old)

    # Shortening

    def _failed(self) -> Iterator[tuple[int, int]]:
        for output in self._old_outputs():
            if output.outcome.failed:
                yield output.at, self._shorten_output(output, FAILED_TOKENS)

    def _newest(self, tokens: int) -> Iterator[tuple[int, int]]:
        """Cut the newest output deeper than to its room, after everything else."""
        if self.newest_output >= 0:
            self.is_newest_cut = True
            yield from self._outputs(tokens, self.newest_output)

    def _outputs(self, tokens: int, only: int = -1) -> Iterator[tuple[int, int]]:
        for output in self._old_outputs():
            if output.action.kind != PLAN and only in (-1, output.at):
                least = SMALLEST_FAILURE if output.outcome.failed else 0
                share = WEIGHT if self._weighs_more(output) else 1
                yield output.at, self._shorten_output(output, max(tokens * share, least))

    def _weighs_more(self, output: Output) -> bool:
        """Return True for reports of other agents, instructions, and outputs that notes refer to."""
        action = output.action
        return action.kind == AGENT or action.is_guidance or output.at in self.holders

    def _shorten_output(self, output: Output, tokens: int) -> int:
        """Cut an output to a number of tokens, or less deeply if that is enough for the target."""
        working = self.working
        if self.reasons.get(output.at) in DEDUPLICATION:
            return 0
        share = self._share_that_may_stay(output.at)
        tokens = max(tokens, int(len(output.text) * share) // CHARACTERS_PER_TOKEN)
        code = output.outcome.exit_code
        said = "" if code is None else f"exit code {code}"
        address = working.short_address(output.at)
        failures = may_say_failure(output.action, output.outcome)
        text = shortened(output.text, tokens, address, said, failures=failures)
        saved = working.shorten_output(output, text) if text else 0
        return saved + self._tell_references(output.at, output.place) if saved else 0

    def _share_that_may_stay(self, at: int) -> float:
        """Return how much of a message may stay if the target is met by a cut of this message alone, 0 to 1."""
        if self.target < 0:
            return 0.0
        working = self.working
        left = working.tokens[at] - (working.total - self.target + _NOTE_TOKENS)
        if at == self.newest_output and not self.is_newest_cut:
            left = max(left, self.room)
        return max(0.0, left / max(1, self.sizes[at]))

    def _tell_references(self, at: int, place: int | None = None) -> int:
        """Say in the references to a text, or to any of a message, that it was cut; return the tokens saved."""
        working, saved, rest = self.working, 0, []
        for each in self.references.pop(at, ()):
            if place not in (None, each.holder.place):
                rest.append(each)
            elif working.tokens[each.output.at]:  # else a note replaced it
                note = each.note(working, is_cut=True)
                saved += working.shorten_output(each.output, note, anyway=True)
                self.reasons.setdefault(each.output.at, each.reason)
        if rest:
            self.references[at] = rest
        return saved

    def _reasoning(self) -> Iterator[tuple[int, int]]:
        return self._rewrite(lambda part, _: None if isinstance(part, Reasoning) else part)

    def _arguments(self, tokens: int) -> Iterator[tuple[int, int]]:
        def shorter(part: Part, at: int) -> Part:
            if at in self.working.asked:
                return part
            address = self.working.short_address(at)
            most = tokens * (WEIGHT if at in self.holders else 1)
            return shorter_call(part, address, most, self._share_that_may_stay(at))

        for at, saved in self._rewrite(shorter):
            yield at, saved + self._tell_references(at) if saved else 0

    def _prose(self) -> Iterator[tuple[int, int]]:
        def shorter(part: Part, at: int) -> Part:
            return first_paragraph(part, self.working.short_address(at))

        return self._rewrite(shorter, "assistant")

    def _rewrite(
        self, rewrite: Callable[[Part, int], Part | None], role: str = ""
    ) -> Iterator[tuple[int, int]]:
        """Rewrite the parts of old messages; `rewrite` gets the position, too, and None drops a part."""
        working = self.working
        for at, message in enumerate(working.messages):
            if self._may_change(at) and working.tokens[at] and role in ("", message.role):
                parts = working.current_parts(at)
                made = [rewrite(part, at) for part in parts]
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
                if len(positions) == 1 and is_note(working.messages[positions[0]].text):
                    continue
                saved = working.replace(positions, note_text(working, positions))
                if saved:
                    saved += sum(map(self._tell_references, positions))
                yield positions[0], saved

    def _is_episode(self, at: int) -> bool:
        """Return True if a note may replace it: no user message, summary, or last answer of a turn."""
        working = self.working
        if not self._may_change(at) or working.is_users(at) or at in working.asked:
            return False
        message = working.messages[at]
        is_summary = message.kind == SUMMARY and not is_note(message.text)
        if at == self.newest_output or is_summary:
            return False
        if message.role != "assistant":
            return True
        behind = range(at + 1, len(working.messages))
        following = (
            each for each in behind if working.messages[each].role not in INSTRUCTION_ROLES
        )
        return not any(map(working.is_users, islice(following, 1)))

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
            elif at >= self.unread:
                name = UNREAD
            elif working.is_users(at):
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
            working.messages_before,
            tuple(TrimStep(step, len(each), each.total()) for step, each in self.savings.items()),
            {} if target is None or self.is_done() else self.stays(),
            tuple((working.messages[at].address, self.reasons[at]) for at in sorted(working.parts)),
            tuple(working.messages[at].address for run, _ in working.notes for at in run),
            tuple((address, lines) for address, lines in self.older if lines),
        )


def plan(
    contexts: ContextCompiler,
    range: str = "",
    *,
    to: int | None,
    keep_last: int | None = None,
    steps: Sequence[str] = STEPS,
    compiled: CompiledContext | None = None,
) -> tuple[TrimResult, WorkingContext]:
    """Plan a trim; nothing is written.

    Args:
        contexts: compiles the contexts of the branch.
        compiled: the context to trim; by default that of the tip.
        range: the messages that may change, as in `selection.select`; "" is all.
        to: the maximum tokens of the context, counted as by `token_count`; None saves as much as possible.
        keep_last: number of last user turns that stay whole, however large. None keeps KEPT_TURNS of them, as far as
            they fit in half of the tokens that are not fixed.
        steps: the steps to take, of STEPS.

    Returns:
        The savings, and the context with the changes.

    Raises:
        InvalidInputError: the range is malformed or names no message.
        RevisionNotFoundError, MessageNotFoundError: a side of the range does not exist.
        UnbornBranchError: the branch has no commit.
    """
    working = working_context(contexts, compiled)
    before, target = working.total, -1 if to is None else to
    within = select(contexts.store, working.tip, working.fold, range)
    planned = _Trim(working, target, keep_last, within)
    planned.run(steps)
    if to is not None and keep_last is None and not planned.is_done():
        # So the newest messages must be cut, too, except for a few.
        working = working_context(contexts, compiled)
        planned = _Trim(working, target, keep_last, within, share_of_tail=0)
        planned.run(steps)
    return planned.result(to, before), working


def _adjacent(positions: Iterable[int]) -> Iterator[list[int]]:
    for _, run in groupby(enumerate(positions), lambda each: each[1] - each[0]):
        yield [at for _, at in run]
