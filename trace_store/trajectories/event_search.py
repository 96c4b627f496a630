"""Search: events of trajectories by their words, and decisions on similar questions.

The index is a derived file. Each search first adds the new events to it, then reads only the events that it returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from trace_store.base import check
from trace_store.base.frozen import value
from trace_store.context.snippet import Snippet
from trace_store.contracts.ref_names import TRAJECTORIES
from trace_store.objects.address import Address
from trace_store.objects.commit import read_commit
from trace_store.search.index import SearchIndex
from trace_store.search.query import (
    Hit,
    SearchFilter,
    any_word,
    fts_query,
    matches,
    nothing_to_search_for,
    term_of,
)
from trace_store.store.store import Store
from trace_store.trajectories import events as ev
from trace_store.trajectories import reading
from trace_store.trajectories.events import Event
from trace_store.trajectories.reading import Trajectory
from trace_store.trajectories.state import State


@value
class FoundEvent:
    """An event that a search found.

    Attributes:
        event: the event, in its latest version.
        state: the state of its trajectory.
        snippet: the text around the hit, in the version that matches.
    """

    JSON = (
        "trajectory=state.id title=state.title *event snippet=snippet.text "
        "start=snippet.start end=snippet.end"
    )

    event: Event
    state: State
    snippet: Snippet


@value
class EventFilter:
    """Conditions on events; "" matches anything.

    Attributes:
        tag: a tag of the event or of its trajectory.
        task: the id of the trajectory's task.
        file: a file or folder that was changed by a linked commit of the code.
        commit: the beginning of the id of a linked commit.
        agent: who recorded the event.
    """

    tag: str = ""
    task: str = ""
    file: str = ""
    commit: str = ""
    agent: str = ""


def search_events(
    store: Store, query: str, wanted: EventFilter | None = None, limit: int = 20
) -> list[FoundEvent]:
    """Return the events that match a query, the newest first; links to commits are left out.

    Args:
        store: the repository's store.
        query: words, phrases and exclusions, as in `trace search`; may be "" with a filter.
        wanted: filters.
        limit: maximum number of events.

    Raises:
        InvalidInputError: the query has no word.
        StateError: full-text search is not available.
        ObjectNotFoundError, CorruptObjectError: a commit is missing or damaged.
    """
    wanted = wanted or EventFilter()
    check.storable(query=query, tag=wanted.tag, task=wanted.task, file=wanted.file)
    match = fts_query(query)
    if not match and (query.strip() or wanted == EventFilter()):
        raise nothing_to_search_for(query)
    with SearchIndex(store, TRAJECTORIES) as index:
        index.catch_up()
        hits = matches(index, store, match, query=query, beside=_terms(wanted))
        return list(islice(_matching_events(store, hits, wanted), limit))


def similar_decisions(
    store: Store, question: str, wanted: EventFilter | None = None, limit: int = 5
) -> list[FoundEvent]:
    """Return the decisions that share words with a question, rare words first; arguments as `search_events`."""
    check.storable(question=question)
    wanted, decisions = wanted or EventFilter(), SearchFilter(kind=ev.DECISION)
    with SearchIndex(store, TRAJECTORIES) as index:
        index.catch_up()
        match = any_word(index, question)
        if not match:
            raise nothing_to_search_for(question)
        hits = matches(
            index, store, match, decisions, query=question, beside=_terms(wanted), ranked=True
        )
        return list(islice(_matching_events(store, hits, wanted), limit))


def recorded_sources(store: Store, addresses: Iterable[Address]) -> set[tuple[str, object]]:
    """Return (message address, block number) of recorded events; without a block, the second value is the content."""
    with SearchIndex(store, TRAJECTORIES) as index:
        index.catch_up()
        return {
            (address.hex, event.data.get("block", event.content))
            for address in addresses
            for hit in matches(index, store, term_of(address.hex))
            if (event := _event_of(store, hit)).data.get("source") == address.hex
        }


def _terms(wanted: EventFilter) -> list[str]:
    """Return FTS5 expressions that some event of a matching trajectory has."""
    terms = [term_of(text) for text in (wanted.tag, wanted.task, wanted.file)]
    return [term for term in (*terms, term_of(wanted.commit, "*")) if term]


def _matching_events(
    store: Store, hits: Iterable[Hit], wanted: EventFilter
) -> Iterator[FoundEvent]:
    states: dict[str, State] = {}
    trajectories: dict[str, Trajectory] = {}
    returned: set[Address] = set()

    def trajectory_of(state: State) -> Trajectory:
        if state.id not in trajectories:
            trajectories[state.id] = reading.read_trajectory(store, state.id)
        return trajectories[state.id]

    for hit in hits:
        event = _event_of(store, hit)
        if wanted.agent not in ("", event.agent) or event.type == ev.LINKED:
            continue
        if hit.ref not in states:
            states[hit.ref] = reading.state_of(store, store.refs.tips(hit.ref))
        state = states[hit.ref]
        if state.count(ev.AMENDED):
            id = event.data.get("event") if event.type == ev.AMENDED else event.id.hex
            event = next((each for each in trajectory_of(state).events if each.id.hex == id), event)
        if event.id in returned:
            continue
        if wanted.tag and wanted.tag not in (*state.tags, *event.tags):
            continue
        if wanted.task and (state.task is None or state.task.id != wanted.task):
            continue
        if (wanted.file or wanted.commit) and not _is_linked(trajectory_of(state), wanted):
            continue
        returned.add(event.id)
        yield FoundEvent(event, state, hit.snippet)


def _is_linked(trajectory: Trajectory, wanted: EventFilter) -> bool:
    """Return True if a linked commit has the wanted id and changed the wanted file."""
    folder = wanted.file.rstrip("/") + "/"
    return any(
        link.commit.startswith(wanted.commit)
        and any(not wanted.file or f"{path}/".startswith(folder) for path in files or [""])
        for link in trajectory.links
        for files in [link.data.get("files", [])]
    )


def _event_of(store: Store, hit: Hit) -> Event:
    """Return the event of a hit, without its amendments."""
    oid = store.objects.resolve_prefix(hit.address.birth.hex())[0]
    commit = read_commit(oid, store.objects.read)
    return next(each for each in reading.events_of(store, oid, commit) if each.id == hit.address)
