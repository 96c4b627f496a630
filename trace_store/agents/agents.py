"""`Agents`, the subject `repo.agents`.

An agent is a session. Its first commit links the parent's commit, and records the parent's branch and the tool call.
The parent is not part of its name. `collapse` adds the conclusion to the parent as one message. That commit links a
soft checkpoint of the agent, so the agent's messages stay reachable if its branch is deleted.
"""

from __future__ import annotations

import os
from builtins import list as List  # the method `list` hides it  # noqa: N812
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from trace_store import errors, history, merge
from trace_store.agents import links
from trace_store.agents.agent import (
    COLLAPSED,
    COLLAPSES,
    FINISHED,
    INTERRUPTED,
    RUNNING,
    SPAWNED,
    WAITING,
    AgentInfo,
    AgentSession,
    is_held,
    name_of_agent,
    open_calls,
)
from trace_store.base import check
from trace_store.base.frozen import replace, value
from trace_store.base.oid import ObjectId, is_full_id
from trace_store.checkpoints.hard import Checkpoint
from trace_store.checkpoints.soft import SOURCE, save_soft, soft_data, state_at
from trace_store.compression.compress import INSTRUCTIONS
from trace_store.context.compiled import CompiledContext, LoadedMessage
from trace_store.context.fold import Entry
from trace_store.contracts import agent_facts
from trace_store.contracts.ref_names import BRANCHES, SESSIONS, branch_ref
from trace_store.exporters.contract import AGENTS
from trace_store.exporters.session import session_name
from trace_store.history.draft import CommitResult, Draft
from trace_store.llm.contract import Model
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.message import Message, load_message
from trace_store.objects.parts import ToolResult
from trace_store.sessions import facts as names
from trace_store.sessions.facts import INLINE, SessionFacts
from trace_store.sessions.requests import SUMMARY
from trace_store.sessions.session import Session, begin
from trace_store.store.revision import name_of, resolve_address, resolve_commit
from trace_store.writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.ident import Time
    from trace_store.context.compiler import Compiler

AGENT_TYPE = "agent"
PARENT_STORE = f"{names.PARENT}-store"
"""Fact: the id of the parent's repository, if it is another one."""
FULL, SUMMARISED, NONE = "full", "summary", "none"
CHECKPOINTS_OF = "agents/"
"""Name prefix of soft checkpoints of agents."""
_MOST_FILES = 12
_MOST_DECISIONS = 6
_STEP_WIDTH = 72


@value
class Collapsed:
    """Result of `collapse`.

    Attributes:
        name: the agent.
        changed: False if the agent added nothing since the last collapse; then nothing is written.
        commit: the new commit of the parent, or None.
        address: the new message of the parent, or None.
        text: the message's text.
        checkpoint: the name of the agent's soft checkpoint, or "".
        call: the id of the call that the message answers, or "".
    """

    name: str
    changed: bool
    commit: ObjectId | None
    address: Address | None
    text: str
    checkpoint: str
    call: str


@value
class TimelineEntry:
    """A commit of an agent or its parent.

    Attributes:
        time: milliseconds since the epoch.
        agent: the name of the agent, or the parent's branch.
        commit: the commit.
        summary: a one-line summary.
    """

    time: Time
    agent: str
    commit: ObjectId
    summary: str


