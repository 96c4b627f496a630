"""Sessions played turn by turn: `python -m benchmarks.session_play TRANSCRIPT…`.

The messages of the longest branch of each transcript are added to a session one by one. Before each answer, the session
makes a request, and a simulated provider counts it: the estimate times a factor, ±15% for each message, plus its own
prompt. The table shows requests over the limit, tokens saved by compactions, and unread messages that were compacted.
Needles are sentences added to some prompts. They are searched in the last request, and with two calls: search and read.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trace_store import Message, Repo, Text, ToolResult, errors
from trace_store.base.frozen import fields, mutable
from trace_store.base.oid import digest
from trace_store.context.faults import PROVIDERS
from trace_store.importers.import_paths import import_paths
from trace_store.llm.contract import Completion, Prompt
from trace_store.sessions.requests import SessionRequest
from trace_store.sessions.session import Session
from trace_store.writer import Writer

LIMITS = (100_000, 50_000, 20_000)
FACTORS = (1.0, 1.35, 1.7)
PROMPT_TOKENS = 3_000
NOISE = 0.15
NEEDLES = 10
ENDING = 64
"""Bytes of closing brackets, which move with each message."""
LONG = 60
"""Minimum messages of a branch."""


@mutable
class Played:
    """Result of a play.

    Attributes:
        requests: all requests.
        over: requests over the limit after the first report.
        first: requests over the limit before it.
        refused: requests that failed with BudgetError.
        invalid: requests with faults that a provider rejects.
        unread: unread messages that were compacted.
        worst: the largest excess over the limit, in tokens.
        compactions, saved: number of compactions, and tokens saved.
        changed: percentage of request bytes that differ in the next request.
        words: needles in the last request.
        found: needles found by search and read.
        needles: number of needles.
    """

    requests: int = 0
    over: int = 0
    first: int = 0
    refused: int = 0
    invalid: int = 0
    unread: int = 0
    worst: int = 0
    compactions: int = 0
    saved: int = 0
    changed: float = 0.0
    words: int = 0
    found: int = 0
    needles: int = 0


class Provider:
    """Simulated provider: counts tokens, and writes summaries."""

    def __init__(self, factor: float, fails: int = 0) -> None:
        self.factor = factor
        self._fails = fails
        self._asked = 0

    def count(self, request: SessionRequest) -> int:
        """Return the input tokens of a request."""
        total = float(PROMPT_TOKENS)
        for key, size in request.sizes.items():
            share = digest(f"{key}{size}".encode())[0] / 255  # the same for the same message
            total += size * self.factor * (1 + NOISE * (2 * share - 1))
        return int(total)

    def model(self, prompt: Prompt) -> Completion:
        """Return a summary; fail at each n-th request, if asked to."""
        self._asked += 1
        if self._fails and self._asked % self._fails == 0:
            raise TimeoutError("no answer")
        words = prompt.messages[-1][1].split()
        return Completion(" ".join(words[5:60]).replace('"', "'") + ".", model="scripted")


def messages_of(path: Path) -> list[Message]:
    """Return the messages of the longest branch of a transcript, hidden ones too, in order."""
    repo = Repo.memory()
    import_paths(Writer(repo.store), [str(path)])
    found: list[Message] = []
    for branch in repo.branches.list():
        turns = repo.sessions.read(branch.name, hidden=True).turns
        messages = [_plain(turn.message) for turn in turns]
        if len(messages) > len(found):
            found = messages
    return [each for each in found if each.role in ("user", "assistant", "tool")]


def _plain(message: Any) -> Message:
    """Return a message without addresses of its repository."""
    parts = [
        ToolResult(part.call_id, part.content, part.is_error)
        if isinstance(part, ToolResult)
        else part
        for part in message.parts
    ]
    return Message(message.role, parts, kind=message.kind)


def common_prefix(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix."""
    most = min(len(one), len(other))
    if one[:most] == other[:most]:
        return most
    return next(at for at in range(most) if one[at] != other[at])


def needle(number: int) -> str:
    """Return a sentence that no transcript has."""
    return f"Remember that the gate of harbour {number} opens with the word quince{number}."


