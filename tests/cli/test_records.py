"""Threads that frameworks store, in the commands that show sessions."""

from __future__ import annotations

import json
import os
import time

import pytest

from tests.support.command_line import Run, Trace, first
from trace_store.history.records import Records, record_name
from trace_store.repo.repository import Repo

THREAD = "Ada's trip"


def write(repo: Repo, name: str, thread: str, text: str) -> None:
    draft = Records(repo.writer).draft(name)
    draft.set("state", "json", b"{}")
    draft.messages.append("user", text)
    time.sleep(0.002)  # the times of two commits differ
    draft.write({"langgraph.thread": thread})


@pytest.fixture
def thread(ok: Run) -> Run:
    """Run a command beside a thread with a fork, and another thread."""
    ok("commit", "--user", "Fix the build")
    with Repo.open(os.getcwd()) as repo:
        write(repo, record_name("langgraph", THREAD, "root", "main"), THREAD, "Plan the trip")
        write(repo, record_name("langgraph", THREAD, "root", "fork-1"), THREAD, "By train")
        write(repo, record_name("example", "support-17", "main"), "", "Hello")
        other = Records(repo.writer).draft(record_name("langgraph", THREAD, "root", "writes"))
        other.set("writes", "json", b"[]")
        other.write()
    return ok


def test_threads_are_listed_and_filtered_by_their_framework(thread: Run) -> None:
    found = [
        json.loads(line) for line in thread("sessions", "--agent", "langgraph", "--json").lines
    ]
    titles = {(each["title"], each["prompt"], each["message_count"]) for each in found}
    assert titles == {(THREAD, "Plan the trip", 1), (f"{THREAD} (fork-1)", "By train", 1)}
    listed = thread("sessions").text
    assert "Hello" in listed
    assert "writes" not in listed  # it holds state and no message
    assert not thread("sessions", "--agent", "langgraph", "--since", "2100-01-01").lines


def test_a_thread_is_opened_by_its_id_and_its_messages_by_their_address(thread: Run) -> None:
    shown = thread("view", THREAD).text
    assert shown.startswith(f"{THREAD} (fork-1)\nagent:    langgraph\n")
    assert "By train" in shown  # the fork is the latest state
    with Repo.open(os.getcwd()) as repo:
        write(repo, record_name("langgraph", THREAD, "root", "main"), THREAD, "By boat")
    assert "By boat" in thread("view", THREAD).text
    fork = thread("view", f"{THREAD} (fork-1)").lines
    address = next(line for line in fork if "  user  " in line).split()[0]
    assert "By train" in thread("view", address).text


def test_each_verb_takes_the_names_that_the_list_of_sessions_shows(
    thread: Run, trace: Trace
) -> None:
    with Repo.open(os.getcwd()) as repo:
        for name in ("fork-0123456789abcdef", "fork-0123456789abcdee"):
            write(repo, record_name("langgraph", "user-42", "root", name), "user-42", name)
    listed = [line.split()[0] for line in thread("sessions").lines[1:]]
    assert len({*listed}) == len(listed) == 6
    names = [each for each in listed if "/" in each]
    for name in (*names, THREAD, "user-42", "langgraph/user-42/root/fork-0123456789abcdee"):
        assert len(thread("log", name).lines) == 1
        assert thread("diff", name, "main").code == 0
        for verb in ("view", "show", "compile", "reflog", "rev-parse"):
            assert thread(verb, name).text
    refused = trace("log", "user-4")
    assert refused.code == 2
    assert "fork-0123456789abcdef" in refused.err
    assert "fork-0123456789abcdee" in thread("search", "fork*", "--session", "user-42").text


def test_branches_and_tags_leave_threads_out(thread: Run) -> None:
    assert len(thread("branch").lines) == 1
    assert not thread("tag").lines


def test_the_status_names_the_thread_worked_on_last(thread: Run) -> None:
    status = thread("status")
    assert f"worked on last: {THREAD} (fork-1); `trace view refs/records/langgraph/" in status.text
    assert "4 records of frameworks; `trace sessions` lists their threads" in status.text
    assert first(thread("status", "--json"))["record_count"] == 4
    with Repo.open(os.getcwd()) as repo:
        state = Records(repo.writer).draft(record_name("langgraph", "user-42", "root", "main"))
        state.set("state", "json", b"{}")
        time.sleep(0.002)
        state.write({"langgraph.thread": "user-42"})
    assert "worked on last: user-42; " in thread("status").text  # though it holds no message
    thread("commit", "--user", "Later")
    assert "worked on last" not in thread("status").text


def test_a_thread_is_renamed_and_deleted_as_a_session_is(thread: Run) -> None:
    thread("sessions", "rename", THREAD, "Vienna")
    assert thread("sessions", "delete", "Vienna").text == "deleted 1 record\n"
    assert "Vienna" not in thread("sessions").text
    thread("undo")
    assert "By train" in thread("view", "Vienna").text
