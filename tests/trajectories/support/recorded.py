"""Trajectories for tests: one with every kind of event, and real ones of the program `trail`."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

from trace_store import Repo
from trace_store.trajectories.events import Task

REAL = Path(os.environ.get("TRACE_TEST_TRANSCRIPTS", "/nowhere")) / "agentworkforce-trail"
REAL_FILES = [path for path in sorted(REAL.glob("*.json")) if not path.name.endswith(".trace.json")]
COMMITS = ("a1" * 20, "b2" * 20)
THOUGHT = "What if the clock runs backwards?"


def record_everything(repo: Repo) -> str:
    """Record a trajectory with an event of each kind and return its id."""
    tr = repo.trajectories
    task = Task(
        "Sign in", "As in the ticket.", "linear", "ENG-456", "https://linear.example/ENG-456"
    )
    state = tr.start(
        "Sign people in with tokens",
        task=task,
        description="People sign in **once** a day:\n\n- on the web\n- in the app",
        project="shop",
        tags=["auth", "web"],
        agent="lead",
        role="lead",
    )
    tr.decide(
        "How do sessions end?",
        "Tokens expire after an hour",
        reasoning="Servers need no shared state.\n\n```python\nLIFETIME = 3600\n```",
        alternatives=["A list of revoked tokens: every server must read it", "Cookies"],
        confidence=0.8,
        significance="high",
        agent="lead",
    )
    tr.record("linked", commit=COMMITS[0], subject="Let tokens expire", files=["src/tokens.py"])
    tr.chapter("Tests", agent="reviewer")
    repo.append("assistant", "The clock test fails.")
    tr.record("thinking", THOUGHT, agent="reviewer")
    tr.record("finding", "The clock is read twice.", significance="critical", agent="reviewer")
    tr.record("message_sent", "Read it once, please.", to="lead", agent="reviewer")
    tr.record(
        "tool_result", "1 failed", raw={"exit": 1, "out": "E   assert 3599"}, agent="reviewer"
    )
    tr.decide("", "Pass the time as an argument", agent="lead", significance="low")
    tr.record("linked", commit=COMMITS[1], subject="Read the clock once", files=["src/a.py"])
    tr.complete(
        {
            "summary": "People sign in with tokens of an hour.",
            "approach": "Tests first.",
            "challenges": ["The clock was read twice."],
            "learnings": ["Pass the time as an argument."],
            "suggestions": ["Rotate the key."],
            "confidence": 0.9,
        },
        agent="lead",
    )
    return state.id


def record_trail(repo: Repo, path: Path) -> str:
    """Record the parts of a file of `trail` that views show, and return the id of the trajectory."""
    document = json.loads(path.read_text("utf-8"))
    task, tr = document["task"], repo.trajectories
    source = {name: str(each) for name, each in task.get("source", {}).items()}
    state = tr.start(
        task["title"],
        task=Task(task["title"], task.get("description", ""), **source),
        agent=document["agents"][0]["name"],
        role=document["agents"][0].get("role", ""),
    )
    for chapter in document["chapters"]:
        how = {"trajectory": state.id, "agent": chapter["agentName"]}
        tr.chapter(chapter["title"], time=_milliseconds(chapter["startedAt"]), **how)
        for event in chapter["events"]:
            more = {"time": event["ts"], "significance": event.get("significance", ""), **how}
            raw = event.get("raw")
            if event["type"] == "decision" and isinstance(raw, dict):
                kept = ("question", "chosen", "reasoning", "alternatives")
                decision = {name: raw[name] for name in kept if name in raw}
                tr.decide(
                    decision.pop("question", ""), decision.pop("chosen", ""), **decision, **more
                )
            else:
                tr.record(event["type"].replace("-", "_"), event["content"], raw=raw, **more)
    last = document.get("retrospective")
    if last:
        names = ("summary", "approach", "challenges", "learnings", "suggestions", "confidence")
        fields: dict[str, Any] = {name: last[name] for name in names if name in last}
        tr.reflect(**fields, trajectory=state.id)
    for commit in document.get("commits", ()):
        tr.record("linked", commit=commit, trajectory=state.id)
    return state.id


def _milliseconds(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp() * 1000)
