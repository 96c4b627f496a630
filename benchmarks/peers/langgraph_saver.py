"""LangGraph's SqliteSaver, used as its loop does: the writes of a step, then a checkpoint.

By default a checkpoint holds the whole state, here the list of all messages. With a DeltaChannel (beta) it holds the
state once in 100 steps and the reader replays the writes since. The saver syncs as SQLite does by default: FULL.
It keeps no hashes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.checkpoint.sqlite import SqliteSaver

from benchmarks.messages import characters
from benchmarks.model import Proof, Turn, Work

NAME = "checkpoints.db"
CHANNEL = "messages"
THREAD = {"configurable": {"thread_id": "main", "checkpoint_ns": ""}}
SNAPSHOT_STEPS = 100


class Saver:
    """A thread of checkpoints."""

    packages = ("langgraph", "langgraph-checkpoint", "langgraph-checkpoint-sqlite")

    def __init__(self, delta: bool) -> None:
        self._delta = delta
        self.store = "langgraph-delta" if delta else "langgraph"

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Store a checkpoint for each message, without waiting for the disk."""
        writer = SaverWriter(folder, self._delta)
        writer.saver.conn.execute("PRAGMA synchronous = OFF")
        for turn in turns:
            writer.append([turn])
        writer.close()

    def writer(self, folder: Path, mode: str) -> SaverWriter:
        """Open for appending; there is but one mode."""
        return SaverWriter(folder, self._delta)

    def compile(self, folder: Path) -> Proof:
        """Return all messages of the last checkpoint."""
        found = SaverWriter(folder, self._delta).state
        return lambda: Work(len(found), characters(found))


class SaverWriter:
    """An open thread with its list of messages in memory, as in a running graph."""

    def __init__(self, folder: Path, delta: bool) -> None:
        self._context = SqliteSaver.from_conn_string(str(folder / NAME))
        self.saver = self._context.__enter__()
        self._delta = delta
        self._config: dict[str, Any] = dict(THREAD)
        self.state: list[Turn] = []
        found = self.saver.get_tuple(THREAD)
        if found is not None:
            self._config = found.config
            self.state = self._state(found.checkpoint["channel_values"])

    def prepare(self, turn: Turn) -> Turn:
        return turn

    def append(self, messages: list[Turn]) -> None:
        if "checkpoint_id" in self._config["configurable"]:
            self.saver.put_writes(self._config, [(CHANNEL, messages)], task_id=str(uuid6()))
        self.state.extend(messages)
        step = len(self.state)
        checkpoint = empty_checkpoint()
        checkpoint["channel_versions"][CHANNEL] = step
        if not self._delta:
            checkpoint["channel_values"][CHANNEL] = self.state
        elif step == len(messages) or step % SNAPSHOT_STEPS == 0:
            checkpoint["channel_values"][CHANNEL] = _DeltaSnapshot(self.state)
        told = {"source": "loop", "step": step, "parents": {}}
        self._config = self.saver.put(self._config, checkpoint, told, {CHANNEL: step})

    def count(self) -> int:
        return len(self.state)

    def close(self) -> None:
        self._context.__exit__(None, None, None)

    def _state(self, values: dict[str, Any]) -> list[Turn]:
        """Return the stored list of messages, replayed from its last snapshot if needed."""
        if not self._delta:
            return list(values[CHANNEL])
        if CHANNEL in values:
            return list(values[CHANNEL].value)
        history = self.saver.get_delta_channel_history(config=self._config, channels=[CHANNEL])
        told = history[CHANNEL]
        found = list(told["seed"].value)
        for _, _, messages in told["writes"]:
            found.extend(messages)
        return found
