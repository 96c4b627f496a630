"""ATIF, Harbor's trajectory format: a JSON document, or one step a line.

A step and its observation are one commit. A trajectory is named by its `trajectory_id`, else its `session_id`, with
a number for continuations. A subagent's, in the file or in its own, becomes a branch `agents/<id>`. Steps copied
from another trajectory get the label `copied-context`; their costs belong to that trajectory and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trace_store.importers.contract import AGENTS_KEY, Skip
from trace_store.importers.decode import Line
from trace_store.importers.documents import read_document, within
from trace_store.importers.formats.atif.steps import step_of
from trace_store.importers.json_records import NOT_A_RECORD, records_of
from trace_store.importers.parts import (
    ref_component,
    storable_name,
    time_of,
    tool_schemas,
    usage_counts,
)
from trace_store.importers.sniff import OBJECT, file_shape
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import Event, Switch, Turn, TurnReader
from trace_store.oid import digest
from trace_store.transcripts.records import Record

NAME = "atif"
SUFFIXES = (".json", ".jsonl")
COPIED = "copied-context"
CONTINUES, CONTINUED_IN = "continues", "continued-in"
"""Link relations: to the previous trajectory by id, and to the next as the file names it."""
MAXIMUM_OPEN_CALLS = 1000

_LISTS = ("steps", "subagent_trajectories")


class AtifReader(TurnReader):
    """Reader of one trajectory and its subagents'.

    State: `session` and `agent`, as everywhere; `writer` and `model` of the agent; `open`, the unanswered calls.
    """

    AGENT = NAME

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._tools: tuple[bytes, ...] | None = None
        self._links: tuple[tuple[str, str], ...] = ()
        self._switch: Switch | None = None
        self._is_away = False
        self._called: dict[str, str] = {}
        self._last: tuple[int, str] | None = None

    def records(self, line: Line) -> Iterator[Record | Skip]:
        if not line.whole:
            yield from records_of(line)
            return
        document = read_document(line, *_LISTS)
        if document.damage is None and document.lists.keys().isdisjoint(_LISTS):
            yield Skip(line.number, NOT_A_RECORD, "no trajectory")
            return
        self._begin(document.fields)
        steps = document.lists.get("steps", [])
        following = storable_name(document.fields.get("continued_trajectory_ref"))
        records = [each for each in steps if isinstance(each, Record)]
        if following and records:
            self._last = (records[-1].offset, following)
        yield from steps
        yield from self._subagents(line, document.lists.get("subagent_trajectories", []))
        if document.damage is not None:
            yield document.damage

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        if data.get("__header__") is True:
            self._begin(data)
            return
        open_calls = self.state.get("open", [])
        own_model = storable_name(data.get("model_name"))
        model = own_model or self.state.get("model", "")
        step = step_of(data, open_calls, model)
        if not step.messages and not step.agents:
            return
        if step.calls or step.answers:
            left = [each for each in (*open_calls, *step.calls) if each not in step.answers]
            self.state["open"] = left[-MAXIMUM_OPEN_CALLS:]
        if self._switch is not None:
            yield self._switch
            self._switch, self._is_away = None, True
        copied = data.get("is_copied_context") is True
        key = digest(record.raw).hex()[:16]
        for agent in step.agents:
            self._called.setdefault(agent, key)
        tools, self._tools = self._tools, None
        links, self._links = self._links, ()
        if self._last is not None and record.offset == self._last[0]:
            links = (*links, (CONTINUED_IN, self._last[1]))
        agents = list(dict.fromkeys(map(ref_component, step.agents)))
        yield Turn(
            tuple(m._replace(labels=(COPIED,) if copied else ()) for m in step.messages),
            key=key,
            time=time_of(data.get("timestamp")),
            author=self._author(step.role, model),
            usage={} if copied else usage_counts(data.get("metrics"), model),
            tools=tools,
            meta={AGENTS_KEY: agents} if agents else {},
            links=links,
        )

    def finish(self) -> Iterable[Event]:
        # The end of the file belongs to the main trajectory.
        return (Switch(""),) if self._is_away else ()

    def label(self, record: Record) -> str:
        source = record.data.get("source")
        if record.data.get("__header__") is True:
            return "header"
        return source[:100] if isinstance(source, str) else "untyped"

    def _author(self, role: str, model: str) -> str:
        if role == "user":
            return "user"
        writer = self.state.get("writer", "") if role == "assistant" else ""
        return "/".join(each for each in (writer, model if writer else "") if each)

    def _begin(self, fields: Mapping[str, Any]) -> None:
        """Read the facts in a document or header."""
        agent = fields.get("agent")
        agent = agent if isinstance(agent, dict) else {}
        extra = agent.get("extra")
        extra = extra if isinstance(extra, dict) else {}
        session = storable_name(fields.get("session_id"))
        name = storable_name(fields.get("trajectory_id")) or session
        parent = storable_name(extra.get("parent_session_id"))
        number = extra.get("continuation_index")
        if isinstance(number, int) and not isinstance(number, bool) and number > 0 and session:
            if name == session:
                name = f"{session}-cont-{number}"
            self._links = ((CONTINUES, session),)
        if parent and name and parent != name:
            self.state["session"], self.state["agent"] = parent, name
        else:
            self.state["session"] = name
        self._introduce(agent)
        self._tools = tool_schemas(agent.get("tool_definitions"))

    def _introduce(self, agent: Mapping[str, Any]) -> None:
        models = (agent.get("model_name"), agent.get("model"))
        self.state["writer"] = storable_name(agent.get("name"))
        self.state["model"] = next((name for each in models if (name := storable_name(each))), "")

    def _subagents(self, line: Line, elements: list[Record | Skip]) -> Iterator[Record | Skip]:
        """Yield the steps of embedded trajectories, each on a branch of its own."""
        for number, each in enumerate(elements, 1):
            if isinstance(each, Skip):
                yield each
                continue
            inner = within(line, each)
            document = read_document(inner, *_LISTS)
            agent = document.fields.get("agent")
            self._introduce(agent if isinstance(agent, dict) else {})
            self.state["open"] = []
            ids = [storable_name(document.fields.get(k)) for k in ("trajectory_id", "session_id")]
            name = next((id_ for id_ in ids if id_), f"agent-{number}")
            at = next((self._called[id_] for id_ in ids if id_ in self._called), None)
            self._switch = Switch(f"agents/{ref_component(name)}", at=at)
            tools = agent.get("tool_definitions") if isinstance(agent, dict) else None
            self._tools = tool_schemas(tools)
            yield from document.lists.get("steps", [])
            yield from self._subagents(inner, document.lists.get("subagent_trajectories", []))


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are an ATIF trajectory."""
    values = file_shape(head).values
    if not values:
        return False
    first = values[0]
    version = first.get("schema_version")
    if isinstance(version, str) and version.startswith("ATIF"):
        return True
    steps = first.get("steps")
    step = steps[0] if isinstance(steps, list) and steps else {}
    return isinstance(step, dict) and "step_id" in step and "source" in step and "agent" in first


FORMAT = TurnFormat(
    NAME, SUFFIXES, recognises, AtifReader, lambda head: file_shape(head).kind == OBJECT
)
