"""Accepted and refused input of `trace commit`, `init` and `write-commit`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_bad_input import refused, state
from tests.support.command_line import Run, Trace
from trace_cli.runtime import Invocation
from trace_store.base.environment import Environment
from trace_store.errors import ErrorCode, TraceError


def messages(ok: Run) -> list[dict[str, Any]]:
    document = json.loads(ok("compile", "--format", "json").out)
    found: list[dict[str, Any]] = document["messages"]
    return found


def test_each_result_answers_its_own_call(ok: Run) -> None:
    words = ["--call-id", "1", "--tool", "a", "--user", "so?", "--tool", "b", "--call-id", "2"]
    ok("commit", *words)
    parts = [each["parts"][0] for each in messages(ok)]
    assert [(part.get("call_id"), part["type"]) for part in parts] == [
        ("1", "tool_result"),
        (None, "text"),
        ("2", "tool_result"),
    ]
    ok("commit", "--tool", "no call is named")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tool", "a", "--tool", "b", "--call-id", "1"], "1 call and 2 results"),
        (["--tool", "a", "--call-id", "1", "--call-id", "2"], "2 calls and 1 result"),
        (["--user", "a", "--call-id", "1"], "1 call and 0 results"),
        (["--user", "-", "--assistant", "-"], "only one option"),
        (["-", "--user", "-"], "only one option"),
        (["--user", "-", "-F", "-"], "only one option"),
        (["--user", "-", "--jsonl"], "only one option"),
        (["--branch", "HEAD", "x"], "HEAD"),
    ],
)
def test_calls_that_cannot_be_meant(
    repository: Trace, tmp_path: Path, words: list[str], said: str
) -> None:
    before = state(tmp_path / ".trace")
    refused(repository("commit", *words, stdin=b"text"), 2, said)
    assert state(tmp_path / ".trace") == before


def test_a_role_option_reads_standard_input(ok: Run, tmp_path: Path) -> None:
    (tmp_path / "answer.md").write_text("from a file")
    ok("commit", "--user", "-", "--role", "assistant", "-F", "answer.md", stdin=b"from a pipe\n")
    assert [(each["role"], each["parts"][0]["text"]) for each in messages(ok)] == [
        ("user", "from a pipe"),
        ("assistant", "from a file"),
    ]


def test_quiet_is_stronger_than_json(ok: Run) -> None:
    assert ok("init", "other", "-q", "--json").out == b""
    assert ok("commit", "--user", "x", "-q", "--result-json") == (0, b"", "")
    assert ok("pin", "HEAD.0", "-q", "--json") == (0, b"", "")


def test_init_goes_where_it_is_told(trace: Trace, tmp_path: Path) -> None:
    outcome = trace("--dir", "deep/store", "init")
    assert outcome.text == f"created an empty repository in {tmp_path / 'deep' / 'store'}\n"
    assert trace("--dir", "deep/store", "commit", "--user", "x").code == 0
    here = Environment(author="Ada", discovery=False, trace_dir=str(tmp_path / "named"))
    assert json.loads(trace("init", "--json", environment=here).out) == {
        "directory": str(tmp_path / "named")
    }
    assert trace("status", environment=here).code == 0
    assert trace("init", "project", environment=here).code == 0
    assert (tmp_path / "project" / ".trace" / "config").exists()
    assert trace("init", environment=here).code == 5
    refused(trace("--dir", "x", "init", "project"), 2, "--dir")
    assert not (tmp_path / ".trace").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "named", "project"]


MISSING = "ab" * 32
HERE = {"$bin": ""}


@pytest.fixture
def blob(ok: Run) -> str:
    return ok("hash-object", "-w", "--stdin", stdin=b"hello").text.strip()


def message(blob: str, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "kind": "dialogue", "parts": [{"type": "text", "blob": blob}], **fields}


def test_what_applies_is_written(ok: Run, blob: str) -> None:
    first = ok("write-commit", stdin=encoded([["add", {"messages": [message(blob)]}]])).text
    born = {"$bin": first[:32]}
    operations = [["edit", {"target": [born, 0], "parts": message(blob)["parts"]}]]
    assert ok("write-commit", stdin=encoded(operations, parents=[first.strip()])).code == 0
    side = ok("write-commit", stdin=encoded([["add", {"messages": [message(blob)]}]], time=2))
    parents = [first.strip(), side.text.strip()]
    carried = message(blob, born=[{"$bin": parents[1][:32]}, 0])
    ops = [["add", {"messages": [carried]}]]
    assert ok("write-commit", stdin=encoded(ops, parents=parents)).code == 0


def encoded(operations: Any, **fields: Any) -> bytes:
    return json.dumps({"author": "Ada", "time": 1, "ops": operations, **fields}).encode()


@pytest.mark.parametrize(
    ("operations", "code", "said"),
    [
        ([["levitate", {}]], ErrorCode.INVALID_OPERATION, "levitate"),
        ([["add", {}]], ErrorCode.INVALID_OPERATION, "messages"),
        ([["add", {"messages": 5}]], ErrorCode.INVALID_OPERATION, "messages"),
        ([["add"]], ErrorCode.INVALID_OPERATION, ""),
        (["add"], ErrorCode.INVALID_OPERATION, ""),
        ("add", ErrorCode.INVALID_OPERATION, ""),
        ([["add", {"messages": [{"role": "robot"}]}]], ErrorCode.INVALID_OPERATION, "messages"),
        ([["remove", {}]], ErrorCode.INVALID_OPERATION, "targets"),
        ([["remove", {"targets": [[HERE, 0]]}]], ErrorCode.INVALID_OPERATION, "this.0"),
        ([["move", {"targets": [[HERE, 3]]}]], ErrorCode.INVALID_OPERATION, "this.3"),
        ([["include", {"parent": 1}]], ErrorCode.INVALID_OPERATION, "include"),
    ],
)
def test_operations_that_cannot_be(
    repository: Trace, tmp_path: Path, operations: Any, code: str, said: str
) -> None:
    before = state(tmp_path / ".trace")
    outcome = repository("write-commit", stdin=encoded(operations))
    refused(outcome, 2, said)
    assert state(tmp_path / ".trace") == before
    assert repository("fsck").code == 0
    assert code_of(encoded(operations)) == code


def code_of(stdin: bytes) -> str:
    """Return the code of the error that `write-commit` raises."""
    import io

    from trace_cli.plumbing.write_commit import run

    with pytest.raises(TraceError) as caught:
        run(
            Invocation(environment=Environment(discovery=False), input=io.BytesIO(stdin)),
            ref=None,
            file=None,
        )
    return caught.value.code


def test_messages_and_fields_that_cannot_be(
    repository: Trace, ok: Run, tmp_path: Path, blob: str
) -> None:
    parent = ok("commit", "--user", "x").text.split()[0]
    before = state(tmp_path / ".trace")
    robot, strange = message(blob, role="robot"), message(blob)
    strange["parts"][0]["type"] = "smell"
    bare = message(blob, parts=[{"type": "text"}])
    for wrong, said in ((robot, "robot"), (strange, "smell"), (bare, "blob")):
        given = encoded([["add", {"messages": [wrong]}]], parents=[parent])
        refused(repository("write-commit", "--update", "HEAD", stdin=given), 2, said)
        assert code_of(given) == ErrorCode.INVALID_MESSAGE
    given = encoded([], subject="typo")
    refused(repository("write-commit", stdin=given), 2, "subject")
    assert code_of(given) == ErrorCode.INVALID_INPUT
    refused(repository("write-commit", stdin=encoded([], time="now")), 2, "integer")
    beyond = [["pin", {"targets": [[parent, 0]]}]], [["remove", {"targets": [[parent, 1]]}]]
    for operations in beyond:
        refused(repository("write-commit", stdin=encoded(operations, parents=[parent])), 2)
    refused(repository("write-commit", stdin=encoded([], parents=[MISSING])), 4, MISSING)
    assert state(tmp_path / ".trace") == before


def test_a_result_without_its_call_is_said(ok: Run) -> None:
    note = "note: there is no call 'nope'; requests leave its result out\n"
    assert ok("commit", "--tool", "42", "--call-id", "nope").err == note
    assert ok("commit", "--tool", "42", "--call-id", "nope", "-q").err == ""
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    asked = json.dumps({"role": "assistant", "content": None, "tool_calls": [call]})
    ok("commit", "--json", stdin=asked.encode())
    assert ok("commit", "--tool", "42", "--call-id", "c1").err == ""
