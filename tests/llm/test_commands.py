"""`trace model` and `trace config model`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_json_shapes import documented
from tests.llm.conftest import KEY
from tests.llm.support.fault_server import FaultServer, answer, pieces_of, said, stream
from tests.support.command_line import Outcome, Run, Trace
from trace_store.base.environment import Environment

Serving = Callable[..., FaultServer]


@pytest.fixture
def user(trace: Trace, tmp_path: Path) -> Run:
    """Run a command as a user with settings of their own, and these variables."""

    def run(*words: str, stdin: bytes = b"", terminal: bool = False, **variables: str) -> Outcome:
        environment = Environment(
            author="Ada",
            discovery=False,
            config_dir=str(tmp_path / "config"),
            secrets=variables.items(),
        )
        return trace(*words, stdin=stdin, terminal=terminal, environment=environment)

    return run


def test_what_is_hinted_at_leads_somewhere(user: Run) -> None:
    assert "`trace config model` lists the settings" in user("model").err
    outcome = user("config", "model")
    assert (outcome.code, outcome.text) == (0, "")
    assert "nothing is set; settings: model.api, model.url, model.name" in outcome.err
    assert (user("config", "model", "--json").text, user("config", "model", "--json").err) == (
        "{}\n",
        "",
    )
    nowhere = {"TRACE_MODEL": "tiny", "TRACE_MODEL_URL": "http://127.0.0.1:1/v1"}
    outcome = user("model", "test", **nowhere)
    assert outcome.code == 16
    assert "trace model test" not in outcome.err
    assert "http://127.0.0.1:1/v1 was asked" in outcome.err
    assert "`trace config model.url URL`" in outcome.err


def test_a_model_is_set_up_and_tried(user: Run, serving: Serving) -> None:
    server = serving(answer(said("ready")))
    assert user("config", "model.name", "tiny").code == 0
    assert user("config", "model.url", server.url).code == 0
    assert user("config", "model.key", "-", stdin=f"{KEY}\n".encode()).code == 0
    assert user("config", "model").lines == [
        "model.name = tiny",
        f"model.url = {server.url}",
        "model.key = set",
    ]
    assert user("config", "model.key").lines == ["set"]
    assert json.loads(user("config", "model", "--json").text)["model.key"] is True
    shown = json.loads(user("model", "--json").text)
    assert (shown["name"], shown["url"], shown["key_from"]) == ("tiny", server.url, "your settings")
    assert "key from  your settings" in user("model").lines
    outcome = user("model", "test")
    assert (outcome.code, outcome.text) == (0, "ready\n")
    assert "tiny-1 answered in" in outcome.err
    assert "12 tokens in, 3 out" in outcome.err
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    record = json.loads(user("model", "test", "Well?", "--json").text)
    assert (record["text"], record["usage"]["output_total"]) == ("ready", 3)
    assert server.requests[1].fields["messages"] == [{"role": "user", "content": "Well?"}]
    assert user("config", "model.key", "--unset").code == 0
    assert "key" not in user("config", "model").text


def test_the_answer_is_printed_while_it_is_made(user: Run, serving: Serving) -> None:
    server = serving(stream(*pieces_of("re", "ad", "y\x1b[2J")))
    outcome = user(
        *("model", "test", "--stream"), TRACE_MODEL="m", TRACE_MODEL_URL=server.url, terminal=True
    )
    assert outcome.text == "ready\\x1b[2J\n"
    assert server.requests[0].fields["stream"] is True


@pytest.mark.parametrize(
    ("status", "told", "code", "message"),
    [
        ("401 No", {"error": {"message": f"bad key {KEY}"}}, 16, "rejected the key (401)"),
        ("404 No", {"error": {"message": "no model m"}}, 16, "rejected the request (404)"),
        ("302 Found", {}, 16, "redirects (302), and keys are not sent elsewhere"),
        ("200 OK", {"choices": []}, 16, "the model's answer has no usable choices"),
    ],
)
def test_failures(
    user: Run,
    serving: Serving,
    status: str,
    told: object,
    code: int,
    message: str,
) -> None:
    server = serving(answer(told, status=status))
    outcome = user(
        "model", "test", TRACE_MODEL="m", TRACE_MODEL_URL=server.url, TRACE_MODEL_KEY=KEY
    )
    assert outcome.code == code
    assert message in outcome.err
    assert outcome.err.splitlines()[-1].startswith("hint: ")
    assert KEY not in outcome.err


def test_without_a_model(user: Run) -> None:
    for words in (["model"], ["model", "test"]):
        outcome = user(*words)
        assert outcome.code == 6
        assert "no model is configured" in outcome.err
        assert "trace config model.name" in outcome.err


def test_a_key_does_not_stand_in_a_command(user: Run) -> None:
    outcome = user("config", "model.key", KEY)
    assert outcome.code == 2
    assert KEY not in outcome.err
    assert user("config", "model", "tiny").code == 2
    assert user("config", "model.colour").code == 4
    assert user("config", "model.colour", "red").code == 2


def test_a_repository_has_no_say(user: Run, tmp_path: Path) -> None:
    assert user("init", "-q").code == 0
    config = tmp_path / ".trace" / "config"
    own = '\n[model]\nname = "theirs"\nurl = "https://evil.example.org"\n'
    config.write_text(config.read_text(encoding="utf-8") + own, encoding="utf-8")
    (tmp_path / ".env").write_text("TRACE_MODEL=theirs\n", encoding="utf-8")
    assert user("status").code == 0
    assert user("model").code == 6
    assert user("config", "model").text == ""


def test_httpx_is_imported_for_a_request() -> None:
    script = (
        "import sys\nfrom trace_store.llm.http_model import HttpModel\n"
        "from trace_store.llm.settings import ModelSettings\n"
        "HttpModel(ModelSettings('m', url='http://127.0.0.1:9/v1'))\n"
        "assert 'httpx' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_json_has_the_keys_that_are_documented(user: Run, serving: Serving) -> None:
    server = serving(answer(said()))
    for words in (["model"], ["model", "test"]):
        outcome = user(*words, "--json", TRACE_MODEL="m", TRACE_MODEL_URL=server.url)
        (keys,) = documented(" ".join(words))
        assert list(json.loads(outcome.text)) == keys
