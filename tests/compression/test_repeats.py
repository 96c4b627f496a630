"""What may leave because a later message holds it, and what may not: a hundred generated neighbours of each kind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.compression.support.agent_session import call, result
from tests.support.pictures import png
from trace_store import Image, Message, Repo, Text, ToolResult

NEIGHBOURS = range(100)
TOOLS = (("Read", "file_path"), ("read_file", "absolute_path"), ("view", "path"), ("cat", "file"))
Step = tuple[str, Mapping[str, object], str]


@pytest.fixture
def repo() -> Iterator[Repo]:
    with Repo.memory() as made:
        yield made


def text_of(chance: random.Random, count: int = 0) -> list[str]:
    """Return the lines of a file, each of them different."""
    words = ("parse", "value", "token", "fold", "index", "commit", "budget", "branch")
    return [
        f"{chance.choice(words)}_{number} = {chance.choice(words)}({chance.randrange(10_000)})"
        for number in range(count or chance.randrange(20, 90))
    ]


def play(repo: Repo, *steps: Step) -> None:
    """Append a prompt, and calls with their results."""
    messages = [Message("user", "Fix the parser.")]
    for number, (tool, arguments, output) in enumerate(steps, 1):
        messages.append(Message("assistant", [call(number, tool, **arguments)]))
        messages.append(Message("tool", [result(number, output)]))
    for number in range(3):
        messages.append(Message("user", f"Go on with part {number}."))
        messages.append(Message("assistant", "It is done."))
    repo.commit(messages)


def shown(repo: Repo) -> str:
    """Return all texts of the context."""
    parts = (part for message in repo.compile().messages for part in message.parts)
    texts = []
    for part in parts:
        if isinstance(part, ToolResult):
            texts += [each.text for each in part.content if isinstance(each, Text)]
        elif isinstance(part, Text):
            texts.append(part.text)
    return "\n".join(texts)


def numbered(lines: list[str], start: int = 1) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, start))


def stub(chance: random.Random, lines: list[str]) -> str:
    return chance.choice(
        [
            "File unchanged since last read. The content from the earlier Read tool_result is still current.",
            "[Old tool result content cleared]",
            "",
            "(no change)",
            "\n".join([*lines[:3], "... [truncated]"]),
            "\n".join(lines[: len(lines) // 4]),
            "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>",
            "Error: file not read",
            "\n".join([*lines[: len(lines) * 4 // 5], f"[{len(lines) // 5} more lines omitted]"]),
        ]
    )


def a_stub(chance: random.Random, lines: list[str]) -> tuple[Step, ...]:
    tool, key = chance.choice(TOOLS)
    path = {key: "/w/parser.py"}
    return (tool, path, numbered(lines)), (tool, path, stub(chance, lines))


def another_part(chance: random.Random, lines: list[str]) -> tuple[Step, ...]:
    half = len(lines) // 2
    if chance.random() < 0.5:
        commands = chance.choice(
            [
                (f"head -{half} parser.py", f"tail -{len(lines) - half} parser.py"),
                (f"sed -n '1,{half}p' parser.py", f"sed -n '{half + 1},999p' parser.py"),
                (f"head -n {half} parser.py", "cat parser.py | tail"),
            ]
        )
        first, second = ({"command": each} for each in commands)
        return ("Bash", first, "\n".join(lines[:half])), ("Bash", second, "\n".join(lines[half:]))
    path = {"file_path": "/w/parser.py"}
    parts = ({"offset": 1, "limit": half}, {"offset": half, "limit": half})
    return (
        ("Read", {**path, **parts[0]}, numbered(lines[:half])),
        ("Read", {**path, **parts[1]}, numbered(lines[half:], half)),
    )


def another_folder(chance: random.Random, lines: list[str]) -> tuple[Step, ...]:
    key = chance.choice(("workdir", "cwd"))
    other = text_of(chance, len(lines))
    return (
        ("shell", {"command": ["cat", "setup.cfg"], key: "/w/one"}, "\n".join(lines)),
        ("shell", {"command": ["cat", "setup.cfg"], key: "/w/two"}, "\n".join(other)),
    )


def a_failed_edit(chance: random.Random, lines: list[str]) -> tuple[Step, ...]:
    tool = chance.choice(("edit_file", "Edit", "str_replace", "write_file", "Write"))
    said = chance.choice(
        [
            "Error: String to replace not found in file.",
            '{"error": "permission denied"}',
            "Failed to write: disk is full",
            "<tool_use_error>File has been modified since read</tool_use_error>",
        ]
    )
    arguments = {"file_path": "/w/parser.py", "old_string": "a", "new_string": "b"}
    if tool.lower().startswith("write"):
        arguments = {"file_path": "/w/parser.py", "content": "\n".join([*lines[1:], "new"])}
    return ("Read", {"file_path": "/w/parser.py"}, numbered(lines)), (tool, arguments, said)


def an_edit(chance: random.Random, lines: list[str]) -> tuple[Step, ...]:
    """Return a read, and an edit whose result shows a few or most of the lines."""
    edit = {"file_path": "/w/parser.py", "old_string": lines[3], "new_string": "x = 1"}
    below = lines[4 : chance.choice((5, len(lines) - 1))]
    said = "The file /w/parser.py has been updated.\n" + numbered([*lines[1:3], "x = 1", *below])
    return ("Read", {"file_path": "/w/parser.py"}, numbered(lines)), ("Edit", edit, said)


def perhaps_another_file(chance: random.Random, lines: list[str]) -> tuple[Step, ...]:
    path = {"file_path": "parser.py"}
    return ("Read", path, numbered(lines)), ("Read", path, numbered(text_of(chance, len(lines))))


@pytest.mark.parametrize(
    "kind",
    [a_stub, another_part, another_folder, a_failed_edit, an_edit, perhaps_another_file],
)
def test_what_stands_nowhere_else_stays(
    kind: Callable[[random.Random, list[str]], tuple[Step, ...]],
) -> None:
    for seed in NEIGHBOURS:
        chance = random.Random(seed)
        lines = text_of(chance)
        with Repo.memory() as repo:
            play(repo, *kind(chance, lines))
            before = shown(repo)
            result = repo.compression.dedupe()
            assert (shown(repo), result.older) == (before, ()), f"seed {seed}"
            reasons = {each.reason for each in repo.compression.suggest().proposals}
            assert not reasons & {"superseded", "duplicate"}, f"seed {seed}"


def wrapped(chance: random.Random, lines: list[str]) -> tuple[Step, Step]:
    """Return an output, and a later one that has it among other lines."""
    more = text_of(chance, 5)
    cut = chance.randrange(3)
    around = [*more[:cut], *lines, *more[cut:]]
    how = chance.randrange(3)
    if how == 0:
        command = {"command": "make list"}
        return ("Bash", command, "\n".join(lines)), ("Bash", command, "\n".join(around))
    if how == 1:
        first = {"file_path": "/w/a.py", "offset": 4, "limit": 90}
        whole = {"file_path": "/w/a.py"}
        return ("Read", first, numbered(lines, 4)), ("Read", whole, numbered(around))
    heads = [
        f"Chunk ID: {chance.randrange(999_999):06}\nWall time: 0.{n} seconds\nOutput:"
        for n in (1, 2)
    ]
    one, other = (
        "\n".join((head, *each)) for head, each in zip(heads, (lines, around), strict=True)
    )
    return ("shell", {"command": "git show"}, one), ("shell", {"command": "git log -p"}, other)


def test_what_a_later_output_holds_leaves(repo: Repo) -> None:
    """All of the planted duplicates are found; 95 of a hundred are asked for."""
    found = 0
    for seed in NEIGHBOURS:
        chance = random.Random(seed)
        with Repo.memory() as repo:
            play(repo, *wrapped(chance, text_of(chance)))
            done = repo.compression.dedupe()
            found += bool(done.changes) and not done.older
    assert found == len(NEIGHBOURS)


def test_a_later_version_of_the_whole_file_takes_the_place_and_lost_lines_are_listed() -> None:
    for seed in NEIGHBOURS:
        chance = random.Random(seed)
        lines = text_of(chance)
        gone = chance.randrange(1, 4)
        newer = [f"changed_{at} = {at}" if at < gone else each for at, each in enumerate(lines)]
        path = {"file_path": "/w/parser.py"}
        later: Step = ("Read", path, numbered(newer))
        if chance.random() < 0.5:
            later = ("Write", {**path, "content": "\n".join(newer)}, "The file has been written.")
        with Repo.memory() as repo:
            play(repo, ("Read", path, numbered(lines)), later)
            done = repo.compression.dedupe()
            ((_, older),) = done.older
            assert list(older) == lines[:gone], f"seed {seed}"
            text = shown(repo)
            verb = "read again" if later[0] == "Read" else "written again"
            assert f"[parser.py was {verb} in " in text
            assert (
                f"; {gone} line{'s' if gone > 1 else ''} of this version stand{'' if gone > 1 else 's'} nowhere"
                in text
            )


def test_a_file_that_was_rewritten_is_the_same_file_by_its_path(repo: Repo) -> None:
    chance = random.Random(3)
    old, new = text_of(chance, 40), text_of(chance, 60)
    path = {"file_path": "/w/parser.py"}
    play(repo, ("Read", path, numbered(old)), ("Read", path, numbered(new)))
    ((_, older),) = repo.compression.dedupe().older
    assert list(older) == [line for line in old if line not in new]


def test_a_reference_leads_to_a_text_and_not_to_another_reference(repo: Repo) -> None:
    lines = text_of(random.Random(1), 30)
    path = {"file_path": "/w/parser.py"}
    versions = [[*lines[:at], f"changed = {at}", *lines[at + 1 :]] for at in range(4)]
    play(repo, *(("Read", path, numbered(each)) for each in versions))
    newest = next(m for m in repo.compile().messages if "changed = 3" in shown_in(m.parts))
    repo.compression.dedupe()
    notes = [line for line in shown(repo).splitlines() if line.startswith("[parser.py was read")]
    assert len(notes) == 3
    assert all(newest.address.short(8) in note for note in notes)


def shown_in(parts: object) -> str:
    return "".join(p.content[0].text for p in parts if isinstance(p, ToolResult))  # type: ignore[attr-defined]


def test_a_picture_is_no_duplicate_of_a_text(repo: Repo) -> None:
    text = "\n".join(text_of(random.Random(2), 40))
    repo.append("user", "Look.")
    for number, picture in ((1, [Image("image/png", png(8, 8))]), (2, [])):
        repo.commit([Message("assistant", [call(number, "screenshot", page=number)])])
        answer = ToolResult(f"call_{number}", [Text(text), *picture])
        repo.commit([Message("tool", [answer])])
    assert not repo.compression.dedupe().changed


def results_in_one_message(repo: Repo) -> list[str]:
    """Append two reads, the same reads in one message, and more turns; return the lines of the second file."""
    chance = random.Random(1)
    first, second = text_of(chance, 60), text_of(chance, 300)
    play(
        repo,
        ("Read", {"file_path": "/w/a.py"}, numbered(first)),
        ("Read", {"file_path": "/w/b.py"}, numbered(second)),
    )
    calls = [call(8, "Read", file_path="/w/a.py"), call(9, "Read", file_path="/w/b.py")]
    repo.commit([Message("assistant", calls)])
    repo.commit([Message("tool", [result(8, numbered(first)), result(9, numbered(second))])])
    for number in range(3):
        repo.append("user", f"Go on with part {number}.")
        repo.append("assistant", "It is done.")
    return second


def test_a_reference_says_which_of_several_results_it_means(repo: Repo) -> None:
    results_in_one_message(repo)
    repo.compression.dedupe()
    assert "(result 1 of 2, a.py)]" in shown(repo)
    assert "(result 2 of 2, b.py)]" in shown(repo)
    assert "is cut" not in shown(repo)


def test_a_reference_says_that_what_it_names_is_cut(repo: Repo) -> None:
    results_in_one_message(repo)
    whole = repo.compile().token_count
    done = repo.compression.trim(whole // 4, keep_last=0)
    holder = next(m for m in repo.compile().messages if m.role == "tool" and len(m.parts) == 2)
    address = holder.address.short(8)
    said = f"{address} (result 2 of 2, b.py), which is cut: trace expand {address}]"
    assert said in shown(repo)
    assert done.after == repo.compile().token_count
