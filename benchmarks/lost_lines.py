"""Lines that a context loses: `python -m benchmarks.lost_lines TRANSCRIPT…`.

For the longest branch of each transcript, `trace dedupe`, and each step of `trace trim --percent 50`: how many distinct
lines (of four characters or more, without line numbers and the headers of Codex) are in the changed messages, and how
many of them the context has nowhere afterwards. Lines of older versions of files, which dedupe lists, count apart.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from trace_store import Repo, Text, ToolCall, ToolResult
from trace_store.compression import trim
from trace_store.compression.repeats import lines_of
from trace_store.compression.working import WorkingContext
from trace_store.context.activity import texts_in
from trace_store.importers.import_paths import import_paths
from trace_store.objects.parts import Part
from trace_store.writer import Writer

LONG = 20
"""Branches with fewer messages are left out."""
_SHORTEST = 4


def texts_of(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the texts of some parts, also those in the arguments of calls."""
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolResult):
            yield from texts_of(part.content)
        elif isinstance(part, ToolCall):
            yield from texts_in(part.arguments)


def distinct(texts: Iterable[str]) -> set[str]:
    """Return the distinct lines of some texts."""
    return {line for text in texts for line in lines_of(text) if len(line) >= _SHORTEST}


def lines_after(working: WorkingContext) -> set[str]:
    """Return the distinct lines of a context with the changes so far."""
    replaced = {at for run, _ in working.notes for at in run}
    left = (working.current_parts(at) for at in range(len(working.messages)) if at not in replaced)
    notes = (note.parts for _, note in working.notes)
    return distinct(text for parts in (*left, *notes) for text in texts_of(parts))


def measure(repo: Repo, steps: Sequence[str], to: int | None) -> tuple[dict[str, int], int, int]:
    """Return (lost lines by step, lines in changed messages, lines of older versions) of a planned trim."""
    contexts = repo.writer.contexts
    lost: dict[str, int] = {}
    known: set[str] | None = None
    taken: list[str] = []
    older = lines = 0
    for step in steps:
        taken.append(step)
        result, working = trim.plan(contexts, to=to, steps=taken)
        if known is None:
            known = distinct(t for m in working.messages for t in texts_of(m.parts))
        now = lines_after(working)
        lost[step] = len(known - now)
        known = known & now
        older = sum(len(gone) for _, gone in result.older)
        changed = {*working.parts, *(at for run, _ in working.notes for at in run)}
        lines = len(distinct(t for at in changed for t in texts_of(working.messages[at].parts)))
    return lost, lines, older


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lost_lines")
    parser.add_argument("transcripts", nargs="+")
    given = parser.parse_args(words)
    print("| transcript | messages | dedupe: lines, lost, older | " + " | ".join(trim.STEPS) + " |")
    print("|---" * (3 + len(trim.STEPS)) + "|")
    for path in given.transcripts:
        with Repo.memory() as repo:
            import_paths(Writer(repo.store), [path])
            names = [each.name for each in repo.branches.list()]
            name = max(names, key=lambda each: len(repo.compile(each)), default="")
            if not name or len(repo.compile(name)) < LONG:
                continue
            repo.branches.switch(name)
            lost, lines, older = measure(repo, trim.DEDUPLICATION, None)
            steps, _, _ = measure(repo, trim.STEPS, repo.compression.target("50%"))
            cells = [f"{lines:,}, {sum(lost.values()) - older:,}, {older:,}"]
            cells += [f"{steps[step]:,}" for step in trim.STEPS]
            count = len(repo.compile())
            print(f"| {Path(path).stem} | {count} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
