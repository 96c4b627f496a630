"""Ways to shrink a context, compared: `python -m benchmarks.compaction TRANSCRIPT…`.

No model is asked. Each transcript gets eighty needles, eight classes at ten depths, and is then shrunk by each policy.
A needle is an identifier that occurs nowhere else. It is kept verbatim if the remaining context contains it. A fact is
a line inside an output of the transcript itself; a prohibition is kept only if its "never" is, too.

    none          nothing
    truncate      drop the oldest messages
    ends          keep the first and the last N messages, half of the target each
    head-tail     cut all old tool results to their head and tail, as much as the target needs
    clear         clear all tool results but the last 3 (Anthropic's clear_tool_uses)
    opencode      clear tool results beyond the newest 40,000 tokens, if that frees 20,000
    codex         instructions, the newest 20,000 tokens of user messages, and a summary
    trim          trace trim
    extractive    trace compress --extractive
    ghosts        trace remove --ghost, the oldest messages first

truncate, ends, head-tail, trim, extractive and ghosts get the same target, a share of the tokens of the messages.
`--equal` gives `trim` the tokens that each other method left, and prints both. The rules of opencode
and Codex CLI come from their sources in 2026. Codex asks a model for the summary; here it is the extractive one.

    verbatim      needles that the context still says
    in two calls  needles that the agent can reach again by `trace search` and `trace expand`; without Trace, verbatim
    tokens        of the messages, beside those before
    rewritten     tokens from the first changed message on, which a prompt cache has to write again
    faults        names in the second half of the session that the first half told, and that its smaller form lacks,
                  where only the first half was made smaller (the fault rate of arXiv 2603.09023)

Intervals are 95 % bootstrap intervals over the transcripts.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from trace_store import Message, Repo, Text, ToolCall, ToolResult
from trace_store.compression.extract import Passage, SourceMessage, extract
from trace_store.compression.suggest import marks_of
from trace_store.errors import BudgetError, InvalidInputError, StateError
from trace_store.importers.import_paths import import_paths
from trace_store.objects.parts import Part
from trace_store.writer import Writer

CLASSES = ("constraint", "prohibition", "decision", "command", "path", "error", "number", "fact")
DEPTHS = 10
SMALLEST = 10_000
RESAMPLES = 2_000
CLEARED = "[cleared]"
_FACTS = (
    "listening on port {}",
    "DATABASE_NAME={}",
    "  created {} (2 files)",
    "user {} has no access",
    "checksum: {}",
    "warning: {} is deprecated",
    "def handle_{}(request):",
    "{} | 12 | active",
)
"""Lines as programs print them, and as source code has them."""
Policy = Callable[["Session"], list[Message]]


class Needle(NamedTuple):
    """An identifier that one message of a session says."""

    kind: str
    depth: int
    name: str


class Session:
    """The messages of a session with needles, in a repository of their own.

    Attributes:
        messages: the messages, oldest first.
        target: the tokens that the messages may have afterwards.
    """

    def __init__(self, messages: Sequence[Message], share: float) -> None:
        self.repo = Repo.memory()
        for message in messages:
            self.repo.commit([message])
        self.messages = [each.message() for each in self.repo.compile().messages]
        self.sizes = self.count(self.messages)
        self.target = int(sum(self.sizes) * share)

    def count(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of each message."""
        return [total for total, _ in self.repo.compile().plain(messages).message_tokens()]

    def whole_target(self) -> int:
        """Return the target plus the cost of a request besides the messages."""
        return self.target + self.repo.compile().token_count - sum(self.sizes)

    def compiled(self) -> list[Message]:
        """Return the messages of the present context."""
        return [each.message() for each in self.repo.compile().messages]

    def is_recoverable(self, name: str) -> bool:
        """Return True if the history has a name, so that a search finds it and `expand` shows it."""
        return bool(self.repo.branches.whohas(name))


def none(session: Session) -> list[Message]:
    """Change nothing."""
    return session.messages


