"""One session: a branch whose requests fit the context window.

It adds no storage of its own. Type, task, state and limits are facts of commits. The description and the project's
context are instruction messages with these names. A compaction is a compression.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, pairwise
from typing import Any, NamedTuple, TypeGuard

from trace_store import errors, history, records
from trace_store.base import check
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId, digest
from trace_store.checkpoints.soft import state_at
from trace_store.checkpoints.work_state import WorkState
from trace_store.context.compiled import CompiledContext, CompiledMessage, as_counted
from trace_store.context.usage import Usage, as_mapping, normalise_usage
from trace_store.contracts.ref_names import BRANCHES
from trace_store.history.draft import CommitResult, Draft
from trace_store.llm.contract import Model
from trace_store.objects import operations as ops
from trace_store.objects.message import Message, load_message
from trace_store.objects.parts import Text
from trace_store.providers.documents import Given
from trace_store.providers.rendering import NO_MESSAGES
from trace_store.sessions import facts as names
from trace_store.sessions import work
from trace_store.sessions.compactions import (
    ASKED,
    AT_LIMIT,
    CompactionEntry,
    Compactor,
    compactions,
)
from trace_store.sessions.facts import BACKGROUND, INLINE, MODES, OFF, SessionFacts
from trace_store.sessions.forecast import STEPS, Forecast
from trace_store.sessions.requests import (
    CONTEXT,
    DESCRIPTION,
    INSTRUCTION,
    SUMMARY,
    Preview,
    RequestShape,
    SessionRequest,
    part_of,
    request_from,
)
from trace_store.trajectories.events import Task
from trace_store.trajectories.trajectories import Trajectories
from trace_store.writer import Writer

EVENT = "session"
"""The kind of events that `store.follow` yields for sessions."""
_BEGINS = 0.5
"""A background compaction starts when this share of the room above the target is used."""
_FAR = 2_000
"""Maximum commits to search for reports."""
_MOST_REPORTED = 10
"""Reports of more than this many times the limit are recorded but not learned from."""
_NUMBER = re.compile(r"\d[\d,]{2,}")


@value
class SessionSummary:
    """Summary of a session.

    Attributes:
        state: the state of the work.
        text: the visible summaries and iteration results.
        version: the number of compactions so far.
    """

    JSON = "*state text version"

    state: WorkState | None
    text: str
    version: int


class Iteration:
    """One attempt within a session."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.given: dict[str, Any] | None = None

    def result(self, *, checks: Mapping[str, bool] | None = None, note: str = "") -> None:
        """Set the result, which replaces the attempt's messages when the block ends.

        Args:
            checks: True for each check that passed, by name.
            note: a note for the next attempt.
        """
        check.text(note=note)
        found = {str(name): bool(passed) for name, passed in (checks or {}).items()}
        self.given = {"number": self.number, "checks": found, "note": note}

    def as_text(self) -> str:
        """Return the result as text."""
        assert self.given is not None
        checks = self.given["checks"]
        lines = [f"Result of attempt {self.number}:"]
        for word, wanted in (("passed", True), ("failed", False)):
            named = [name for name, passed in checks.items() if passed is wanted]
            lines += [f"- {word}: {', '.join(named)}"] if named else []
        lines += [self.given["note"]] if self.given["note"] else []
        return "\n".join(lines)


class _Report(NamedTuple):
    """A provider's report for a request.

    Attributes:
        about: the commit whose context was sent.
        estimated, reported: input tokens as estimated by Trace, and as reported.
        only_added: whether the commits up to the next report only add messages.
    """

    about: ObjectId
    estimated: int
    reported: int
    only_added: bool


