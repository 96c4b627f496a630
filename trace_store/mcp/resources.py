"""Resources: a commit, a message, a decision or a session by its id, as JSON."""

from __future__ import annotations

from typing import Any

from trace_store import errors
from trace_store.mcp.answers import AnswerWriter
from trace_store.mcp.tools import message_text
from trace_store.objects.message import Message
from trace_store.records import record
from trace_store.repo.repository import Repo
from trace_store.trajectories.events import DECISION


class Resources:
    """Reads resources of one repository. An id is one that an answer gave, or its beginning."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._answers = AnswerWriter(repo)

    def commit(self, id: str) -> dict[str, Any]:
        """A commit with the messages that it adds."""
        oid = self._repo.resolve(id)
        [entry] = self._repo.log(oid, limit=1)
        messages = [_message(where.hex, message) for where, message in entry.messages]
        return self._answer(record(entry, messages=messages))

    def message(self, id: str) -> dict[str, Any]:
        """A message by its address."""
        state = self._repo.message(id)
        marks = {"priority": state.priority, "labels": sorted(state.labels), "hidden": state.hidden}
        return self._answer({**_message(state.address.hex, state.message), **marks})

    def decision(self, id: str) -> dict[str, Any]:
        """A decision by its address."""
        state = self._repo.message(id)
        if state.message.kind != DECISION:
            raise errors.NotFoundError(f"not a decision: {id[:80]!r}")
        return self._answer(_message(state.address.hex, state.message))

    def session(self, id: str) -> dict[str, Any]:
        """A session by its id or title: agent, times, sizes."""
        return self._answer(record(self._repo.sessions.get(id)))

    def _answer(self, found: dict[str, Any]) -> dict[str, Any]:
        [entry] = self._answers.page([found], 0, 1).entries
        return entry


def _message(address: str, message: Message) -> dict[str, Any]:
    return {
        "address": address,
        "role": message.role,
        "kind": message.kind,
        "text": message_text(message.parts),
    }
