"""Trajectories to which processes add decisions: those of Trace, and those of the program trail."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.model import Turn
from benchmarks.peers.trace import BENCHMARK_ENVIRONMENT, Trace
from trace_store import Repo

FIRST_MILLISECOND = 1_700_000_000_000
STARTED = "2023-11-14T22:13:20.000Z"
ID = "traj_benchmark000"
TRAIL_FOLDER = Path(".agentworkforce", "trajectories")
REASON = "It was measured, and the other one needs a service that somebody has to run."


class TraceDecisions:
    """A repository with one trajectory, sealed."""

    packages = ()

    @property
    def store(self) -> str:
        """The store's folder names the source that wrote it."""
        return f"decisions-{Trace().store}"

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Record a decision for each message."""
        with Repo.init(folder, durability="fast", environment=BENCHMARK_ENVIRONMENT) as repo:
            id_ = repo.trajectories.start("Benchmark").id
            for number, _ in enumerate(turns):
                repo.trajectories.decide(
                    f"Question {number}?", "this one", reasoning=REASON, trajectory=id_
                )
            repo.seal()

    def count(self, folder: Path) -> int:
        """Return how many decisions can be read."""
        with Repo.open(folder, create=False, environment=BENCHMARK_ENVIRONMENT) as repo:
            return len(repo.trajectories.read().decisions)


class TrailDecisions:
    """A folder with one active trajectory of trail, in the form in which trail writes it."""

    packages = ()
    store = "decisions-trail"

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Write a document with a decision for each message."""
        write_document(_document(folder), ID, [number for number, _ in enumerate(turns)])

    def count(self, folder: Path) -> int:
        """Return how many decisions can be read; 0 if the document is damaged."""
        try:
            document: dict[str, Any] = json.loads(_document(folder).read_bytes())
        except (ValueError, FileNotFoundError):
            return 0
        return sum(len(chapter["events"]) for chapter in document["chapters"])


def write_document(path: Path, id_: str, decisions: Sequence[int], **more: Any) -> None:
    """Write a trajectory of trail.

    Args:
        path: path of the document.
        id_: id of the trajectory.
        decisions: numbers of its decisions.
        more: fields that differ from those of an active one.
    """
    chapter = {"id": "chap_1", "title": "Work", "agentName": "default", "startedAt": STARTED}
    events = [_decision(number) for number in decisions]
    document = {
        "id": id_,
        "version": 1,
        "task": {"title": "Benchmark"},
        "status": "active",
        "startedAt": STARTED,
        "agents": [{"name": "default", "role": "lead", "joinedAt": STARTED}],
        "chapters": [{**chapter, "events": events}],
        "commits": [],
        "filesChanged": [],
        "tags": [],
        **more,
    }
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document, indent=2), "utf-8")


def _document(folder: Path) -> Path:
    return folder / TRAIL_FOLDER / "active" / ID / "trajectory.json"


def _decision(number: int) -> dict[str, Any]:
    question = f"Question {number}?"
    return {
        "ts": FIRST_MILLISECOND + number,
        "type": "decision",
        "content": f"{question}: this one",
        "raw": {
            "question": question,
            "chosen": "this one",
            "alternatives": [],
            "reasoning": REASON,
        },
        "significance": "high",
    }