def with_needles(messages: Sequence[Message]) -> tuple[list[Message], int]:
    """Append needles to some prompts; return the messages and the number of needles."""
    found, made = list(messages), 0
    places = [at for at, each in enumerate(found) if each.role == "user" and each.text]
    for at in places[:: max(1, len(places) // NEEDLES)]:
        message = found[at]
        parts = [*message.parts, Text(f"\n\n{needle(made)}")]
        found[at] = Message(message.role, parts, kind=message.kind)
        made += 1
    return found, made


def play(
    messages: Sequence[Message],
    limit: int,
    provider: Provider,
    model: bool,
    folder: str,
    reports: bool = True,
) -> Played:
    """Play a transcript against a provider, with or without usage reports."""
    played, body, total = Played(), b"", 0
    messages, played.needles = with_needles(messages)
    with Repo.init(folder, durability="fast", secrets="off") as repo:
        session = repo.sessions.start(
            "play",
            name="one",
            description="You write code.",
            limit=limit,
            reply=min(8_000, limit // 10),
            model=provider.model if model else None,
        )
        waiting: list[Any] = []
        for message in messages:
            if message.role != "assistant":
                waiting += session.add(message).addresses
                continue
            try:
                request = session.request()
            except errors.BudgetError:
                played.refused += 1
                session.add(message)
                waiting.clear()
                continue
            _check(repo, session, request, played, waiting)
            counted = provider.count(request)
            now = json.dumps(request.body, sort_keys=True).encode()
            common = common_prefix(body, now)
            played.changed += max(0, len(body) - common - ENDING)
            body, total = now, total + len(now)
            has_report = played.requests > 0
            played.requests += 1
            if counted + session.facts.reply > limit:
                played.over += has_report
                played.first += not has_report
                played.worst = max(played.worst, counted + session.facts.reply - limit)
            usage = {"input_tokens": counted, "output_tokens": 1}
            if reports:
                session.add(message, usage=usage, request=request, model="scripted")
            else:
                session.add(message)
            waiting.clear()
        done = session.history()
        played.compactions, played.saved = len(done), sum(each.saved for each in done)
        played.changed = round(100 * played.changed / max(1, total), 1)
        for number in range(played.needles):
            played.words += f"quince{number}." in body.decode()
            played.found += _is_found(repo, session, number)
    return played


def _is_found(repo: Repo, session: Session, number: int) -> bool:
    """Return True if a search and a read find a needle."""
    hits = repo.search(f"quince{number}", limit=3)
    return any(
        needle(number) in repo.message(hit.address, ref=session.ref).message.text for hit in hits
    )


def _check(
    repo: Repo, session: Session, request: SessionRequest, played: Played, waiting: Sequence[Any]
) -> None:
    """Count faults: missing unread messages, and requests that a provider rejects."""
    context = repo.compile(ref=session.ref)
    shown = {each.address for each in context}
    played.unread += sum(address not in shown for address in waiting)
    if any(each.is_fault for each in request.repairs):
        played.invalid += 1
    elif played.requests % 10 == 0:
        for provider in PROVIDERS:
            rendered = context.render(provider)
            played.invalid += any(each.is_fault for each in rendered.repairs)


def runs() -> Iterator[tuple[str, Callable[[float], Provider], bool]]:
    """Yield (name, provider factory, whether a model writes summaries)."""
    yield "rules", Provider, False
    yield "model", Provider, True
    yield "failing", lambda factor: Provider(factor, fails=3), True


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.session_play", description=__doc__)
    parser.add_argument("transcripts", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, action="append")
    parser.add_argument("--factor", type=float, action="append")
    parser.add_argument("--blind", action="store_true", help="the provider reports no usage")
    parser.add_argument("--by", action="append", help="rules, model or failing")
    chosen = parser.parse_args(arguments)
    print(" | ".join(("transcript", "messages", "by", "limit", "factor", *fields(Played))))
    for path in chosen.transcripts:
        messages = messages_of(path)
        if len(messages) < LONG:
            continue
        for name, provider, model in runs():
            for limit in chosen.limit or LIMITS:
                for factor in chosen.factor or FACTORS:
                    if chosen.by and name not in chosen.by:
                        continue
                    with tempfile.TemporaryDirectory() as folder:
                        p = play(
                            *(messages, limit, provider(factor), model, folder),
                            reports=not chosen.blind,
                        )
                    row = (path.stem[:30], len(messages), name, limit, factor)
                    print(" | ".join(map(str, (*row, *(getattr(p, f) for f in fields(Played))))))
                    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
