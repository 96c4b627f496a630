"""`trace web`: what it says when it cannot serve. `tests/web/test_server.py` runs it."""

from __future__ import annotations

import socket

import pytest

import trace_store.web
from tests.support.command_line import Trace


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("web --host 0.0.0.0", 2, "a token is needed"),
        ("web --host nowhere.invalid --token x", 2, "not an address"),
        ("web --port 99999", 2, "port"),
        ("--dir nothing web", 10, "no repository"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(
    trace: Trace, words: str, code: int, text: str
) -> None:
    trace("init")
    run = trace(*words.split())
    assert run.code == code
    assert text in run.err
    assert "Traceback" not in run.err


def test_a_port_in_use_and_a_missing_package_have_hints(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace("init")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        run = trace("web", "--port", str(taken.getsockname()[1]))
    assert run.code == 6
    assert "is in use" in run.err
    assert "--port 0" in run.err
    monkeypatch.setattr("trace_store.web.find_spec", lambda name: None)
    monkeypatch.delitem(vars(trace_store.web), "Server", raising=False)
    run = trace("web")
    assert run.code == 6
    assert "pip install 'trace-store[web]'" in run.err