def truncate(session: Session) -> list[Message]:
    """Drop the oldest messages, and results whose call is gone."""
    sizes, messages = session.sizes, session.messages
    total, first = sum(sizes), 0
    while total > session.target and first < len(messages) - 1:
        if messages[first].role not in ("system", "developer"):
            total -= sizes[first]
        first += 1
    head = [each for each in messages[:first] if each.role in ("system", "developer")]
    while first < len(messages) and _results(messages[first]):
        first += 1
    return [*head, *messages[first:]]


def ends(session: Session) -> list[Message]:
    """Keep the first and the last messages, half of the target each."""
    sizes, messages = session.sizes, session.messages
    first, room = 0, session.target // 2
    while first < len(messages) and sizes[first] <= room:
        room -= sizes[first]
        first += 1
    last, room = len(messages), session.target // 2 + room
    while last > first and sizes[last - 1] <= room:
        last -= 1
        room -= sizes[last]
    called = {part.id for m in messages[:first] for part in m.parts if isinstance(part, ToolCall)}
    while last < len(messages) and _results(messages[last]):
        last += 1
    answered = {
        part.call_id for m in messages[:first] for part in m.parts if isinstance(part, ToolResult)
    }
    open_calls = called - answered
    head = [
        m for m in messages[:first] if not any(getattr(p, "id", "") in open_calls for p in m.parts)
    ]
    return [*head, *messages[last:]]


def head_tail(session: Session) -> list[Message]:
    """Cut tool results to head and tail, to the largest equal size that meets the target."""
    low, high = 0, 40_000
    best = session.messages
    while low <= high:
        size = (low + high) // 2
        cut = [_cut_results(each, size) for each in session.messages]
        if sum(session.count(cut)) <= session.target:
            best, low = cut, size + 1
        else:
            high = size - 1
        if size == 0:
            best = cut
    return best


def _cut_results(message: Message, size: int) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            text = "\n".join(_texts(part.content))
            if len(text) > size:
                text = f"{text[: size // 2]}\n[cut]\n{text[len(text) - size // 2 :] if size > 1 else ''}"
            part = ToolResult(part.call_id, text, part.is_error)
        parts.append(part)
    return Message(message.role, parts, kind=message.kind)


def clear(session: Session) -> list[Message]:
    """Clear all tool results but the last three."""
    with_results = [at for at, each in enumerate(session.messages) if _results(each)]
    return [
        _cleared(each) if at in with_results[:-3] else each
        for at, each in enumerate(session.messages)
    ]


def opencode(session: Session) -> list[Message]:
    """Clear results beyond the newest 40,000 tokens and the last two turns, if that frees 20,000."""
    turns, kept, freed, found = 0, 0, 0, []
    for at in range(len(session.messages) - 1, -1, -1):
        message = session.messages[at]
        turns += message.role == "user" and not _results(message)
        if turns < 2 or not _results(message):
            continue
        kept += session.sizes[at]
        if kept > 40_000:
            found.append(at)
            freed += session.sizes[at]
    if freed <= 20_000:
        return session.messages
    return [_cleared(m) if at in found else m for at, m in enumerate(session.messages)]