class Session:
    """A session of an open repository; `repo.sessions.start` and `open` return one.

    Methods that write raise StateError if the session is closed or a merge of its branch is stopped, and StorageError
    if the disk fails; then nothing is written. A session may be open in several processes.

    Attributes:
        ref: the full name of its branch.
        compaction: "inline", "background" or "off".
    """

    def __init__(
        self, writer: Writer, *, model: Model | None = None, compaction: str = INLINE
    ) -> None:
        check.function(model=model)
        if compaction not in MODES:
            raise errors.InvalidInputError(
                f"compaction is {', '.join(MODES)}, not {str(compaction)[:40]!r}"
            )
        self.ref = writer.ref
        self.compaction = compaction
        self._writer = writer
        self._compactor = Compactor(writer, model, self._emit, self._packed_work)
        self._forecast = Forecast()
        self._known_tip: ObjectId | None = None

    def __repr__(self) -> str:
        return f"Session({self.name})"

    # What it is

    @property
    def name(self) -> str:
        """The name of its branch."""
        return self.ref.removeprefix(BRANCHES)

    @property
    def model(self) -> Model | None:
        """The model that writes summaries; None quotes the most important sentences."""
        return self._compactor.model

    @model.setter
    def model(self, model: Model | None) -> None:
        check.function(model=model)
        self._compactor.model = model

    @property
    def facts(self) -> SessionFacts:
        """Its type, feature, task, state and limits, and whether it is closed."""
        return SessionFacts.of(history.facts.branch_facts(self._writer))

    @property
    def state(self) -> str:
        """Its state, such as "in_qa"."""
        return self.facts.state

    @state.setter
    def state(self, state: str) -> None:
        check.text(state=state)
        before = self.state
        if state != before:
            self._configure({names.STATE: state}, f"state: {state}")
            self._emit("state", state=state, before=before)

    def close(self, reason: str = "") -> None:
        """End the session; nothing can be added until it is reopened."""
        check.text(reason=reason)
        self._compactor.wait()
        self._configure({names.CLOSED: reason or "done"}, f"close: {reason or 'done'}")
        self._emit("closed", reason=reason)

    def reopen(self) -> None:
        """Open a closed session again."""
        if self.facts.closed:
            self._write(lambda draft: draft.configure(meta={names.CLOSED: ""}), "reopen")
            self._emit("reopened")

    # Its messages

    def add(
        self,
        *messages: Given,
        usage: object = None,
        request: SessionRequest | Mapping[str, Any] | None = None,
        model: str = "",
    ) -> CommitResult:
        """Add messages as one commit.

        Args:
            messages: `Message` values, or dictionaries and objects of providers.
            usage: the provider's usage report; by default that of the reply, if any.
            request: the request that the reply answers, or its JSON form.
            model: the model that answered; by default the one named in the reply.

        Raises:
            InvalidMessageError, InvalidInputError: a message or the usage has an unknown shape, a prompt is empty,
                or nothing is given.
            SecretFoundError: a message holds a secret, and the repository refuses secrets.
        """
        self._check_open()
        for each in messages:
            if isinstance(each, Message) and each.role == "user" and _is_blank(each):
                raise errors.InvalidMessageError("the prompt is empty")
        if request is not None and not isinstance(request, SessionRequest):
            request = request_from(request)
        report = self._report_in(messages, usage) if request is not None else None
        forecast = self._learned()
        made = self._write(
            lambda draft: self._draft_into(draft, messages, report, request, model), ""
        )
        if report is not None and request is not None and request.sizes:
            if not self._is_likely(report.input_total):
                return made
            forecast.report(request.sizes, report.input_total)
            self._known_tip = made.oid
        return made

    def _draft_into(
        self,
        draft: Draft,
        messages: Sequence[Given],
        report: Usage | None,
        request: SessionRequest | None,
        model: str,
    ) -> None:
        if messages:
            draft.extend(list(messages))
        if report is not None and request is not None:
            named = model or next((_model_in(each) for each in messages if _model_in(each)), "")
            draft.record_usage(
                report,
                model=named,
                about=request.commit,
                renderer=request.provider,
                sent=request.sent,
                estimated=request.estimated,
            )

    @staticmethod
    def _report_in(messages: Sequence[Given], usage: object) -> Usage | None:
        if usage is not None:
            return normalise_usage(usage)
        for each in messages:
            shape = None if isinstance(each, Message) else as_mapping(each)
            if shape is not None and shape.get("usage") is not None:
                return normalise_usage(shape["usage"])
        return None

    def refused(self, error: object, request: SessionRequest) -> None:
        """Record that a provider refused a request as too long.

        Args:
            error: the exception or its text; a token count in it is used.
            request: the refused request.

        Raises:
            InvalidInputError: it is not a request of a session.
        """
        if not isinstance(request, SessionRequest):
            raise errors.InvalidInputError(
                "the refused request is what `request` returned", argument="request"
            )
        found = tokens_in_refusal(str(error), request.limit)
        least = max(request.bound, request.tokens) * 11 // 10
        usage = Usage(found or least, 0, 0, 0, 0, "refusal")
        self.add(usage=usage, request=request)

    def messages(self) -> list[CompiledMessage]:
        """Return the visible messages, in order."""
        return list(self._compile().messages)

    def clear(self, *, all: bool = False) -> CommitResult | None:
        """Hide the messages; return None if there is nothing to hide.

        Instructions stay visible. Summaries and pinned messages stay unless `all` is set. `undo` or `revert` undoes it.
        """
        check.flag(all=all)
        self._check_open()
        gone = [
            each.address
            for each in self._compile()
            if part_of(each) not in (DESCRIPTION, CONTEXT)
            and (all or (each.kind != SUMMARY and each.priority != ops.PINNED))
        ]
        if not gone:
            return None
        done = self._write(lambda draft: draft.remove(gone), "clear all" if all else "clear")
        self._emit("cleared", messages=len(gone))
        return done

    @contextmanager
    def iteration(self) -> Iterator[Iteration]:
        """Start an attempt. At the end of the block, its result replaces its messages and is pinned.

        The messages stay readable by address. Without a result, or after an error, they stay visible.
        """
        self._check_open()
        before = {each.address for each in self._compile()}
        number = self.facts.iteration + 1
        found = Iteration(number)
        self._emit("iteration", number=number)
        yield found
        if found.given is None:
            return
        gone = [
            each.address
            for each in self._compile()
            if each.address not in before
            and part_of(each) not in (DESCRIPTION, CONTEXT)
            and each.priority != ops.PINNED
        ]
        made = Message("user", found.as_text(), kind=SUMMARY)
        checks = json.dumps(found.given["checks"])

        def add(draft: Draft) -> None:
            added = (
                draft.replace(gone, [made], reason="iteration") if gone else draft.extend([made])
            )
            draft.annotate(added, priority=ops.PINNED)
            draft.configure(meta={names.ITERATION: number, names.CHECKS: checks})

        self._write(add, f"attempt {number}")
        self._emit("iteration-done", **found.given)

    # Requests

    def request(self, message: str | Given = "", *, provider: str = "anthropic") -> SessionRequest:
        """Return the next request, compacted or cut as needed to fit the limit.

        Messages that a model has seen are compacted first. Unread messages that are too large are cut to head and tail,
        in this request only.

        Args:
            message: a prompt to add, or "".
            provider: "anthropic", "openai", "openai-responses" or "gemini".

        Raises:
            BudgetError: the parts that cannot be compacted are too large; the error lists them.
            InvalidInputError: the provider is unknown.
            RenderError: there is no message to send.
        """
        self._check_open()
        if message:
            given: Given = Message("user", message) if isinstance(message, str) else message
            self.add(given)
        shape = self._fitting()
        forecast = self._learned()
        rendered = shape.context.plain(shape.messages()).render(provider)
        if any(each.code == NO_MESSAGES for each in rendered.repairs):
            raise errors.RenderError(f"{self.name} has nothing to send: add a message first")
        body = rendered.request
        assert shape.context.commit is not None
        return SessionRequest(
            body,
            provider,
            shape.context.commit,
            forecast.tokens(shape.sizes),
            forecast.bound(shape.sizes),
            self.facts.limit,
            shape.estimated,
            digest(json.dumps(body, ensure_ascii=False, sort_keys=True).encode()),
            (*self._compactor.take(), *shape.cut_notes()),
            shape.cut_addresses,
            tuple(rendered.repairs),
            shape.sizes,
        )

    def preview(self, message: str | Given = "") -> Preview:
        """Return the tokens of the next request without compaction; write nothing."""
        shape, forecast = RequestShape(self._compile()), self._learned()
        sizes = dict(shape.sizes)
        parts = shape.part_sizes()
        if message:
            given = history.draft.as_messages(
                [Message("user", message) if isinstance(message, str) else message]
            )
            added = sum(n for n, _ in shape.context.plain(given).message_tokens())
            sizes["new"] = added
            parts[""] = parts.get("", 0) + added
        total, facts = forecast.tokens(sizes), self.facts
        found = {name: round(size * forecast.factor) for name, size in parts.items()}
        shown = sum(found.values())
        return Preview(
            description=found.get(DESCRIPTION, 0),
            context=found.get(CONTEXT, 0),
            summary=found.get(SUMMARY, 0),
            messages=found.get("", 0),
            beside=max(0, total - shown),
            total=max(total, shown),
            bound=max(forecast.bound(sizes), shown),
            reply=facts.reply,
            limit=facts.limit,
        )

    def compact(self, *, instructions: str = "") -> CompactionEntry:
        """Compact now, and return the compaction.

        The target is a share of the limit, or the same share of the context if that is smaller.

        Args:
            instructions: what the summary should focus on.

        Raises:
            StateError: nothing can be compacted; the message gives the reason.
        """
        check.text(instructions=instructions)
        self._check_open()
        self._compactor.wait()
        shape = RequestShape(self._compile())
        facts = self.facts
        to = min(self._target(shape, facts), int(shape.context.token_count * facts.target))
        if not self._compactor.compact(max(1, to), ASKED, instructions=instructions):
            done = self._compactor.take()
            raise errors.StateError(
                "; ".join(done) or "nothing to compact", code=errors.ErrorCode.NO_GAIN
            )
        self._compactor.take()
        return next(compactions(self._writer))

    def wait(self) -> None:
        """Wait for a background compaction to end."""
        self._compactor.wait()

    def cancel(self) -> None:
        """Cancel a background compaction; it writes nothing."""
        self._compactor.cancel()

    def history(self) -> list[CompactionEntry]:
        """Return the compactions, newest first."""
        return list(compactions(self._writer))

    @property
    def summary(self) -> SessionSummary:
        """The state of the work, including compacted messages, and the visible summaries."""
        texts = [each.text for each in self._compile() if each.kind == SUMMARY]
        return SessionSummary(self._work(), "\n\n".join(texts), self._compactor.count())

    def review(self, *, approved: bool, reason: str = "") -> str:
        """Record an approval or a rejection as a decision in the trajectory of the session's task.

        Args:
            approved: whether it was approved.
            reason: why.

        Returns:
            The id of the trajectory: the newest active one of the task, or a new one.

        Raises:
            StateError: the session has no task.
        """
        check.flag(approved=approved)
        check.text(reason=reason)
        task, trajectories = self.facts.task, Trajectories(self._writer)
        if not task:
            raise errors.StateError(f"{self.name} has no task")
        active = trajectories.list(task=task, status="active", limit=1)
        known = active[0] if active else trajectories.start(task, task=Task(task, id=task))
        chosen = "approved" if approved else "rejected"
        trajectories.decide(f"{self.name}?", chosen, reasoning=reason, trajectory=known.id)
        self._emit("reviewed", approved=approved)
        return known.id

    def export(self) -> dict[str, Any]:
        """Return the whole session as JSON values, like `trace sessions export`.

        It has every message as first written, hidden ones included, and why it is hidden.
        """
        store, head = self._writer.store, self._writer.store.refs.head()
        messages = []
        if head.oid is not None:
            for entry in self._writer.contexts.fold(head.oid).entries:
                first = load_message(entry.message, store.objects.read)
                message = records.plain(first)
                messages.append(
                    {"address": entry.address.hex, **message, "hidden": entry.hidden or None}
                )
        return {
            "session": self.name,
            **records.record(self.facts),
            "messages": messages,
            "compactions": [records.record(each) for each in self.history()],
        }

    def _work(self) -> WorkState | None:
        """Return the state of the work; None without messages."""
        before = work.unpack(history.facts.branch_facts(self._writer).get(names.WORK, ""))
        if all(part_of(each) in (DESCRIPTION, CONTEXT) for each in self._compile()):
            return before
        now = state_at(self._writer, self.ref)
        return now if before is None else work.joined(before, now)

    def _packed_work(self) -> str:
        state = self._work()
        return "" if state is None else work.pack(state)

    # Fitting the limit

    def _fitting(self) -> RequestShape:
        """Compact, trim and cut until the next request fits, and return it.

        Raises:
            BudgetError: it cannot be made to fit.
        """
        facts, forecast = self.facts, self._learned()
        if facts.room <= 0:
            raise errors.BudgetError(
                f"the limit of {facts.limit:,} leaves nothing beside {facts.reply:,} for the reply",
                allowed=facts.limit,
                needed=facts.reply,
            )
        if self.compaction == BACKGROUND:
            self._compact_in_background(facts)
        shape = self._shape(facts)
        steps = (
            lambda _: self._compactor.wait(),
            lambda shape: self._compactor.compact(self._target(shape, facts), AT_LIMIT),
            lambda shape: self._compactor.trim(self._target(shape, facts)),
        )
        for step in () if self.compaction == OFF else steps:
            if forecast.bound(shape.sizes) <= facts.room:
                break
            step(shape)
            shape = self._shape(facts)
        whole = RequestShape(shape.context) if shape.cuts else shape
        over = forecast.bound(whole.sizes) - facts.room
        # Cut no deeper than needed. Before the first report the bound is too low to use all of the room.
        if over > 0 and (forecast.has_report or forecast.bound(shape.sizes) > facts.room):
            left = whole.unread_size - int(over / forecast.largest)
            wider = whole.with_news_of(max(0, left))
            if forecast.bound(wider.sizes) <= facts.room or not shape.cuts:
                shape = wider
        if (bound := forecast.bound(shape.sizes)) > facts.room:
            raise self._too_large(shape, bound, facts)
        return shape

    def _shape(self, facts: SessionFacts) -> RequestShape:
        """Return the next request; if it is too large, cut unread messages to half of the room."""
        shape, forecast = RequestShape(self._compile()), self._learned()
        news = int(facts.room / 2 / forecast.largest)
        if forecast.bound(shape.sizes) > facts.room and shape.unread_size > news:
            return shape.with_news_of(news)
        return shape

    def _too_large(
        self, shape: RequestShape, bound: int, facts: SessionFacts
    ) -> errors.BudgetError:
        parts = {name or "messages": size for name, size in shape.part_sizes().items() if size}
        parts["beside them"] = max(0, bound - sum(parts.values()))
        named = ", ".join(f"{size:,} {name}" for name, size in parts.items())
        return errors.BudgetError(
            f"the request would have up to {bound:,} tokens, and {facts.reply:,} are kept for the reply; "
            f"the limit is {facts.limit:,}: {named}",
            code=errors.ErrorCode.REQUEST_TOO_LARGE,
            needed=bound + facts.reply,
            allowed=facts.limit,
        )

    def _compact_in_background(self, facts: SessionFacts) -> None:
        shape = RequestShape(self._compile())
        begins = facts.goal + (facts.room - facts.goal) * _BEGINS
        if self._learned().bound(shape.sizes) > begins:
            self._compactor.start(self._target(shape, facts))

    def _target(self, shape: RequestShape, facts: SessionFacts) -> int:
        """Return the compression target for a request, in the unit of `token_count`."""
        context = shape.context
        gone = shape.estimated - self._learned().room_for(shape.sizes, facts.goal, facts.room)
        return max(1, context.token_count - max(0, as_counted(context, gone)))

    def _learned(self) -> Forecast:
        """Return the forecast, updated with reports that other processes wrote."""
        store = self._writer.store
        tip, forecast = store.refs.head().oid, self._forecast
        if tip is None or tip == self._known_tip:
            return forecast
        found = list(islice(self._reports(tip), STEPS + 1))
        if not forecast.has_report:
            for newer, older in pairwise(found):
                if older.only_added:
                    came = newer.estimated - older.estimated
                    forecast.learn(came, newer.reported - older.reported)
        if found:
            context = self._writer.contexts.compile(found[0].about)
            sizes = RequestShape(context).sizes_of_sent(found[0].estimated)
            forecast.report(sizes, found[0].reported)
        self._known_tip = tip
        return forecast

    def _reports(self, tip: ObjectId) -> Iterator[_Report]:
        """Yield the reports since the last known tip, newest first."""
        at: ObjectId | None = tip
        only_added = True
        for _ in range(_FAR):
            if at is None or at == self._known_tip:
                return
            commit = self._writer.contexts.read_commit(at)
            for operation in commit.operations:
                if operation.name == ops.USAGE:
                    about = operation.fields.get("about", next(iter(commit.parents), None))
                    estimated, reported = map(operation.fields.get, ("estimated", "input_total"))
                    if isinstance(estimated, int) and self._is_likely(reported) and about:
                        yield _Report(ObjectId(about), estimated, reported, only_added)
                        only_added = True
            only_added = only_added and ops.only_appends(commit)
            at = commit.parents[0] if commit.parents else None

    def _is_likely(self, reported: object) -> TypeGuard[int]:
        """Return True for a plausible token count."""
        return isinstance(reported, int) and 0 < reported <= _MOST_REPORTED * self.facts.limit

    # Writing

    def _compile(self) -> CompiledContext:
        return self._writer.contexts.compile()

    def _check_open(self) -> None:
        names.check_open(self._writer)

    def _configure(self, facts: Mapping[str, str], message: str) -> None:
        self._check_open()
        self._write(lambda draft: draft.configure(meta=facts), message)

    def _write(self, add: Callable[[Draft], object], message: str) -> CommitResult:
        draft = Draft(self._writer)
        add(draft)
        return history.commit.write(draft, message=message)

    def _emit(self, event: str, **data: Any) -> None:
        store = self._writer.store
        store.emit(EVENT, {"ref": self.ref, "event": event, **data}, author=self._writer.author)


