"""Costs of one long session: `python -m benchmarks.session_costs`, optionally `--messages 10000 --limit 100000`.

A session of many turns is written, one commit a turn. With a limit, every tenth turn asks for a request, which compacts
the session by rules when it must; without one, nothing is compacted. Then each verb is timed (median, milliseconds).
Beside them stands a JSON file with the same messages that is rewritten whole at each turn, as programs without a store
do. Last, the session is compacted twice by rules, with 50 long messages between.

The memory is the peak of the process after half of the turns, and after all.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from trace_store import Message, Repo, Text, ToolCall, ToolResult
from trace_store.sessions.session import Session

WORDS = (
    *("harbour", "tower", "stage", "wall", "report", "stone", "crane", "quay", "light", "rope"),
    *("never", "decided", "because", "file", "test", "fails", "passes", "use", "instead", "value"),
    *("must", "keep", "path", "module"),
)
NO_LIMIT = 10_000_000
"""A limit in tokens that no session here reaches."""


class Talk:
    """Random messages, the same for each seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def text(self, sentences: int) -> str:
        """Return a number of random sentences."""
        chance = self._chance
        lengths = (chance.randrange(6, 16) for _ in range(sentences))
        return " ".join(" ".join(chance.choices(WORDS, k=k)).capitalize() + "." for k in lengths)

    def turn(self, number: int) -> list[Message]:
        """Return the four messages of a turn: a question, a call, its result, an answer."""
        call = ToolCall(f"call_{number}", "Read", {"file_path": f"src/module_{number % 40}.py"})
        return [
            Message("user", self.text(2)),
            Message("assistant", [Text(self.text(4)), call]),
            Message("tool", [ToolResult(call.id, self.text(6))]),
            Message("assistant", self.text(3)),
        ]


def milliseconds(run: Callable[[], object]) -> float:
    """Return how long a call takes."""
    begun = time.perf_counter()
    run()
    return (time.perf_counter() - begun) * 1000


def verbs_of(repo: Repo, session: Session, talk: Talk) -> dict[str, Callable[[], object]]:
    """Return the verbs to time, by name."""
    return {
        "add": lambda: session.add(Message("user", talk.text(2)), Message("assistant", "Yes.")),
        "request": lambda: session.request(),
        "preview": lambda: session.preview("And now?"),
        "summary": lambda: session.summary,
        "list": lambda: repo.sessions.list(),
    }


def peak_memory() -> float:
    """Return the peak memory of this process, in MiB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the session, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--limit", type=int, default=NO_LIMIT)
    parser.add_argument("--rounds", type=int, default=11)
    given = parser.parse_args(arguments)
    talk = Talk(1)
    with tempfile.TemporaryDirectory() as folder:
        repo = Repo.init(folder, durability="fast", author="ada")
        session = repo.sessions.start("dev", name="long", limit=given.limit)
        whole: list[dict[str, str]] = []
        peaks: list[float] = []
        turns = given.messages // 4
        for number in range(turns):
            messages = talk.turn(number)
            session.add(*messages)
            if given.limit < NO_LIMIT and not number % 10:
                session.request()
            if number + 1 in (turns // 2, turns):
                peaks.append(peak_memory())
            whole += [{"role": each.role, "content": each.text} for each in messages]
        print(f"| {given.messages:,} messages | ms |\n|---|---:|")
        for name, run in verbs_of(repo, session, talk).items():
            run()  # what is read once
            print(f"| {name} | {median(milliseconds(run) for _ in range(given.rounds)):.1f} |")
        path = Path(folder) / "chat.json"
        rewrite = (milliseconds(lambda: path.write_text(json.dumps(whole))) for _ in range(3))
        print(f"| JSON file rewritten whole | {median(rewrite):.1f} |")
        print(f"| first compaction | {milliseconds(session.compact):,.0f} |")
        for _ in range(25):
            session.add(Message("user", talk.text(20)), Message("assistant", talk.text(60)))
        print(f"| second compaction | {milliseconds(session.compact):,.0f} |")
        print(f"| history | {milliseconds(session.history):,.1f} |")
        print(f"| memory after {turns // 2:,} turns, MiB | {peaks[0]:,.0f} |")
        print(f"| memory after {turns:,} turns, MiB | {peaks[-1]:,.0f} |")


if __name__ == "__main__":
    main()
