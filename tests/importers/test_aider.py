"""aider's chat history: Markdown with lines of the user, of the program and of the model."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.importers.support.sound import branches_of, imported, messages
from trace_store.base.environment import Environment
from trace_store.contracts.ref_names import FILES
from trace_store.disk.files import Disk
from trace_store.importers.formats.aider import FILE, FORMAT
from trace_store.objects.parts import Text

STARTED = "\n# aider chat started at 2025-12-03 14:43:45\n\n"
SESSION = "aider/2025-12-03T14-43-45"


def by_user(text: str) -> str:
    return "\n" + "".join(f"#### {line}  \n" for line in text.split("\n"))


def by_program(*lines: str) -> str:
    return "".join(f"> {line}  \n" for line in lines)


def by_model(text: str) -> str:
    return f"\n{text}\n\n"


def test_a_chat(tmp_path: Path) -> None:
    code = "I add it:\n\n```python\n# a comment\n> not a line of the program\n#### nor of the user\n```"
    text = (
        STARTED
        + by_program("Aider v0.86.1", "Model: gpt-4o-mini with diff edit format")
        + by_user("/add a.py")
        + by_program("Added a.py to the chat")
        + by_user("add a\nfunction")
        + by_model(code)
        + by_program("Tokens: 2.4k sent, 104 received.")
        + by_user("/ask why?")
        + by_model("Because.")
    )
    store, report = imported(tmp_path, FILE, text.encode())
    assert report.format == "aider"
    found = messages(store, SESSION)
    said = [
        (each.role, part.text) for each in found for part in each.parts if isinstance(part, Text)
    ]
    assert said == [
        ("user", "add a\nfunction"),
        ("assistant", code),
        ("user", "/ask why?"),
        ("assistant", "Because."),
    ]
    assert {each.model for each in found if each.role == "assistant"} == {"gpt-4o-mini"}
    assert report.records["user", "message"] == 3
    assert report.records["program", "source"] == 3


@pytest.mark.parametrize("seed", range(100))
def test_every_chat_of_a_file(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    text, chats = "", []
    for number in range(chosen.randint(1, 4)):
        text += f"\n# aider chat started at 2025-01-0{number + 1} 10:00:00\n\n" + by_program(
            "Aider v0.86.1"
        )
        chat = []
        for turn in range(chosen.randint(1, 4)):
            if chosen.random() < 0.3:
                # What is said twice in a row is two messages.
                text += by_user(f"first {number}.{turn}")
                chat += [("user", f"first {number}.{turn}")]
            asked = f"ask {number}.{turn}" + chosen.choice(["", "\nand more", "\n\n> quoted"])
            answer = f"answer {number}.{turn}" + chosen.choice(
                ["", "\n\n- a\n- b", "\n# heading", "\n日本語"]
            )
            text += by_user(asked) + by_model(answer) + by_program("Tokens: 1k sent, 2 received.")
            chat += [("user", asked), ("assistant", answer)]
        chats.append(chat)
    if chosen.random() < 0.3:
        text = text.replace("\n", "\r\n")
    store, report = imported(tmp_path, FILE, text.encode())
    first = "aider/2025-01-01T10-00-00"
    others = [f"{first}/conversations/{number}" for number in range(2, len(chats) + 1)]
    assert branches_of(store) == {first, *others}
    for branch, chat in zip([first, *others], chats, strict=True):
        found = messages(store, branch)
        said = [
            (each.role, part.text.replace("\r\n", "\n"))
            for each in found
            for part in each.parts
            if isinstance(part, Text)
        ]
        assert said == chat
    assert sum(n for (_, what), n in report.records.items() if what == "message") == sum(
        map(len, chats)
    )


def test_a_cleared_context_is_a_chat_of_its_own(tmp_path: Path) -> None:
    text = STARTED + by_user("one") + by_model("two") + by_user("/clear") + by_user("three")
    store, _ = imported(tmp_path, FILE, text.encode())
    (third,) = messages(store, f"{SESSION}/conversations/2")
    assert list(third.parts) == [Text("three")]
    assert len(messages(store, SESSION)) == 2


def test_text_before_the_first_chat(tmp_path: Path) -> None:
    text = by_user("early") + by_model("answer") + STARTED + by_user("hi")
    store, _ = imported(tmp_path, "notes.chat.history.md", text.encode())
    assert {name.count("/") for name in branches_of(store)} == {1, 3}
    assert [name for name, _ in store.refs.iterate(FILES)] != []


def test_detection(tmp_path: Path) -> None:
    assert FORMAT.sniff(STARTED.encode())
    assert FORMAT.sniff(("notes first\n" + STARTED + by_user("hi")).encode())
    assert not FORMAT.sniff(("Its files begin with\n" + STARTED).encode())
    assert FORMAT.finds(Environment(), str(tmp_path), Disk()) == []
    (tmp_path / FILE).write_text(STARTED)
    assert FORMAT.finds(Environment(), str(tmp_path), Disk()) == [str(tmp_path / FILE)]
