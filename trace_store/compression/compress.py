"""Compression: one commit that replaces each run of messages by a summary.

Never replaced: instructions, pinned messages, tool calls that wait for their result, and what no model was shown yet. A
call and its results stay together. A summary is written from the original messages, including those that an earlier
summary replaced. Must-keep texts and the facts of the tool calls are added or checked by rule, no matter who wrote the
summary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from trace_store import errors
from trace_store.base.frozen import replace, value
from trace_store.base.oid import ObjectId
from trace_store.compression.extract import Passage, SourceMessage, extract, focus_words
from trace_store.compression.selection import (
    COMPRESSION,
    UNREAD,
    Origins,
    select,
    unread_from,
)
from trace_store.compression.summaries import (
    FACTS_SHARE,
    ModelSummariser,
    facts,
    length_faults,
)
from trace_store.context.activity import activity_of, answers_in
from trace_store.context.compiled import (
    as_counted,
    count_of,
    sizes_of,
    sums_of,
    tokens_in,
    tokens_of,
)
from trace_store.context.compiler import ContextCompiler
from trace_store.context.content import prefix_after, seen_of_entry
from trace_store.context.fold import REPLACED, Entry, Fold
from trace_store.context.snapshots import fold_of
from trace_store.context.wording import is_inserted, own_words
from trace_store.history.draft import CommitResult, Draft
from trace_store.llm.contract import Model
from trace_store.merge.llm_assist.answer import matches
from trace_store.merge.llm_assist.request import text_for_model
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import read_commit
from trace_store.objects.content import read_content, text_of
from trace_store.objects.message import Message, load_parts, part_blobs
from trace_store.objects.parts import Opaque, Part, Text, ToolCall, ToolResult
from trace_store.providers.media import is_compaction
from trace_store.store.revision import resolve_commit
from trace_store.store.store import Store

SUMMARY, TOOL_IO = "summary", "tool_io"
"""Kinds of messages: summaries, and tool output that some formats store as a user message."""
VERSION = 1
"""The version of the rules, recorded in the commit."""
LIMIT_SHARE = 0.6
"""A compression shrinks the context to at most this share of its budget, to leave room for new messages."""
NEW_SHARE = 0.1
"""A branch is compressed again only after growing by this share; each compression should save at least as much."""
MAXIMUM_IDLE_RUNS = 3
INSTRUCTIONS = ("system", "developer")
"""Roles whose messages stay. Only current ones count: those that an agent's compaction replaced are not summarised."""
MAXIMUM_SUMMARY = 8_000
"""Maximum tokens of a summary."""
RECENT_SHARES = (0.75, 0.5, 0.25)
"""Shares of the room for the newest messages: the first share that allows reaching the target is used."""
MINIMUM_SUMMARY = 60
"""The smallest token budget of a summary, not counting must-keep texts."""
_HEAD = "Summary of {} earlier messages:"
_COUNTS = ("after", "idle")


@value
class MessageRun:
    """Adjacent messages that one summary replaces.

    Attributes:
        targets: the messages to replace, in order.
        sources: the messages to summarise: the targets, and the originals of summaries among them.
        token_count: tokens of the targets.
        minimum: the smallest token budget of their summary.
        budget: the maximum tokens of the summary.
    """

    JSON = "messages=targets -minimum"

    targets: tuple[Address, ...]
    sources: tuple[Address, ...]
    token_count: int
    minimum: int
    budget: int = 0


@value
class CompressionPlan:
    """The plan of a compression.

    Attributes:
        tip: the commit of the context.
        target: the maximum tokens of the context; None accepts any size.
        before: tokens of the context now.
        after: the maximum tokens of the context afterwards.
        smallest: the smallest target that keeps the same messages; a smaller one may keep fewer recent messages.
        messages: how much of `before` the messages are, as `CompiledContext.message_part`.
        runs: the runs to replace.
        kept: the number of kept messages of the range, by reason.
    """

    JSON = "-tip message_tokens=messages -messages"

    tip: ObjectId
    target: int | None
    before: int
    after: int
    smallest: int
    messages: int
    runs: tuple[MessageRun, ...]
    kept: Mapping[str, int]


