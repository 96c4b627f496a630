"""What each of the three forms sends, and how its answers are read; nothing leaves the process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from trace_store import errors, llm
from trace_store.llm.http import events

PROMPT = llm.contract.Prompt(
    (("user", "One?"), ("assistant", "One."), ("user", "Two?")), "Count.", maximum_tokens=9
)
DOWN = {"code": "server_error", "message": "down"}
REFUSAL = {"type": "refusal", "refusal": "No"}
KEY = "sk-acme-7Qm2Vx9TnR4bLk8Zw3Yp6"


def model(
    api: str,
    handler: Callable[[httpx.Request], httpx.Response],
    url: str = "https://example.org/v1",
) -> llm.http_model.HttpModel:
    kept = llm.settings.ModelSettings("m-1", api, url, llm.settings.Secret(KEY), attempts=1)
    return llm.http_model.HttpModel(kept, transport=httpx.MockTransport(handler))


def asked(
    api: str, answer: object, url: str = "https://example.org/v1"
) -> tuple[httpx.Request, Any]:
    """Return the one request that a prompt makes, and its completion."""
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json=answer)

    found = model(api, handler, url)(PROMPT)
    return seen[0], found


def heard(
    api: str, *sent: dict[str, Any], end: str = ""
) -> tuple[list[str], llm.contract.Completion]:
    """Return the pieces of a streamed answer, and all of it."""
    body = "".join(f"event: {e.get('type', 'x')}\ndata: {json.dumps(e)}\n\n" for e in sent) + end

    def handler(request: httpx.Request) -> httpx.Response:
        assert json.loads(request.content)["stream"] is True
        return httpx.Response(
            200, content=body.encode(), headers={"content-type": "text/event-stream"}
        )

    pieces: list[str] = []
    return pieces, model(api, handler)(PROMPT, heard=pieces.append)


def counts(found: llm.contract.Completion) -> tuple[int, int, int, int, int]:
    usage = found.usage
    assert usage is not None
    return (
        *(usage.input_total, usage.cache_read, usage.cache_write),
        *(usage.output_total, usage.reasoning),
    )


def test_chat() -> None:
    request, found = asked(
        "chat",
        {
            "model": "m-1-0401",
            "choices": [{"message": {"content": "Two."}, "finish_reason": "length"}],
            "usage": {
                "prompt_tokens": 20,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
        },
    )
    assert str(request.url) == "https://example.org/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(request.content) == {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "Count."},
            {"role": "user", "content": "One?"},
            {"role": "assistant", "content": "One."},
            {"role": "user", "content": "Two?"},
        ],
        "max_tokens": 9,
    }
    assert (found.text, found.model, found.stop) == ("Two.", "m-1-0401", "length")
    assert counts(found) == (20, 8, 0, 5, 2)


def test_the_vendor_of_chat_wants_another_name_for_the_limit() -> None:
    answer = {"choices": [{"message": {"content": [{"type": "text", "text": "Two."}]}}]}
    request, found = asked("chat", answer, "https://api.openai.com/v1")
    assert json.loads(request.content)["max_completion_tokens"] == 9
    assert found.text == "Two."


def test_responses() -> None:
    request, found = asked(
        "responses",
        {
            "status": "completed",
            "model": "m-1-0401",
            "output": [
                {"type": "reasoning", "summary": []},
                {"type": "message", "content": [{"type": "output_text", "text": "Two."}]},
            ],
            "usage": {
                "input_tokens": 20,
                "input_tokens_details": {"cached_tokens": 8},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 2},
                "total_tokens": 25,
            },
            "error": None,
        },
    )
    assert str(request.url) == "https://example.org/v1/responses"
    fields = json.loads(request.content)
    assert (fields["instructions"], fields["max_output_tokens"]) == ("Count.", 9)
    assert fields["store"] is False
    assert [each["role"] for each in fields["input"]] == ["user", "assistant", "user"]
    assert (found.text, found.model) == ("Two.", "m-1-0401")
    assert counts(found) == (20, 8, 0, 5, 2)


@pytest.mark.parametrize("url", ["https://example.org", "https://example.org/v1"])
def test_anthropic(url: str) -> None:
    request, found = asked(
        "anthropic",
        {
            "type": "message",
            "model": "m-1-0401",
            "content": [{"type": "thinking", "thinking": "…"}, {"type": "text", "text": "Two."}],
            "stop_reason": "max_tokens",
            "usage": {
                "input_tokens": 10,
                "cache_read_input_tokens": 8,
                "cache_creation_input_tokens": 2,
                "output_tokens": 5,
            },
        },
        url,
    )
    assert str(request.url) == "https://example.org/v1/messages"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers
    fields = json.loads(request.content)
    assert (fields["system"], fields["max_tokens"], len(fields["messages"])) == ("Count.", 9, 3)
    assert (found.text, found.stop) == ("Two.", "length")
    assert counts(found) == (20, 8, 2, 5, 0)


def test_a_responses_stream() -> None:
    end = {
        "status": "completed",
        "model": "m-1",
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "Two."}]},
        ],
        "usage": {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25},
    }
    pieces, found = heard(
        "responses",
        {"type": "response.created", "response": {"status": "in_progress"}},
        {"type": "response.output_text.delta", "delta": "Tw"},
        {"type": "response.output_text.delta", "delta": "o."},
        {"type": "response.completed", "response": end},
    )
    assert (pieces, found.text) == (["Tw", "o."], "Two.")
    assert counts(found) == (20, 0, 0, 5, 0)


def test_an_anthropic_stream() -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 8, "output_tokens": 1}
    pieces, found = heard(
        "anthropic",
        {"type": "message_start", "message": {"model": "m-1", "usage": usage}},
        {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "…"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Two."}},
        {"type": "content_block_stop"},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    )
    assert (pieces, found.text, found.model, found.stop) == (["Two."], "Two.", "m-1", "done")
    assert counts(found) == (18, 8, 0, 5, 0)


@pytest.mark.parametrize(
    ("api", "sent"),
    [
        ("responses", {"type": "response.failed", "response": {"status": "failed", "error": DOWN}}),
        ("responses", {"type": "error", "code": "server_error", "message": "down"}),
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
        ("chat", {"error": {"type": "server_error", "message": "down"}}),
    ],
)  # fmt: skip
def test_a_stream_that_tells_of_a_failing_server(api: str, sent: dict[str, Any]) -> None:
    with pytest.raises(errors.ModelUnreachableError, match=r"busy|down") as raised:
        heard(api, sent)
    assert raised.value.retryable is True


@pytest.mark.parametrize(
    ("api", "answer"),
    [
        ("responses", {"status": "completed", "output": [{"type": "message", "content": [REFUSAL]}]}),
        ("responses", {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}),
        ("anthropic", {"type": "message", "content": [], "stop_reason": "refusal"}),
        ("chat", {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}),
    ],
)  # fmt: skip
def test_refusals(api: str, answer: object) -> None:
    with pytest.raises(errors.ModelRefusedError) as raised:
        asked(api, answer)
    assert (raised.value.reason, raised.value.code) == ("content", "model-refused")


@pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize(
    "answer",
    [
        *({}, {"id": 1}, {"content": None}, {"type": "message", "content": "text"}),
        *({"type": "message", "content": [3]}, {"status": "completed", "output": "x"}),
        *({"status": "completed", "output": []}, {"status": "queued"}, {"choices": [None]}),
        {"choices": [{"message": {"content": ["x"]}}]},
    ],
)
def test_answers_of_another_shape(api: str, answer: object) -> None:
    with pytest.raises(errors.ModelNonsenseError):
        asked(api, answer)


def test_usage_that_cannot_be_understood_is_none() -> None:
    answer = {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": "many"}}
    assert asked("chat", answer)[1].usage is None


def test_any_callable_is_a_model() -> None:
    assert llm.contract.ask(lambda prompt: prompt.messages[-1][1], PROMPT).text == "Two?"
    whole = llm.contract.Completion("x", "scripted")
    assert llm.contract.ask(lambda _: whole, PROMPT) is whole
    for wrong in (None, 3, {"text": "x"}, "\ud83c"):
        with pytest.raises(errors.ModelNonsenseError):
            llm.contract.ask(lambda _, wrong=wrong: wrong, PROMPT)  # type: ignore[misc]


@settings(max_examples=examples(50))
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=9)
    ),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.data(),
)
def test_events_are_the_same_wherever_the_bytes_are_cut(
    texts: list[str], end: str, data: st.DataObject
) -> None:
    body = "".join(f": remark{end}event: x{end}data: {text}{end}{end}" for text in texts).encode()
    body += b"data: cut off" + end.encode()
    places = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    chunks = [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]
    assert list(events(chunks)) == texts


def test_an_event_of_several_lines() -> None:
    assert list(events([b"\xef\xbb\xbfdata: a\ndata:b\nid: 1\n\nretry: 5\n\n"])) == ["a\nb"]


def test_an_event_without_an_end_is_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trace_store.llm.http.MAXIMUM_EVENT_BYTES", 100)
    for body in (b"data: " + b"x" * 101, b"data: x\n" * 101):
        with pytest.raises(errors.ModelNonsenseError):
            list(events([body[place : place + 7] for place in range(0, len(body), 7)]))