def _is_blank(message: Message) -> bool:
    """Return True if a message has only blank text."""
    return all(isinstance(each, Text) and not each.text.strip() for each in message.parts)


def begin(
    session: Session,
    facts: Mapping[str, Any],
    *,
    description: str = "",
    context: str = "",
    tools: Sequence[Mapping[str, Any]] = (),
    messages: Sequence[Message] = (),
    links: Sequence[tuple[str, ObjectId | str]] = (),
    onto: ObjectId | None = None,
) -> None:
    """Write the first commit of a session.

    Args:
        session: the session, whose branch does not exist yet.
        facts: its facts by full name.
        description: the agent's role, or "".
        context: the project, or "".
        tools: tool definitions.
        messages: messages after the instructions.
        links: as in `Commit`.
        onto: the commit to start from; None starts with an empty context.
    """
    writer = session._writer
    draft = Draft(writer)
    draft.configure(meta=facts)
    for name, text in ((DESCRIPTION, description), (CONTEXT, context)):
        if text:
            draft.append("system", text, name=name, kind=INSTRUCTION)
    if tools:
        draft.set_tools(tools)
    if messages:
        draft.extend(messages)
    history.commit.write(draft, message=f"start {session.name}", links=links, onto=onto)
    told = {name.removeprefix(names.PREFIX): str(each) for name, each in facts.items()}
    session._emit("created", **told)


def tokens_in_refusal(text: str, limit: int) -> int:
    """Return the input tokens in a provider's refusal, or 0.

    It is the largest number in the text, if above half of the limit: providers give their count and their maximum.
    """
    found = [int(each.replace(",", "")) for each in _NUMBER.findall(text)]
    return max((each for each in found if each > limit // 2), default=0)


def _model_in(given: Given) -> str:
    shape = None if isinstance(given, Message) else as_mapping(given)
    model = (shape or {}).get("model")
    return model if isinstance(model, str) else ""
