"""Paths that other systems wrote: one file in any spelling, and never said to be gone."""

from __future__ import annotations

import json
import random

import pytest

from trace_store import Message, Repo
from trace_store.context.activity import activity_of
from trace_store.context.file_paths import normal_path, normal_paths
from trace_store.history.log_filters import mentions
from trace_store.objects.parts import Text, ToolCall, ToolResult
from trace_store.search.query import SearchFilter, search

FOLDERS = ["Users", "ada", "p", "src", "lib", "my app", "日本", "x.y", "a-b"]


def spellings(drive: str, parts: list[str]) -> list[str]:
    """Return a path as Windows, its shells and its programs write it."""
    lower, rest = drive.lower(), "/".join(parts)
    backward = "\\".join(parts)
    return [
        *(f"{drive}:\\{backward}", f"{lower}:\\{backward}", f"{drive}:/{rest}", f"{lower}:/{rest}"),
        *(f"/{lower}/{rest}", f"{drive}:\\{parts[0]}/{'/'.join(parts[1:])}"),
    ]


@pytest.mark.parametrize("seed", range(100))
def test_one_file_in_two_spellings(seed: int) -> None:
    chosen = random.Random(seed)
    folders = chosen.sample(FOLDERS, chosen.randint(1, 4))
    parts = [*folders, chosen.choice(["parser.py", "Main.java", "README"])]
    both = chosen.sample(spellings(chosen.choice("CD"), parts), 2)
    repo = Repo.memory()
    repo.append("user", "Look at it.")
    for number, path in enumerate(both):
        call = ToolCall(f"c{number}", "Read", json.dumps({"file_path": path}, ensure_ascii=False))
        repo.append(Message("assistant", [call]))
        lines = "\n".join(f"{number} line {each} of the file" for each in range(60))
        repo.append(Message("tool", [ToolResult(call.id, [Text(lines)])]))
        repo.append("assistant", "Read.")
    messages = repo.compile().messages
    (use,) = activity_of(messages).files
    assert (use.path, use.reads) == (normal_path(both[0]), 2)
    wanted = [*both, "/".join(parts[-2:]), "\\".join(parts[-2:]), parts[-1], f"{parts[-2]}/"]
    for path in wanted:
        if len(parts) > 2 or path in both:
            assert len(search(repo.store, "", SearchFilter(path=path))) == 2, path
        assert all(mentions(json.dumps(each, ensure_ascii=False), path) for each in both), path
    proposals = repo.compression.suggest().proposals
    assert not [each for each in proposals if "gone" in each.explanation]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("C:\\Users\\ada\\a.py", "C:/Users/ada/a.py"),
        ("c:/Users/ada/a.py", "C:/Users/ada/a.py"),
        ("/c/Users/ada/a.py", "C:/Users/ada/a.py"),
        ("z:\\a.py", "Z:/a.py"),
        ("/w/app/a.py", "/w/app/a.py"),
        ("src\\a.py", "src/a.py"),
        ("/home/ada/a.py", "/home/ada/a.py"),
        ("my\\ file.py", "my\\ file.py"),
        ("https://example.com/c/a", "https://example.com/c/a"),
        ("a/c/b", "a/c/b"),
        ("", ""),
    ],
)
def test_a_path(written: str, meant: str) -> None:
    assert normal_path(written) == meant
    assert normal_paths(f"see {written} now") == f"see {meant} now"
    assert normal_path(meant) == meant