class Agents:
    """The agents of a repository, including imported subagents.

    Methods accept an agent's name or branch.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._store = writer.store

    def spawn(
        self,
        name: str,
        purpose: str,
        *,
        parent: str | Session = "",
        inherit: str | Sequence[str | Address] = SUMMARISED,
        call: str = "",
        budget: int | None = None,
        description: str = "",
        store: str | os.PathLike[str] = "",
        model: Model | None = None,
        compaction: str = INLINE,
    ) -> AgentSession:
        """Create an agent: a session linked to its parent's commit and tool call.

        Args:
            name: its name.
            purpose: its task, as the first prompt.
            parent: the parent session or branch; by default HEAD's branch.
            inherit: the parent's messages to start with: "full" (all), "summary" (the state of the work), "none", or
                addresses.
            call: the id of an open tool call of the parent, or "".
            budget: maximum tokens of a request and its reply; by default the parent's.
            description: its role, as an instruction message.
            store: a folder for a repository of its own, which is created if needed and linked both ways. Inherited
                messages are copied. `release` or `close` closes it.
            model: as in `sessions.start`.
            compaction: as in `sessions.start`.

        Raises:
            AlreadyExistsError: there is an agent of this name.
            UnbornBranchError, RefNotFoundError: the parent has no commit, or does not exist.
            MessageNotFoundError: a message to inherit does not exist.
            InvalidInputError: an argument is not valid, or the parent has no such open call.
        """
        check.text(name=name, purpose=purpose, call=call, description=description)
        check.count(budget=budget)
        check.path(store=store)
        above = self._parent(parent)
        point = resolve_commit(above.store, "HEAD")
        if call and not self._is_open(above, call):
            raise errors.InvalidInputError(
                f"{above.ref} has no call {call[:80]!r} without a result", argument="call"
            )
        ref = branch_ref(f"sessions/{AGENT_TYPE}/{name}")
        if self._store.refs.read(ref) is not None:
            raise errors.AlreadyExistsError(
                f"there is an agent {name}", code=errors.ErrorCode.BRANCH_EXISTS, ref=ref
            )
        picked = self._picked(inherit)
        known = SessionFacts.of(history.facts.branch_facts(above))
        facts = {
            names.TYPE: AGENT_TYPE,
            names.STATE: "open",
            names.LIMIT: budget or known.limit,
            names.TARGET: known.target,
            names.REPLY: min(known.reply, (budget or known.limit) // 4),
            names.PARENT: above.ref,
            names.POINT: str(point),
            agent_facts.PURPOSE: purpose,
            names.CLOSED: "",
            **({agent_facts.CALL: call} if call else {}),
            **({names.TASK: known.task} if known.task else {}),
        }
        messages = [Message("user", purpose)] if purpose else []
        if inherit == SUMMARISED and (brief := self._brief(above, point)):
            messages.insert(0, Message("user", brief, kind=SUMMARY))
        options: dict[str, Any] = {"model": model, "compaction": compaction}
        if store:
            copies = [history.lookup.message(above.store, each, "HEAD").message for each in picked]
            if inherit == FULL:
                copies = [each.message() for each in above.contexts.compile()]
            facts[PARENT_STORE] = self._store.config.store_id
            return self._elsewhere(
                os.fspath(store), ref, facts, description, [*copies, *messages], options
            )
        agent = AgentSession(self._writer.on(ref), **options)
        begin(
            agent,
            facts,
            description=description,
            messages=[] if picked else messages,
            links=[(SPAWNED, point)],
            onto=point if inherit == FULL else None,
        )
        if picked:
            merge.cherry_pick.cherry_pick(self._writer.on(ref), picked)
            agent.add(*messages)
        agent.hold()
        return agent

    def _elsewhere(
        self,
        path: str,
        ref: str,
        facts: dict[str, Any],
        description: str,
        messages: Sequence[Message],
        options: Mapping[str, Any],
    ) -> AgentSession:
        """Create an agent in a repository of its own."""
        other = links.opened_or_made(self._writer, path)
        try:
            if other.store.refs.read(ref) is not None:
                raise errors.AlreadyExistsError(
                    f"there is an agent {name_of_agent(ref)} in {path}",
                    code=errors.ErrorCode.BRANCH_EXISTS,
                    ref=ref,
                )
            links.link_stores(self._store, other.store)
            agent = AgentSession(other.on(ref), **options)
            agent.owns_store = True
            spawned = f"{facts[PARENT_STORE]}:{facts[names.POINT]}"
            begin(
                agent,
                facts,
                description=description,
                messages=messages,
                links=[(SPAWNED, spawned)],
            )
            agent.hold()
        except BaseException:
            links.close(other.store)
            raise
        return agent

    def resume(
        self, name: str, *, model: Model | None = None, compaction: str = INLINE
    ) -> AgentSession:
        """Resume an agent at its last commit; `open_calls` lists calls without a result.

        Raises:
            LockedError: another process has it open.
            RefNotFoundError: there is no such agent.
        """
        options: dict[str, Any] = {"model": model, "compaction": compaction}
        try:
            agent = AgentSession(self._writer.on(self._ref(name)), **options)
        except errors.RefNotFoundError:
            link = self._link_of(name)
            if link is None:
                raise
            other = links.opened_or_made(self._writer, link.path)
            agent = AgentSession(other.on(Agents(other)._ref(name)), **options)
            agent.owns_store = True
        try:
            agent.hold()
        except errors.LockedError:
            agent.release()
            raise
        return agent

    def list(self, *, parent: str | Session = "") -> List[AgentInfo]:
        """Return the agents, sorted by name; with a parent, only its own."""
        above = self._parent(parent).ref if parent else ""
        found = [self._info(ref) for ref in self._refs()]
        for link in links.linked_stores(self._store):
            try:
                with links.opened(self._writer, link) as other:
                    found += [self._linked(each, link) for each in Agents(other)._sent_from(self)]
            except (errors.RepositoryNotFoundError, errors.StateError, errors.FormatError):
                continue  # `linked` says why
        found.sort(key=lambda each: each.name)
        return [each for each in found if not above or each.parent == above]

    def linked(self) -> List[tuple[links.LinkedStore, str]]:
        """Return the linked repositories, each with its error if it cannot be opened, else ""."""
        found: List[tuple[links.LinkedStore, str]] = []
        for link in links.linked_stores(self._store):
            try:
                with links.opened(self._writer, link):
                    found.append((link, ""))
            except errors.TraceError as error:
                found.append((link, str(error)))
        return found

    def get(self, name: str) -> AgentInfo:
        """Return one agent.

        Raises:
            RefNotFoundError: there is no such agent.
            RepositoryNotFoundError, StateError: its repository is missing, or another one is there.
        """
        with self._holding(name) as (writer, ref, link):
            info = Agents(writer)._info(ref)
            return info if link is None else self._linked(info, link)

    def tree(self) -> List[tuple[int, AgentInfo]]:
        """Return (depth, agent) in tree order."""
        everyone = self.list()
        found: List[tuple[int, AgentInfo]] = []
        refs = {each.ref for each in everyone}

        def add(parent: str, depth: int) -> None:
            for each in everyone:
                is_top = not depth and each.parent not in refs
                if (is_top or each.parent == parent) and all(each is not one for _, one in found):
                    found.append((depth, each))
                    add(each.ref, depth + 1)

        add("", 0)
        return found

    def collapse(
        self,
        name: str,
        *,
        to: str | Session = "",
        text: str = "",
        model: Model | None = None,
    ) -> Collapsed:
        """Add an agent's conclusion to its parent, as one message with files and decisions.

        The message answers the call that spawned the agent, if that is open. The commit links a soft checkpoint of the
        agent, so `expand` works after its branch is deleted. A second collapse covers only newer messages.

        Args:
            name: the agent.
            to: the session or branch that gets the message; by default the parent.
            text: the conclusion; by default the agent's last answer.
            model: writes the conclusion.

        Raises:
            InvalidInputError: the target is the agent itself, or its parent is unknown.
            ModelError: the model failed; nothing was written.
            RefNotFoundError: there is no such agent, or no such branch.
            StateError: the agent has not said anything, and no text is given.
        """
        check.text(text=text)
        check.function(model=model)
        with self._holding(name) as (writer, ref, link):
            there = Agents(writer)
            info = there._info(ref)
            if not to and not info.parent:
                raise errors.InvalidInputError(f"{name} has no known parent: give `to`")
            above = self._parent(to or info.parent)
            if above.ref == ref and link is None:
                raise errors.InvalidInputError(f"{name} cannot be collapsed into itself")
            child = writer.on(ref)
            tip = resolve_commit(child.store, "HEAD")
            before = history.facts.branch_facts(above).get(COLLAPSED + ref, "")
            if before == str(tip):
                return Collapsed(info.name, False, None, None, "", "", "")
            since = f"{before}..HEAD" if is_full_id(before) else there._own_range(info)
            if not (text or model) and not _has_answer(child, info):
                raise errors.StateError(
                    f"{name} has not said anything yet: wait for its answer, or give a text"
                )
            saved = there._save(child, info, since, model)
            said = there._conclusion(saved, info, text)
            target = saved.commit if link is None else f"{link.id}:{saved.commit}"
        call = info.call if self._is_open(above, info.call) else ""
        message = (
            Message("tool", [ToolResult(call, said)])
            if call
            else Message("user", said, kind=SUMMARY)
        )
        draft = Draft(above)
        draft.append(message)
        draft.configure(meta={COLLAPSED + ref: str(tip)})
        made = history.commit.write(
            draft, message=f"agent {info.name}", links=[(COLLAPSES, target)]
        )
        (address,) = made.addresses
        return Collapsed(info.name, True, made.oid, address, said, saved.name, call)

    def expand(self, message: str | Address, *, ref: str | Session = "") -> CommitResult:
        """Add the messages of a collapsed agent to the branch, after its conclusion.

        Args:
            message: the conclusion (`Collapsed.address`).
            ref: its branch or session; by default HEAD's branch.

        Raises:
            InvalidInputError: the message is not the conclusion of an agent.
        """
        above = self._parent(ref)
        found = self._collapsed(above, message)
        draft = Draft(above)
        if found.entries:
            carried = [entry.to_carried() for entry in found.entries]
            draft.operations.append(ops.add(carried, after=found.after))
        elif found.copies:
            draft.extend(found.copies, after=found.after)
        else:
            draft.operations.append(ops.restore([found.address]))  # all of them are here
        return history.commit.write(draft, message=f"expand {found.address.short(8)}")

    def expanded(self, *messages: str | Address, ref: str | Session = "") -> Compiler:
        """Return a compiler for `compile` that shows collapsed agents in full; it writes nothing."""
        above = self._parent(ref)
        found = {each.after: each for each in (self._collapsed(above, m) for m in messages)}
        read = above.store.objects.read

        def shown(context: CompiledContext) -> Sequence[Message]:
            made: List[Message] = []
            for each in context.messages:
                made.append(LoadedMessage.of(each))
                if (own := found.get(each.address)) is not None:
                    made += own.copies
                    made += [load_message(entry.message, read) for entry in own.entries]
            return made

        return shown

    def timeline(self, *wanted: str) -> List[TimelineEntry]:
        """Return the commits of agents and of their parents, oldest first.

        Args:
            wanted: the agents; by default all.
        """
        infos = [self.get(each) for each in wanted] if wanted else self.list()
        refs = dict.fromkeys([each.ref for each in infos])
        refs.update(dict.fromkeys(each.parent for each in infos if each.parent))
        found: List[TimelineEntry] = []
        seen: set[ObjectId] = set()
        for ref in sorted(refs, key=lambda ref: ref.startswith(f"{SESSIONS}{AGENT_TYPE}/")):
            if self._store.refs.read(ref) is None:
                continue
            for entry in history.log.log(self._store.on(ref), "HEAD"):
                if entry.oid in seen:
                    continue
                seen.add(entry.oid)
                line = history.summary.summary(self._store, entry.commit, _STEP_WIDTH)
                found.append(TimelineEntry(entry.commit.time, name_of_agent(ref), entry.oid, line))
        return sorted(found, key=lambda each: each.time)

    # Finding

    @contextmanager
    def _holding(self, name: str) -> Iterator[tuple[Writer, str, links.LinkedStore | None]]:
        """Open the repository of an agent; yield its writer, the agent's branch, and the link or None."""
        try:
            ref = self._ref(name)
        except errors.RefNotFoundError:
            link = self._link_of(name)
            if link is None:
                raise
        else:
            yield self._writer, ref, None
            return
        with links.opened(self._writer, link) as other:
            yield other, Agents(other)._ref(name), link

    def _link_of(self, name: str) -> links.LinkedStore | None:
        """Return the link to the repository of an agent, or None."""
        for link in links.linked_stores(self._store):
            with links.opened(self._writer, link) as other:
                try:
                    Agents(other)._ref(name)
                except errors.RefNotFoundError:
                    continue
                return link
        return None

    def _sent_from(self, above: Agents) -> List[AgentInfo]:
        """Return the agents here whose parent is in another repository."""
        wanted = above._store.config.store_id
        found = []
        for ref in self._refs():
            if history.facts.branch_facts(self._writer.on(ref)).get(PARENT_STORE) == wanted:
                found.append(self._info(ref))
        return found

    def _linked(self, info: AgentInfo, link: links.LinkedStore) -> AgentInfo:
        """Return an agent of a linked repository, with its folder and `ahead`."""
        ahead = None
        if info.parent and self._store.refs.read(info.parent) is not None:
            before = history.facts.branch_facts(self._writer.on(info.parent)).get(
                COLLAPSED + info.ref, ""
            )
            if is_full_id(before):
                with links.opened(self._writer, link) as other:
                    ahead = _ahead_of(other.on(info.ref), ObjectId.parse(before))
        return replace(info, store=os.path.dirname(link.path), ahead=ahead)

    def _refs(self) -> Iterator[str]:
        """Yield the branches of agents, in order."""
        for ref, _ in self._store.refs.iterate(SESSIONS):
            named = session_name(ref)
            if named is None:
                continue
            kind = named[2].partition("/")[0]
            if kind == AGENTS or (named[0] == AGENT_TYPE and not named[2]):
                yield ref

    def _ref(self, name: str) -> str:
        check.text(name=name)
        own = f"{SESSIONS}{AGENT_TYPE}/{name}"
        for ref in (name, own, BRANCHES + name):
            if ref.startswith("refs/") and self._store.refs.read(ref) is not None:
                return ref
        found = [ref for ref in self._refs() if name_of_agent(ref).rpartition("/")[2] == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise errors.AmbiguousRevisionError(
                f"{len(found)} agents are named {name!r}", revision=name, candidates=tuple(found)
            )
        raise errors.RefNotFoundError(f"there is no agent {name}", ref=own)

    def _picked(self, inherit: str | Sequence[str | Address]) -> List[str]:
        """Return the addresses to inherit; empty for "full", "summary" and "none"."""
        if isinstance(inherit, str):
            if inherit not in (FULL, SUMMARISED, NONE):
                raise errors.InvalidInputError(
                    f"inherit is full, summary, none or a list of addresses, not {inherit[:40]!r}"
                )
            return []
        picked = [name_of(each, "inherit") for each in inherit]
        for each in picked:
            resolve_address(self._store, each)
        return picked

    def _parent(self, parent: str | Session) -> Writer:
        if isinstance(parent, Session):
            return parent._writer
        check.text(parent=parent)
        if not parent:
            return self._writer
        return self._writer.on(history.branches.find_branch(self._store, parent))

    def _info(self, ref: str) -> AgentInfo:
        writer = self._writer.on(ref)
        facts = history.facts.branch_facts(writer)
        # Other facts are those of the branch that it started from.
        is_own = (
            facts.get(names.TYPE) == AGENT_TYPE
            or facts.get(agent_facts.AGENT) == ref.rpartition("/")[2]
        )
        parent = facts.get(names.PARENT, "") if is_own else ""
        if not parent and f"/{AGENTS}/" in ref:
            parent = self._caller(writer, ref)
        context = writer.contexts.compile()
        last = context.messages[-1] if len(context) else None
        point = facts.get(names.POINT, "")
        return AgentInfo(
            name=name_of_agent(ref),
            ref=ref,
            parent=parent,
            point=ObjectId.parse(point) if is_full_id(point) else None,
            call=facts.get(agent_facts.CALL, "") if is_own else "",
            purpose=facts.get(agent_facts.PURPOSE, "") if is_own else "",
            state=self._state(writer, ref, facts),
            message_count=len(context),
            token_count=context.token_count,
            last_step="" if last is None else last.summary(_STEP_WIDTH),
            ahead=self._ahead(writer, ref, parent),
        )

    def _caller(self, writer: Writer, ref: str) -> str:
        """Return the branch of an imported agent's caller: its session, or another agent."""
        session, _, own = ref.partition(f"/{AGENTS}/")
        contexts, oid = writer.contexts, self._store.refs.read(ref)
        while oid is not None:
            commit = contexts.read_commit(oid)
            oid = commit.parents[0] if commit.parents else None
            if ops.facts_of(commit, ops.META).get(agent_facts.AGENT) == own:
                break
        above = history.facts.newest_facts(contexts, ref, oid).get(agent_facts.AGENT, "")
        caller = f"{session}/{AGENTS}/{above}"
        return caller if above and self._store.refs.read(caller) is not None else session

    def _state(self, writer: Writer, ref: str, facts: dict[str, str]) -> str:
        if facts.get(names.CLOSED) or facts.get(names.TYPE) != AGENT_TYPE:
            return FINISHED  # imported
        session = Session(writer)
        if self._store.local and not is_held(self._store, ref):
            began = any(each.model or each.role == "assistant" for each in session.messages())
            return INTERRUPTED if began else WAITING
        return WAITING if open_calls(session) else RUNNING

    def _ahead(self, writer: Writer, ref: str, parent: str) -> int | None:
        if not parent or self._store.refs.read(parent) is None:
            return None
        before = history.facts.branch_facts(self._writer.on(parent)).get(COLLAPSED + ref, "")
        return _ahead_of(writer, ObjectId.parse(before)) if is_full_id(before) else None

    # Inheriting and collapsing

    def _brief(self, above: Writer, point: ObjectId) -> str:
        try:
            state = state_at(above, str(point))
        except errors.InvalidInputError:
            return ""  # an empty context
        return f"Summary of the work of {name_of_agent(above.ref)}\n\n{state.as_text()}"

    def _own_range(self, info: AgentInfo) -> str:
        """Return the range of an agent's own messages; "" if it inherited none."""
        if info.point is None:
            return ""
        commits = history.log.log(self._store.on(info.ref), "HEAD")
        inherits = any(entry.oid == info.point for entry in commits)
        return f"{info.point}..HEAD" if inherits else ""

    def _save(self, child: Writer, info: AgentInfo, since: str, model: Model | None) -> Checkpoint:
        taken = {name for name, _ in self._store.refs.iterate("refs/checkpoints/agents/")}
        base = f"{CHECKPOINTS_OF}{info.name.rpartition('/')[2]}"
        number = next(
            n for n in range(1, len(taken) + 2) if f"refs/checkpoints/{base}/{n}" not in taken
        )
        return save_soft(child, f"{base}/{number}", "HEAD", "collapsed", model, since)

    def _conclusion(self, saved: Checkpoint, info: AgentInfo, text: str) -> str:
        """Return the text of the conclusion message."""
        data = soft_data(self._store, saved)
        said = text or data.get("summary") or data.get("outcome") or data.get("last_said") or ""
        lines = [f"Agent {info.name}: {said or 'no conclusion'}"]
        files = [each["path"] for each in data.get("files", ()) if each.get("writes")]
        lines += [f"Files: {', '.join(files[-_MOST_FILES:])}"] if files else []
        decisions = [each["text"] for each in data.get("decisions", ())][-_MOST_DECISIONS:]
        lines += ["Decisions:", *(f"- {each}" for each in decisions)] if decisions else []
        count = f"{data.get('message_count', 0):,} messages, {data.get('token_count', 0):,} tokens"
        lines.append(f"[{count}: trace checkpoint show {saved.name}]")
        return "\n".join(lines)

    def _is_open(self, above: Writer, call: str) -> bool:
        return bool(call) and any(each.id == call for each in open_calls(Session(above)))

    def _collapsed(self, above: Writer, message: str | Address) -> _Own:
        """Return the messages of a collapsed agent that its parent lacks."""
        store = above.store
        address = resolve_address(store, name_of(message, "message"))
        state = above.contexts.fold(resolve_commit(store, "HEAD"))
        commit = above.contexts.read_commit(state.entry(address).home[0])
        saved = next((each for relation, each in commit.links if relation == COLLAPSES), None)
        after = state.in_order(state.unit(address))[-1]
        if isinstance(saved, ObjectId):
            own = [e for e in _entries(above, saved) if e.address not in state]
            return _Own(address, after, own, [])
        id_, _, name = (saved or "").partition(":")
        link = next((each for each in links.linked_stores(self._store) if each.id == id_), None)
        if link is None or not is_full_id(name):
            raise errors.InvalidInputError(f"message {address} is not the conclusion of an agent")
        with links.opened(self._writer, link) as other:
            read = other.store.objects.read
            copies = [load_message(e.message, read) for e in _entries(other, ObjectId.parse(name))]
        return _Own(address, after, [], copies)


class _Own(NamedTuple):
    """Messages that a parent lacks: entries to carry, or copies from another repository."""

    address: Address
    after: Address
    entries: List[Entry]
    copies: List[Message]


def _ahead_of(writer: Writer, before: ObjectId) -> int:
    """Return the number of visible messages that are newer than a commit."""
    then = set(writer.contexts.fold(before).addresses())
    return sum(each.address not in then for each in writer.contexts.compile().messages)


def _entries(writer: Writer, saved: ObjectId) -> List[Entry]:
    """Return the messages of an agent from the commit of its soft checkpoint."""
    linked = writer.contexts.read_commit(saved).links
    source = next((each for relation, each in linked if relation == SOURCE), None)
    if not isinstance(source, ObjectId):
        return []
    shown = writer.contexts.fold(source).visible()
    return [entry for entry in shown if entry.message["role"] not in INSTRUCTIONS]


def _has_answer(child: Writer, info: AgentInfo) -> bool:
    """Return whether an agent said anything beside what it inherited."""
    contexts = child.contexts
    answers = {each.address for each in contexts.compile() if each.role == "assistant"}
    if answers and info.point is not None and child.store.objects.contains(info.point):
        answers.difference_update(contexts.fold(info.point).addresses())
    return bool(answers)
