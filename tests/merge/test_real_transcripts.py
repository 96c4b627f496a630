"""Two continuations of real transcripts, joined in every way and taken back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.importers.support.transcripts import each_chosen_file
from trace_store import Environment, Repo, context
from trace_store.context.compiler import ContextCompiler
from trace_store.importers.import_paths import import_paths
from trace_store.merge.conflicts import Conflict
from trace_store.providers.rendering import FAULTS, LEADING_ASSISTANT
from trace_store.writer import Writer

PROVIDERS = ("anthropic", "openai", "openai-responses", "gemini")
STRATEGIES = ("append", "interleave", "ours", "theirs", "decisions")
FEWEST_COMMITS = 8
ADA = Environment(author="ada")


def faults(repo: Repo, revision: str) -> Counter[tuple[str, str]]:
    """Count the faults that providers would reject, by provider and kind.

    A context that begins with the assistant is left out: in one file a session was cleared and went on, and who merges
    the cleared one takes away the question that the other line answers. Renderers see to it.
    """
    shown = repo.compile(revision)
    return Counter(
        (provider, repair.code)
        for provider in PROVIDERS
        for repair in shown.render(provider).repairs
        if repair.code in FAULTS - {LEADING_ASSISTANT}
    )


def state(repo: Repo) -> tuple[Any, ...]:
    shown = repo.compile("HEAD")
    return shown.prefix_hash, shown.token_count, [each.address for each in shown.messages]


def check(repo: Repo, known: Counter[tuple[str, str]]) -> None:
    """The compiled context is the fold's, and no part of it is worse than those that it is made of."""
    fold = context.fold.fold(repo.resolve("HEAD"), ContextCompiler(repo.store).read_commit)
    assert [each.address for each in fold.visible()] == state(repo)[2]
    assert faults(repo, "HEAD") <= known


def both(conflict: Conflict) -> str:
    return "both" if "both" in conflict.choices else "ours"


@pytest.mark.parametrize("path", each_chosen_file())
def test_two_continuations(path: Path, tmp_path: Path) -> None:
    """One continues unchanged; the other continues from there with the last part."""
    with Repo.init(tmp_path, durability="fast", environment=ADA, secrets="off") as repo:
        import_paths(Writer(repo.store), [str(path)])
        lines = {each.name: [e.oid for e in repo.log(each.name)] for each in repo.branches.list()}
        name, line = max(lines.items(), key=lambda item: len(item[1]))
        if len(line) < FEWEST_COMMITS:
            pytest.skip("too short to part")
        line.reverse()
        quarter = len(line) // 4
        repo.branches.create("own", line[3 * quarter - 1])
        repo.branches.create("other", line[2 * quarter - 1])
        repo.branches.switch("other")
        repo.cherry_pick(f"{line[3 * quarter - 1]}..{name}", favour="ours")
        before = state(repo)
        known = faults(repo, "own") + faults(repo, "HEAD")
        for strategy in STRATEGIES:
            for settle in ({"favour": "ours"}, {"favour": "theirs"}, {"resolver": both}):
                assert repo.merge("own", strategy=strategy, **settle).outcome == "merged"
                check(repo, known)
                after = state(repo)
                repo.undo()
                assert state(repo) == before
                repo.redo()
                assert state(repo) == after
                repo.undo()
        assert repo.rebase("own", favour="ours").outcome == "done"
        check(repo, known)
        repo.undo()
        assert state(repo) == before