@value
class CompressionResult:
    """A compression that was written.

    Attributes:
        plan: the plan.
        result: the commit; None if the context was small enough already.
        after: tokens of the context now.
        summariser: `model`, `extractive` or `manual`.
        model: the name of the model, or "".
        texts: the summaries.
    """

    JSON = (
        "*plan commit=result.oid changed ref=result.ref secrets=result.secrets summariser? model? "
        "summaries:address,text -texts"
    )

    plan: CompressionPlan
    result: CommitResult | None
    after: int
    summariser: str = ""
    model: str = ""
    texts: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether something was written."""
        return self.result is not None

    def speaks_of(self, instructions: str) -> bool:
        """Whether the summaries have a word of some instructions; a model may follow them in other words."""
        return not focus_words(instructions).isdisjoint(focus_words(" ".join(self.texts)))

    @property
    def summaries(self) -> list[tuple[Address, str]]:
        """The summaries: address and text."""
        addresses = () if self.result is None else self.result.addresses
        return list(zip(addresses, self.texts, strict=True))


def limited_target(store: Store, to: int | None) -> int | None:
    """Return a target that is at most LIMIT_SHARE of the repository's budget; None without a target and a budget.

    Raises:
        InvalidInputError: the target is not positive.
    """
    if to is not None and to < 1:
        raise errors.InvalidInputError("the target must be at least one token")
    budget = store.config.budget
    limit = None if budget is None else int(budget * LIMIT_SHARE)
    known = [each for each in (to, limit) if each is not None]
    return min(known) if known else None


class Planner:
    """Plans compressions of one branch; asks no model and writes nothing.

    Raises:
        UnbornBranchError: the branch has no commit.
    """

    def __init__(self, contexts: ContextCompiler) -> None:
        self._contexts = contexts
        self.store = store = contexts.store
        compiled = contexts.compile()
        self.tip = resolve_commit(store, "HEAD")
        self.state = fold_of(store, self.tip)
        self.before = compiled.token_count
        self._places = {entry.address: n for n, entry in enumerate(self.state.entries)}
        self._origins = Origins(store, self.state)
        self._loaded: dict[Address, Message] = {}
        self._has_summaries = any(entry.hidden == REPLACED for entry in self.state.entries)
        self._context = compiled
        sizes = sizes_of(compiled)
        self._raw = {
            each.address: size for each, size in zip(compiled.messages, sizes, strict=True)
        }
        self.sizes = {
            each.address: as_counted(compiled, size)
            for each, (size, _) in zip(compiled.messages, compiled.message_tokens(), strict=True)
        }

    def in_order(self, addresses: Iterable[Address]) -> list[Address]:
        """Return messages in the order of the context."""
        return sorted(addresses, key=self._places.__getitem__)

    def count(self, text: str) -> int:
        """Return the tokens of a text."""
        return tokens_in(self._context, text)

    def tokens_of(self, text: str) -> int:
        """Return the tokens of a summary with this text."""
        return tokens_of(self._context, Message("user", text, kind=SUMMARY))

    def count_with(self, runs: Iterable[MessageRun], texts: Iterable[str]) -> int:
        """Return the tokens of the context with these summaries in place of their runs."""
        gone = [self._raw[each] for run in runs for each in run.targets]
        notes = [Message("user", each, kind=SUMMARY) for each in texts]
        added = sizes_of(self._context.plain(notes))
        total, text, media = (
            all_ - sum(one[n] for one in gone) + sum(one[n] for one in added)
            for n, all_ in enumerate(sums_of(self._context))
        )
        return count_of(self._context, (total, text, media))

    def plan(
        self,
        range: str,
        target: int | None,
        keep_last: int | None = None,
        *,
        also_unread: bool = False,
    ) -> CompressionPlan:
        """Return the plan.

        Args:
            range: the messages to compress, as in `selection.select`. Without one, as many of the newest messages stay
                as the target allows.
            target: the maximum tokens of the context; None replaces the whole range, at any size.
            keep_last: the minimum number of user turns to keep at the end.
            also_unread: also replace messages that no model has seen.

        Raises:
            InvalidInputError: the range is malformed, or names nothing that can be replaced.
            RevisionNotFoundError, MessageNotFoundError: a side of the range does not exist.
            BudgetError: the target cannot be reached; `needed` is the smallest that can.
        """
        if target is not None and self.before <= target:
            return self._plan_of(target, self.before, self.before, (), {})
        chosen = select(self.store, self.tip, self.state, range)
        kept: dict[Address, str] = {}
        shown = list(self.state.visible())
        unread = unread_from([entry.message["role"] for entry in shown])
        turn = self._start_of_turns(shown, keep_last)
        for at, entry in enumerate(shown):
            why = self._why_kept(entry) or (UNREAD if at >= unread and not also_unread else "")
            why = why or ("recent" if at >= turn else "")
            if entry.address in chosen and why:
                kept.update(dict.fromkeys(self.state.unit(entry.address), why))
        for address in chosen - kept.keys():
            if any(each in self.sizes and each not in chosen for each in self.state.unit(address)):
                kept[address] = "in a call that the range splits"
        free = [a for a in self.sizes if a in chosen and a not in kept]
        shares = RECENT_SHARES if target is not None and not range else ()
        recent: set[Address] = set()
        runs, small, smallest = self._runs(chosen - kept.keys())
        for share in shares:
            newest = self._recent(free, target or 0, share)
            found = self._runs(chosen - kept.keys() - newest)
            if found[0] and found[2] <= (target or 0):
                recent, (runs, small, smallest) = newest, found
                break
        runs, smallest = self._without_summaries(runs, smallest, target, kept)
        kept.update(dict.fromkeys(recent, "recent"))
        kept.update(dict.fromkeys(small, "shorter than a summary"))
        if not runs:
            raise errors.InvalidInputError(
                "the range has nothing to compress: "
                + ", ".join(f"{n:,} {why}" for why, n in _tally(kept, self.sizes).items())
            )
        if target is not None and smallest > target:
            beside = self.before - sum(self.sizes.values())
            stay = sum(self.sizes.values()) - sum(run.token_count for run in runs)
            raise errors.BudgetError(
                f"the smallest possible context has {smallest:,} tokens, not {target:,}: {stay:,} in messages "
                f"that stay, {beside:,} beside the messages",
                code=errors.ErrorCode.TARGET_UNREACHABLE,
                needed=smallest,
                allowed=target,
            )
        return self._budgeted(runs, target, smallest, _tally(kept, self.sizes))

    def _budgeted(
        self, runs: Sequence[MessageRun], target: int | None, smallest: int, kept: Mapping[str, int]
    ) -> CompressionPlan:
        """Return a plan that divides the available tokens among its runs."""
        room = (self.before if target is None else target) - smallest
        spare = sum(run.token_count - run.minimum for run in runs)
        made = []
        for run in runs:
            share = run.minimum + room * (run.token_count - run.minimum) // spare
            budget = min(share, max(MAXIMUM_SUMMARY, run.minimum), run.token_count - 1)
            made.append(replace(run, budget=budget))
        after = self.before - sum(run.token_count - run.budget for run in made)
        return self._plan_of(target, after, smallest, tuple(made), kept)

    def _plan_of(
        self,
        target: int | None,
        after: int,
        smallest: int,
        runs: tuple[MessageRun, ...],
        kept: Mapping[str, int],
    ) -> CompressionPlan:
        messages = self._context.message_part
        return CompressionPlan(self.tip, target, self.before, after, smallest, messages, runs, kept)

    def _start_of_turns(self, shown: Sequence[Entry], count: int | None) -> int:
        """Return the position of the first kept turn."""
        if not count:
            return len(shown)
        turns = [at for at, entry in enumerate(shown) if _is_turn(entry)]
        return turns[-count] if len(turns) >= count else 0

    def _why_kept(self, entry: Entry) -> str:
        if entry.message["role"] in INSTRUCTIONS:
            return "instructions"
        if entry.priority == ops.PINNED:
            return "pinned"
        if any(map(is_compaction, self._opaque_parts(entry))):
            return "a summary of the provider's own"
        return "waiting for a result" if self._is_open(entry) else ""

    def _opaque_parts(self, entry: Entry) -> list[Part]:
        stored = [part for part in entry.parts if part["type"] == Opaque.type]
        return list(load_parts(stored, self.store.objects.read))

    def _is_open(self, entry: Entry) -> bool:
        """Return True for a call without a result in the user's last turn: the result may still come."""
        calls = {part["id"] for part in entry.parts if part["type"] == ToolCall.type}
        if not calls:
            return False
        unit = [self.state.entry(each) for each in self.state.unit(entry.address)]
        answered = {p["id"] for e in unit for p in e.parts if p["type"] == ToolResult.type}
        if calls <= answered:
            return False
        later = self.state.entries[self.state.entries.index(entry) + 1 :]
        return not any(each.visible and _is_turn(each) for each in later)

    def _recent(self, free: Sequence[Address], target: int, share: float) -> set[Address]:
        """Return the newest messages and the user's last one that fit a share of the room."""
        room = target - self.before + sum(self.sizes[each] for each in free)
        room = max(int(room * share), room - MAXIMUM_SUMMARY) if room > MINIMUM_SUMMARY else 0
        recent: set[Address] = set()
        prompt = next(
            (a for a in reversed(free) if self.state.entry(a).message["role"] == "user"), None
        )
        if prompt is not None and 2 * self.sizes[prompt] <= room:
            recent.add(prompt)
            room -= self.sizes[prompt]
        for address in reversed(free):
            unit = [a for a in self.state.unit(address) if a in self.sizes and a not in recent]
            size = sum(self.sizes[each] for each in unit)
            if size > room:
                break
            recent.update(unit)
            room -= size
        return recent

    def _runs(self, chosen: Collection[Address]) -> tuple[list[MessageRun], list[Address], int]:
        """Return the runs that shrink, the messages of other runs, and the minimum size."""
        groups: list[list[Address]] = [[]]
        placed: set[Address] = set()
        for entry in self.state.visible():
            if entry.address in placed:
                continue
            if entry.address not in chosen:
                groups.append([])
                continue
            unit = [a for a in self.state.unit(entry.address) if a in self.sizes]
            groups[-1] += unit
            placed.update(unit)
        runs, small = [], []
        for group in filter(None, groups):
            run = self._run(self.in_order(group))
            if run.sources and run.token_count > run.minimum:
                runs.append(run)
            else:
                small += group
        return runs, small, self.before - sum(run.token_count - run.minimum for run in runs)

    def _without_summaries(
        self, runs: list[MessageRun], smallest: int, target: int | None, kept: dict[Address, str]
    ) -> tuple[list[MessageRun], int]:
        """Drop runs of summaries only, if the target can be reached without them."""
        old = [run for run in runs if not set(run.targets) & set(run.sources)]
        without = smallest + sum(run.token_count - run.minimum for run in old)
        if len(old) == len(runs) or (target is not None and without > target):
            return runs, smallest
        kept.update((each, "in a summary already") for run in old for each in run.targets)
        return [run for run in runs if run not in old], without

    def _run(self, targets: Sequence[Address]) -> MessageRun:
        sources: dict[Address, None] = {}
        for each in targets:
            if not self.state.entry(each).is_ghost:  # its content was deliberately removed
                found = self._origins.originals(each) if self._has_summaries else (each,)
                sources.update(dict.fromkeys(found))
        ordered = tuple(self.in_order(sources))
        kept = [text for each in (*ordered, *targets) for text in self.must_keep(each)]
        minimum = MINIMUM_SUMMARY + sum(self.count(each) + 4 for each in dict.fromkeys(kept))
        size = sum(self.sizes[each] for each in targets)
        return MessageRun(tuple(targets), ordered, size, minimum)

    def must_keep(self, address: Address) -> list[str]:
        """Return the texts of a message that a summary must contain."""
        entry, read = self.state.entry(address), self.store.objects.read
        if not entry.keep:
            return []
        said = self.said(address)
        patterns = [text_of(read_content(each, read)) for each in entry.keep]
        return [found for pattern in patterns for found in matches(pattern, said)]

    def messages(self, addresses: Iterable[Address]) -> list[Message]:
        """Return messages with their content; it is read once."""
        wanted = list(addresses)
        self._load([each for each in dict.fromkeys(wanted) if each not in self._loaded])
        return [self._loaded[each] for each in wanted]

    def said(self, address: Address) -> str:
        """Return the text of a message for a model: texts, calls and results, without reasoning."""
        return text_for_model(self.messages([address])[0].parts)

    def _load(self, addresses: Sequence[Address]) -> None:
        objects, entries = self.store.objects, [self.state.entry(each) for each in addresses]
        ids = dict.fromkeys(oid for entry in entries for oid in part_blobs(entry.parts))
        wanted = [oid for oid in ids if oid not in objects.purged]
        known: dict[bytes, bytes] = dict(objects.read_many(wanted))

        def read(oid: bytes) -> bytes:
            return known[oid] if oid in known else objects.read(oid)

        for entry in entries:
            parts = load_parts(entry.parts, read)
            self._loaded[entry.address] = Message(entry.message["role"], parts)

    def last_compression(self) -> Mapping[str, Any] | None:
        """Return the metadata of the newest compression with a visible summary, or None."""
        read = self.store.objects.read
        recorded: dict[bytes, Mapping[str, Any]] = {}
        for entry in self.state.visible():
            if entry.message.get("kind") == SUMMARY:
                counts = read_commit(entry.home[0], read).meta.get(COMPRESSION)
                if isinstance(counts, dict) and all(type(counts.get(k)) is int for k in _COUNTS):
                    recorded[entry.home[0]] = counts
        oid = self.tip
        while recorded and oid not in recorded:  # homes are first-parent ancestors of the tip
            oid = read_commit(oid, read).parents[0]
        return recorded.get(oid)

    def check_growth(self) -> None:
        """Check that the branch has grown, and that its last compressions saved something.

        Raises:
            StateError: code `no-gain` if not.
        """
        previous = self.last_compression()
        if previous is None:
            return
        new, needed = self.before - previous["after"], int(previous["after"] * NEW_SHARE)
        if new < needed:
            why = f"the branch has {max(new, 0):,} new tokens since its last compression, and {needed:,} are needed"
        elif previous["idle"] >= MAXIMUM_IDLE_RUNS:
            why = f"the last {previous['idle']} compressions of the branch saved less than a tenth each"
        else:
            return
        raise errors.StateError(why, code=errors.ErrorCode.NO_GAIN)

    def renewed(self, found: CompressionPlan) -> CompressionPlan:
        """Return an earlier plan, updated to the current tip.

        Raises:
            RefChangedError: the messages to replace have changed since.
        """
        then = fold_of(self.store, found.tip)
        self._check_unchanged(found, then, self.state, self.tip)
        return replace(found, tip=self.tip, before=self.before)

    def unchanged_tip(self, found: CompressionPlan) -> ObjectId:
        """Return the branch's new tip if the messages of a plan are unchanged.

        Raises:
            RefChangedError: they are not.
        """
        tip = self._contexts.compile().commit
        now = self.state if tip is None else fold_of(self.store, tip)
        self._check_unchanged(found, self.state, now, tip)
        assert tip is not None
        return tip

    def _check_unchanged(
        self, found: CompressionPlan, then: Fold, now: Fold, tip: ObjectId | None
    ) -> None:
        for address in (a for run in found.runs for a in run.targets):
            same = address in now and now.entry(address).same_state(then.entry(address))
            if tip is None or not same or set(now.unit(address)) != set(then.unit(address)):
                raise errors.RefChangedError(
                    f"message {address} was changed meanwhile",
                    ref=self.store.refs.head().ref,
                    expected=found.tip,
                    actual=tip,
                )


