"""Edits of parts, of one result or of all; pairs of call and result stay together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.command_line import Run, Trace

MESSAGES = [
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": id_, "name": "run", "input": {}} for id_ in ("c1", "c2")],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
            {"type": "tool_result", "tool_use_id": "c2", "content": "two"},
        ],
    },
]  # fmt: skip


@pytest.fixture
def said(ok: Run) -> str:
    """Return the id of a commit with two calls and their results."""
    ok("commit", "-q", "--json", stdin=json.dumps(MESSAGES).encode())
    return ok("rev-parse", "HEAD").text.strip()[:12]


def shown(ok: Run, address: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ok("show", address, "--json").text)
    return found


def results(ok: Run, address: str) -> list[str]:
    return [part["content"][0]["text"] for part in shown(ok, address)["parts"]]


@pytest.mark.parametrize("whole", [True, False])
def test_parts_as_show_prints_them_are_taken(ok: Run, said: str, whole: bool) -> None:
    before = shown(ok, f"{said}.2")
    given_parts = before["parts"]
    given = before if whole else given_parts
    given_parts[1]["content"][0]["text"] = "zwei"
    ok("edit", f"{said}.2", "--parts", "-", stdin=json.dumps(given).encode())
    assert shown(ok, f"{said}.2")["parts"] == given_parts
    assert b"not shown" not in ok("compile", "-f", "anthropic").out


def test_parts_that_are_none_are_refused_by_name(ok: Run, repository: Trace, said: str) -> None:
    refused = repository("edit", f"{said}.0", "--parts", '[{"type":"txt","text":"x"}]')
    assert refused.code == 2
    assert "unknown type of part 'txt'" in refused.err


def test_a_text_replaces_every_result_or_that_of_one_call(
    ok: Run, repository: Trace, said: str
) -> None:
    ok("edit", f"{said}.2", "--call", "c2", "short")
    assert results(ok, f"{said}.2") == ["one", "short"]
    several = repository("edit", f"{said}.2", "all")
    assert (several.code, "c1, c2" in several.err, "--call" in several.err) == (2, True, True)
    assert results(ok, f"{said}.2") == ["one", "short"]
    assert repository("edit", f"{said}.2", "--all", "--call", "c1", "all").code == 2
    ok("edit", f"{said}.2", "--all", "all")
    assert results(ok, f"{said}.2") == ["all", "all"]
    refused = repository("edit", f"{said}.2", "--call", "c9", "x")
    assert refused.code == 2
    assert "c1, c2" in refused.err


@pytest.mark.parametrize(
    ("number", "parts"),
    [
        (1, [{"type": "text", "text": "no call"}]),
        (2, [{"type": "text", "text": "no result"}]),
        (2, [{"type": "tool_result", "call_id": "c1", "content": [{"type": "text", "text": "x"}]}]),
        (0, [{"type": "tool_result", "call_id": "c9", "content": [{"type": "text", "text": "x"}]}]),
    ],
)
def test_an_edit_that_tears_a_pair_needs_force(
    ok: Run, repository: Trace, said: str, number: int, parts: list[Any]
) -> None:
    before = shown(ok, f"{said}.{number}")
    words = ["edit", f"{said}.{number}", "--parts", json.dumps(parts)]
    refused = repository(*words)
    assert refused.code == 2
    assert "--force" in refused.err
    assert shown(ok, f"{said}.{number}") == before
    ok(*words, "--force")


def test_a_pinned_message_is_removed_by_force_only(ok: Run, repository: Trace, said: str) -> None:
    ok("pin", f"{said}.0")
    refused = repository("remove", f"{said}.0")
    assert refused.code == 2
    assert "--force" in refused.err
    assert "go" in ok("compile", "--table").text
    ok("remove", f"{said}.0", "--force")
    assert shown(ok, f"{said}.0")["hidden"]
    ok("restore", f"{said}.0")
    ok("normal", f"{said}.0")
    ok("remove", f"{said}.0")


def test_git_users_find_the_setting_for_the_author(repository: Trace) -> None:
    refused = repository("config", "user.email", "ada@example.org")
    assert refused.code == 4
    assert "`trace config user.name NAME` sets the author" in refused.err


def test_case_53_a_bundle_says_that_it_holds_secrets(ok: Run) -> None:
    ok("commit", "-q", "--user", "nothing to hide")
    assert "secret" not in ok("bundle", "create", "a.bundle").err
    assert json.loads(ok("bundle", "create", "b.bundle", "--json").text)["secrets"] == 0
    aws = "AKIA" + "QZ7X4M2N5P3R3T6V"
    ok("commit", "-q", "--secrets", "off", "--user", f"aws_access_key_id = {aws}")
    told = ok("bundle", "create", "c.bundle")
    assert "the bundle holds 1 secret; `trace secrets scan`" in told.err
    assert json.loads(ok("bundle", "create", "d.bundle", "--json").text)["secrets"] == 1
    assert aws not in told.err
