"""`trace ls-parts` against the lossless rendering of an unchanged context."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Outcome, Run
from trace_cli.porcelain.demo import SAMPLE
from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.objects.codec import MAXIMUM_BLOB_BYTES
from trace_store.objects.commit import Commit
from trace_store.objects.content import ObjectCollector
from trace_store.objects.message import Message, store_message
from trace_store.objects.operations import add
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.store.store import Store


@pytest.fixture
def sample(ok: Run, tmp_path: Path) -> Run:
    shutil.copyfile(SAMPLE, tmp_path / "session.jsonl")
    ok("import", "session.jsonl", "-q")
    return ok


def rows(outcome: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome.lines]


def rendered(ok: Run) -> list[tuple[str, str, str, str | None, str]]:
    """Return address, role, type, tool and text of each content in the lossless form."""
    found: list[tuple[str, str, str, str | None, str]] = []
    tools: dict[str, str] = {}
    for message in json.loads(ok("compile", "--format", "json").out)["messages"]:
        for part in message["parts"]:
            head = (message["address"], message["role"], part["type"])
            if part["type"] == "tool_call":
                tools[part["id"]] = part["name"]
                found.append((*head, part["name"], part["arguments"]))
            elif part["type"] == "tool_result":
                tool = tools[part["call_id"]]
                found += [(*head, tool, inner["text"]) for inner in part["content"]]
            else:
                found.append((*head, None, part["text"]))
    return found


def test_parts_are_those_of_the_messages(sample: Run) -> None:
    parts = rows(sample("ls-parts", "--json"))
    columns = ("address", "role", "type", "tool", "text")
    assert [tuple(row[name] for name in columns) for row in parts] == rendered(sample)
    assert all(row["size"] == len(row["text"].encode()) for row in parts)
    lines = sample("ls-parts").lines
    assert lines == [
        f"{row['address']} {row['role']} {row['type']} {row['size']} {row['id']} {row['tool'] or '-'}"
        for row in parts
    ]
    marked = sample("ls-parts", "--format", "%(error)%(address)").lines
    failed = [row["address"] for row in parts if row["error"]]
    assert [line[len("error") :] for line in marked if line.startswith("error")] == failed
    assert len(failed) == 2


def test_a_range_knows_the_tools_of_what_came_before(sample: Run) -> None:
    whole = sample("ls-parts").lines
    for number in range(1, 16):
        later = sample("ls-parts", f"HEAD~{number}..").lines
        assert later == whole[-len(later) :]


def test_what_was_said_stays_listed(sample: Run) -> None:
    before = sample("ls-parts").lines
    sample("edit", "HEAD~3.0", "reworded", "-q")
    sample("remove", "HEAD~5.0", "-q")
    assert sample("ls-parts").lines == before


def write(folder: Path, parts: list[Part]) -> None:
    contents = ObjectCollector()
    message = store_message(Message("assistant", parts), contents.put)
    commit = Commit([], "ada", 1, [add([message])]).encode()
    oid = contents.put_object(commit)
    with Store.open(str(folder / ".trace")) as store:
        edit = RefEdit("refs/heads/main", ObjectId(oid), ANY)
        store.transact(lambda refs: Transaction(contents.objects, [edit], "test"))
    assert hash_object(commit) == oid


def test_every_type_of_part(ok: Run, tmp_path: Path) -> None:
    write(
        tmp_path,
        [
            Reasoning("thinking", signature="c2lnbmVk"),
            Text("hi"),
            Image("image/png", b"\x89PNG\xff"),
            Image(url="https://example.org/x.png"),
            ToolCall("1", "two words", "{}"),
            ToolResult("1", [Text("one"), Image("image/png", b"\xff")], is_error=True),
            ToolResult("unknown", "two"),
            Opaque("vendor", b"\xfe"),
        ],
    )
    listed = ok("ls-parts", "--format", "%(type) %(objectsize) %(tokens) %(error) %(tool:dash)")
    assert listed.lines == [
        "reasoning 8 1  -",
        "text 2 1  -",
        "image 5 -  -",
        "image 25 -  -",
        "tool_call 2 1  two words",
        "tool_result 3 1 error two words",
        "tool_result 1 - error two words",
        "tool_result 3 1  -",
        "opaque 1 -  -",
    ]
    found = rows(ok("ls-parts", "--json"))
    assert found[2]["base64"] == "iVBOR/8="
    assert found[3]["text"] == "https://example.org/x.png"
    again = ok("ls-parts", "--format", "%(tokens)").lines
    assert again == [line.split(" ")[2] for line in listed.lines]


def test_content_that_is_stored_in_pieces(ok: Run, tmp_path: Path) -> None:
    long = "x" * (MAXIMUM_BLOB_BYTES + 5)
    write(tmp_path, [Text(long)])
    assert ok("ls-parts").lines[0].split()[3] == str(len(long))
    assert rows(ok("ls-parts", "--json"))[0]["text"] == long