class Summaries:
    """The summaries of a plan's runs, written and checked.

    Attributes:
        kind: `model`, `extractive` or `manual`.
        texts: the summaries.
        after: the tokens of the context with them.
        prompts: the request to the model for each run, or None.
    """

    def __init__(
        self,
        planner: Planner,
        plan: CompressionPlan,
        model: Model | None,
        text: str,
        window: int,
        focus: str = "",
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Write the summaries.

        Args:
            planner: planned the compression.
            plan: its plan.
            model: writes the summaries; None selects the most important sentences.
            text: a summary written by hand, for a plan with a single run.
            window: the maximum tokens of history in one request.
            focus: what the summaries should dwell on, or "".
            progress: called with (written, total) summaries before each request.

        Raises:
            StateError: code `no-gain` if the summaries are not shorter than what they replace.
            ModelError: the request failed, or two answers could not be used.
            InvalidInputError: `text` is empty, or loses what must be kept, or is for several runs.
            BudgetError: the target is missed with `text`.
        """
        self._planner = planner
        self._plan = plan
        self._text = text.strip()
        self._focus = focus
        if text and (not self._text or len(plan.runs) > 1):
            why = f"for one run of messages, and the range has {len(plan.runs)}"
            raise errors.InvalidInputError(f"a written summary is {why if self._text else 'empty'}")
        self._progress = progress
        self._written = 0
        asked = model and self._watched(model)
        self._model = None if asked is None or text else ModelSummariser(asked, window)
        self.kind = "manual" if text else "extractive" if self._model is None else "model"
        self.prompts: list[str | None] = []
        replaced = {a for run in plan.runs for a in run.targets}
        shown = [a for a in planner.sizes if a not in replaced]
        everything = planner.in_order(dict.fromkeys([*self.sources, *shown]))
        self._todos = activity_of(planner.messages(everything)).todos
        texts: list[str] = []
        for self._written, run in enumerate(plan.runs):
            self._tell()
            texts.append(self._summary(run, is_last=run is plan.runs[-1]))
        self.texts = tuple(texts)
        self.after = planner.count_with(plan.runs, self.texts)
        self._check_size()

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._written, len(self._plan.runs))

    def _watched(self, model: Model) -> Model:
        """Wrap a model to report progress before each request."""
        if self._progress is None:
            return model

        def ask(request: Any) -> Any:
            self._tell()
            return model(request)

        return ask

    def _check_size(self) -> None:
        before, target = self._plan.before, self._plan.target
        if self.after >= before:
            raise errors.StateError(
                f"the summary is not shorter than what it replaces ({before:,} tokens)",
                code=errors.ErrorCode.NO_GAIN,
            )
        if target is not None and self.after > target:
            raise errors.BudgetError(
                f"the context would have {self.after:,} tokens with this text, not {target:,}",
                code=errors.ErrorCode.TARGET_UNREACHABLE,
                needed=self.after,
                allowed=target,
            )

    @property
    def sources(self) -> list[Address]:
        """The messages that the summaries are written from."""
        return [address for run in self._plan.runs for address in run.sources]

    @property
    def answers(self) -> Sequence[Any]:
        """The model's answers, in order."""
        return () if self._model is None else self._model.answers

    @property
    def model_name(self) -> str:
        """The model's name from its answers; "" without a model."""
        return next((each.model for each in self.answers if each.model), "")

    def _summary(self, run: MessageRun, *, is_last: bool) -> str:
        planner, count = self._planner, self._planner.count
        kept = {each: tuple(planner.must_keep(each)) for each in (*run.sources, *run.targets)}
        if self._text:
            if wrong := _losses(self._text, kept):
                raise errors.InvalidInputError(f"the summary cannot be used: {wrong[0]}")
            self.prompts.append(None)
            return self._text
        head = _HEAD.format(f"{len(run.sources):,}")
        done = replace(activity_of(planner.messages(run.sources)), todos=self._todos)
        room = run.budget - run.minimum + MINIMUM_SUMMARY
        listed = facts(done, int(room * FACTS_SHARE), count, todos=is_last)

        def whole(text: str) -> str:
            return "\n".join(filter(None, (head, text, listed)))

        left = run.budget - planner.tokens_of(whole("")) - 1

        def faults(text: str) -> list[str]:
            return length_faults(text, left, count) or _losses(text, kept)

        passage = Passage(self._said(run, kept), left, count, faults, self._focus)
        if self._model is None:
            self.prompts.append(None)
            return whole(extract(passage))
        asked = len(self._model.requests)
        text = self._model(passage)
        self.prompts.append("\n\n".join(self._model.requests[asked:]))
        return whole(text)

    def _said(
        self, run: MessageRun, kept: Mapping[Address, tuple[str, ...]]
    ) -> list[SourceMessage]:
        planner, state = self._planner, self._planner.state
        sources = set(run.sources)
        extra = [each for each in run.targets if each not in sources and kept[each]]
        answers = answers_in(planner.messages(run.sources)) if self._model is None else {}
        answered = {run.sources[at]: text for at, text in answers.items()}
        return [
            self._source(entry, kept[entry.address], answered.get(entry.address, ""))
            for entry in (state.entry(each) for each in (*run.sources, *extra))
            if entry.message["role"] not in INSTRUCTIONS or kept[entry.address]
        ]

    def _source(self, entry: Entry, kept: tuple[str, ...], answer: str) -> SourceMessage:
        """Return a message to summarise; sentences are chosen from what is said, a model reads the calls, too."""
        role, address = entry.message["role"], entry.address
        if answer:
            return SourceMessage("user", answer, kept, address.short(8), True)
        [message] = self._planner.messages([address])
        said = "\n".join(part.text for part in message.parts if isinstance(part, Text))
        is_request = (
            role == "user"
            and entry.message.get("kind", "dialogue") == "dialogue"
            and not is_inserted(said)
        )
        if self._model is not None:
            said = self._planner.said(address)
        elif is_request:
            said = own_words(said)
        return SourceMessage(role, said, kept, address.short(8), is_request)

    def draft_into(self, draft: Draft) -> None:
        """Add the operations of the compression to a draft."""
        state = self._planner.state
        for run, text, prompt in zip(self._plan.runs, self.texts, self.prompts, strict=True):
            # The originals behind a summary among the targets are found through it, so a commit
            # grows with what is new in it. Ghosts are replaced, but are no sources.
            sources = [each for each in run.targets if not state.entry(each).is_ghost]
            draft.replace(
                run.targets,
                [Message("user", text, kind=SUMMARY)],
                reason=COMPRESSION,
                model=self.model_name,
                prompt=prompt,
                sources=() if len(sources) == len(run.targets) else sources,
            )
        for answer in self.answers:
            if answer.usage is not None:
                draft.record_usage(answer.usage, model=answer.model)

    def meta(self) -> dict[str, Any]:
        """Return the commit's metadata about the compression."""
        plan, messages = self._plan, sum(self._planner.sizes.values())
        previous = self._planner.last_compression()
        saved_little = plan.before - self.after < messages * NEW_SHARE
        recorded: dict[str, Any] = {
            "after": self.after,
            "before": plan.before,
            "idle": (previous["idle"] if previous else 0) + 1 if saved_little else 0,
            "sources": [self._hash(run.sources).hex() for run in plan.runs],
            "summariser": self.kind,
            "version": VERSION,
        }
        return {
            COMPRESSION: recorded | ({"target": plan.target} if plan.target is not None else {})
        }

    def _hash(self, addresses: Iterable[Address]) -> bytes:
        """Return a hash of the model-visible content of messages."""
        found = b""
        for address in addresses:
            found = prefix_after(found, seen_of_entry(self._planner.state.entry(address)))
        return found


def _is_turn(entry: Entry) -> bool:
    """Return True for a message that the user wrote."""
    return (
        entry.message["role"] == "user"
        and entry.message.get("kind") not in (SUMMARY, TOOL_IO)
        and all(part["type"] != ToolResult.type for part in entry.parts)
    )


def _losses(text: str, kept: Mapping[Address, Sequence[str]]) -> list[str]:
    """Return a sentence for each must-keep text that a summary lacks."""
    return [
        f"it loses {each[:80]!r}, which {address} must keep"
        for address, texts in kept.items()
        for each in texts
        if each not in text
    ]


def _tally(kept: Mapping[Address, str], sizes: Mapping[Address, int]) -> dict[str, int]:
    return dict(sorted(Counter(why for each, why in kept.items() if each in sizes).items()))