def codex(session: Session) -> list[Message]:
    """Keep instructions, the newest user messages up to 20,000 tokens, and a summary."""
    room, kept = 20_000, []
    for at in range(len(session.messages) - 1, -1, -1):
        message = session.messages[at]
        if message.role == "user" and not _results(message) and room > 0:
            kept.append(message)
            room -= session.sizes[at]
    head = [each for each in session.messages if each.role in ("system", "developer")]
    sources = [SourceMessage(each.role, said([each])) for each in session.messages]
    passage = Passage(sources, 2_000, lambda text: len(text) // 4, lambda text: [])
    return [*head, *reversed(kept), Message("user", extract(passage))]


def trim(session: Session) -> list[Message]:
    """Trim to the target, or as far as possible."""
    session.repo.compression.trim(session.whole_target(), partial=True)
    return session.compiled()


def extractive(session: Session) -> list[Message]:
    """Compress to the target with the extractive summary, or as far as possible."""
    try:
        session.repo.compression.compress(session.whole_target(), force=True)
    except BudgetError as error:
        session.repo.compression.compress(error.needed, force=True)  # type: ignore[arg-type]
    except (InvalidInputError, StateError):
        pass  # there is nothing to compress
    return session.compiled()


def ghosts(session: Session) -> list[Message]:
    """Replace the oldest messages but instructions by ghosts until the target is met."""
    total, gone = sum(session.sizes), []
    for message, size in zip(session.repo.compile().messages, session.sizes, strict=True):
        if total <= session.target:
            break
        if message.role not in ("system", "developer"):
            gone.append(message.address)
            total -= size - 20
    if gone:
        session.repo.remove(gone, ghost=True)
    return session.compiled()


POLICIES: dict[str, Policy] = {
    each.__name__.replace("_", "-"): each
    for each in (none, truncate, ends, head_tail, clear, opencode, codex, trim, extractive, ghosts)
}
REVERSIBLE = {"trim", "extractive", "ghosts", "none"}


def _results(message: Message) -> bool:
    return any(isinstance(part, ToolResult) for part in message.parts)


def _cleared(message: Message) -> Message:
    parts: list[Part] = [
        ToolResult(p.call_id, CLEARED, p.is_error) if isinstance(p, ToolResult) else p
        for p in message.parts
    ]
    return Message(message.role, parts)


def said(messages: Sequence[Message]) -> str:
    """Return all that messages say, as one text."""
    return "\n".join(text for message in messages for text in _texts(message.parts))


def _texts(parts: Sequence[Part]) -> list[str]:
    found = []
    for part in parts:
        if isinstance(part, Text):
            found.append(part.text)
        elif isinstance(part, ToolCall):
            found.append(part.arguments)
        elif isinstance(part, ToolResult):
            found += _texts(part.content)
    return found


def planted(
    messages: Sequence[Message], chance: random.Random
) -> tuple[list[Message], list[Needle]]:
    """Return messages with needles, and the needles."""
    free = [
        at
        for at, each in enumerate(messages)
        if at
        and each.role in ("user", "assistant")
        and not _results(each)
        and _is_settled(messages, at)
    ]
    made: dict[int, list[Message]] = {}
    needles = []
    messages = list(messages)
    outputs = [at for at, each in enumerate(messages) if _lines_of_results(each) > 8]
    for depth in range(DEPTHS):
        wanted = len(messages) * (depth + 0.5) / DEPTHS
        at = min(free, key=lambda each: abs(each - wanted))
        for kind in CLASSES:
            name = (
                f"{chance.getrandbits(40):010x}"
                if kind != "number"
                else str(chance.randrange(10**9, 10**10))
            )
            if kind == "fact":
                if outputs:
                    place = min(outputs, key=lambda each: abs(each - wanted))
                    messages[place] = _with_fact(messages[place], name, chance)
                    needles.append(Needle(kind, depth, name))
                continue
            needles.append(Needle(kind, depth, name))
            made.setdefault(at, []).extend(_says(kind, name))
    return [m for at, each in enumerate(messages) for m in [*made.get(at, ()), each]], needles


def _lines_of_results(message: Message) -> int:
    texts = [
        text for part in message.parts if isinstance(part, ToolResult) for text in _texts([part])
    ]
    return sum(text.count("\n") for text in texts)


def _with_fact(message: Message, name: str, chance: random.Random) -> Message:
    """Return a message with a line with a name somewhere in its first long result."""
    parts: list[Part] = []
    is_told = False
    for part in message.parts:
        if (
            isinstance(part, ToolResult)
            and not is_told
            and _lines_of_results(Message("tool", [part])) > 2
        ):
            lines = "\n".join(_texts([part])).split("\n")
            line = chance.choice(_FACTS).format(name)
            lines.insert(chance.randrange(1, len(lines)), line)
            part, is_told = ToolResult(part.call_id, "\n".join(lines), part.is_error), True
        parts.append(part)
    return Message(message.role, parts, kind=message.kind, name=message.name, model=message.model)


def _is_settled(messages: Sequence[Message], at: int) -> bool:
    """Return True if all calls right before a position have results."""
    return not any(isinstance(part, ToolCall) for part in messages[at - 1].parts)


def _says(kind: str, name: str) -> list[Message]:
    filler = "\n".join(
        f"step {n} of the work is done, and nothing is to be reported" for n in range(60)
    )
    if kind == "constraint":
        return [Message("user", f"You must not use the port of {name} for anything.")]
    if kind == "prohibition":
        return [Message("user", f"Whatever happens, never delete the table {name}, please.")]
    if kind == "decision":
        return [Message("assistant", f"Decision: we keep {name} as the key, because it is stable.")]
    tool, arguments, output, failed = {
        "command": ("Bash", {"command": f"make deploy-{name}"}, filler, False),
        "path": ("Read", {"file_path": f"/src/{name}/module.py"}, filler, False),
        "error": ("Bash", {"command": "make check"}, f"Error: {name} refused\n{filler}", True),
        "number": ("Bash", {"command": "make count"}, f"{filler}\ntotal: {name}\n{filler}", False),
    }[kind]
    call = ToolCall(f"needle_{kind}_{name}", tool, json.dumps(arguments))
    return [Message("assistant", [call]), Message("tool", [ToolResult(call.id, output, failed)])]


class Outcome(NamedTuple):
    """The result of one policy on one session."""

    verbatim: dict[str, float]
    recoverable: float
    tokens: float
    rewritten: float
    faults: float


def measure(messages: Sequence[Message], policy: str, share: float, seed: int) -> Outcome:
    """Shrink a session by one policy, and count what remains."""
    whole, needles = planted(messages, random.Random(seed))
    session = Session(whole, share)
    left = POLICIES[policy](session)
    text = said(left)
    kept = {
        kind: sum(_is_kept(each, text) for each in needles if each.kind == kind)
        / (sum(each.kind == kind for each in needles) or 1)
        for kind in CLASSES
    }
    found = sum(_is_kept(each, text) or _reachable(session, policy, each) for each in needles)
    same = 0
    for one, other in zip(session.messages, left, strict=False):
        if one.role != other.role or one.parts != other.parts:
            break
        same += 1
    sizes = session.count(left)
    total = sum(session.sizes)
    return Outcome(
        kept,
        found / len(needles),
        sum(sizes) / total,
        sum(sizes[same:]) / total,
        _faults(messages, policy, share),
    )


def _is_kept(needle: Needle, text: str) -> bool:
    """Return True if a text has a needle; of a prohibition, also its "never"."""
    if needle.kind != "prohibition":
        return needle.name in text
    return any("never" in line and needle.name in line for line in text.splitlines())


def _reachable(session: Session, policy: str, needle: Needle) -> bool:
    return policy in REVERSIBLE and session.is_recoverable(needle.name)


def _faults(messages: Sequence[Message], policy: str, share: float) -> float:
    half = len(messages) // 2
    while half < len(messages) and not _is_settled(messages, half):
        half += 1
    session = Session(messages[:half], share)
    told = set().union(*(marks_of(each.parts) for each in messages[:half]))
    known = said(POLICIES[policy](session))
    mentions = faults = 0
    for message in messages[half:]:
        for mark in marks_of(message.parts) & told:
            mentions += 1
            faults += mark not in known
        known += "\n" + said([message])
    return faults / (mentions or 1)


def interval(values: Sequence[float]) -> str:
    """Return a mean with its 95 % bootstrap interval, in percent."""
    chance = random.Random(1)
    means = sorted(
        sum(chance.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLES)
    )
    low, high = means[RESAMPLES // 40], means[-RESAMPLES // 40]
    return f"{100 * sum(values) / len(values):.0f} ({100 * low:.0f}–{100 * high:.0f})"


def sessions(paths: Sequence[str]) -> list[tuple[str, list[Message]]]:
    """Return the longest branch of each transcript that is long enough."""
    found = []
    for path in paths:
        with Repo.memory() as repo:
            import_paths(Writer(repo.store), [path])
            names = [each.name for each in repo.branches.list()]
            name = max(names, key=lambda each: len(repo.compile(each)), default="")
            if name and sum(t for t, _ in repo.compile(name).message_tokens()) >= SMALLEST:
                messages = [each.message() for each in repo.compile(name).messages]
                found.append((Path(path).stem, [_unlinked(each) for each in messages]))
    return found


def _unlinked(message: Message) -> Message:
    parts: list[Part] = [
        ToolResult(p.call_id, p.content, p.is_error) if isinstance(p, ToolResult) else p
        for p in message.parts
    ]
    return Message(message.role, parts, kind=message.kind, name=message.name, model=message.model)


def _print_equal(found: Sequence[tuple[str, list[Message]]], share: float) -> int:
    """Print what each method keeps, and what trim keeps with the tokens that it left, as needles and in percent."""
    print("| way | tokens | needles | kept | kept by trim | more by trim |")
    print("|---" * 6 + "|")
    for policy in POLICIES:
        if policy in ("none", "trim"):
            continue
        tokens, gains, kept, trimmed, needles = [], [], 0, 0, 0
        for number, (name, messages) in enumerate(found):
            print(f"{policy} {name}", file=sys.stderr)
            one = kept_of(messages, policy, share, number)
            other = kept_of(messages, "trim", one[2], number)
            needles += one[1]
            kept += one[0]
            trimmed += other[0]
            tokens.append(one[2])
            gains.append((other[0] - one[0]) / one[1])
        print(
            f"| {policy} | {interval(tokens)} | {needles} | {kept} | {trimmed} | {interval(gains)} |",
            flush=True,
        )
    return 0


def kept_of(
    messages: Sequence[Message], policy: str, share: float, seed: int
) -> tuple[int, int, float]:
    """Return how many needles a policy keeps, of how many, and the share of tokens that it leaves."""
    whole, needles = planted(messages, random.Random(seed))
    session = Session(whole, share)
    left = POLICIES[policy](session)
    text = said(left)
    kept = sum(_is_kept(each, text) for each in needles)
    return kept, len(needles), sum(session.count(left)) / sum(session.sizes)


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compaction")
    parser.add_argument("transcripts", nargs="+")
    parser.add_argument(
        "--share", type=float, default=0.5, help="the target, of the messages' tokens"
    )
    parser.add_argument(
        "--equal", action="store_true", help="compare each method with trim at the same tokens"
    )
    given = parser.parse_args(words)
    paths = [
        str(path)
        for each in map(Path, given.transcripts)
        for path in (
            sorted(p for p in each.rglob("*") if p.suffix in (".json", ".jsonl", ".traj"))
            if each.is_dir()
            else [each]
        )
    ]
    found = sessions(paths)
    print(f"{len(found)} sessions, target {given.share:.0%} of the messages' tokens\n")
    if given.equal:
        return _print_equal(found, given.share)
    columns = (*CLASSES, "all, verbatim", "in two calls", "tokens", "rewritten", "faults")
    print("| way | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for policy in POLICIES:
        outcomes = []
        for number, (name, messages) in enumerate(found):
            print(f"{policy} {name}", file=sys.stderr)
            outcomes.append(measure(messages, policy, given.share, number))
        cells = [
            f"{100 * sum(o.verbatim[k] for o in outcomes) / len(outcomes):.0f}" for k in CLASSES
        ]
        cells.append(interval([sum(o.verbatim.values()) / len(CLASSES) for o in outcomes]))
        cells += [
            interval([getattr(o, name) for o in outcomes])
            for name in ("recoverable", "tokens", "rewritten", "faults")
        ]
        print(f"| {policy} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
