"""A failing model server on a real socket: retries, errors, and data never sent."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable
from email.utils import formatdate

import httpx
import pytest

from tests.llm.conftest import KEY, Waits
from tests.llm.support.fault_server import (
    Connection,
    FaultServer,
    Reply,
    answer,
    head,
    piece,
    pieces_of,
    said,
    stream,
)
from trace_store import errors, llm
from trace_store.llm import http

Serving = Callable[..., FaultServer]
Asking = Callable[..., llm.http_model.HttpModel]
PROMPT = llm.contract.Prompt((("user", "Are you ready?"),), system="Be brief.", maximum_tokens=50)
BUSY = {"error": {"type": "rate_limit_error", "message": "Slow down"}}
NOW = 1_700_000_000


def test_an_answer_with_its_usage(serving: Serving, asking: Asking) -> None:
    server = serving(answer(said("ready")))
    found = asking(server)(PROMPT)
    assert (found.text, found.model, found.stop) == ("ready", "tiny-1", "done")
    assert found.usage is not None
    assert (found.usage.input_total, found.usage.output_total) == (12, 3)
    (request,) = server.requests
    assert request.line == "POST /v1/chat/completions HTTP/1.1"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.fields["messages"][0] == {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize("size", [1, 2, 7, 100, 0])
def test_a_stream_cut_anywhere_is_heard_whole(serving: Serving, asking: Asking, size: int) -> None:
    heard: list[str] = []
    server = serving(stream(*pieces_of("gr", "ün", " 🌱"), pieces=size))
    found = asking(server)(PROMPT, heard=heard.append)
    assert "".join(heard) == found.text == "grün 🌱"
    assert found.usage is not None
    assert server.requests[0].fields["stream_options"] == {"include_usage": True}


def test_a_stream_without_its_last_mark_and_without_usage(serving: Serving, asking: Asking) -> None:
    server = serving(stream(piece("all"), piece(stop="stop"), end=b""))
    found = asking(server)(PROMPT, heard=lambda _: None)
    assert (found.text, found.usage) == ("all", None)


def test_a_server_that_does_not_stream(serving: Serving, asking: Asking) -> None:
    heard: list[str] = []
    assert asking(serving(answer(said("at once"))))(PROMPT, heard=heard.append).text == "at once"
    assert heard == ["at once"]


@pytest.mark.parametrize(
    ("header", "waited"),
    [
        ("Retry-After: 7", 7.0),
        ("Retry-After: 0.25", 0.25),
        (f"Retry-After: {formatdate(NOW + 20, usegmt=True)}", 20.0),
        (f"Retry-After: {formatdate(NOW - 20, usegmt=True)}", 0.0),
        ("Retry-After: soon", 0.5),
        ("Retry-After: -5", 0.5),
        ("X-Nothing: 1", 0.5),
    ],
)
def test_429_waits_as_long_as_it_is_told(
    serving: Serving, asking: Asking, waits: Waits, header: str, waited: float
) -> None:
    server = serving(answer(BUSY, header, status="429 Too Many Requests"), answer(said()))
    assert asking(server)(PROMPT).text == "ready"
    assert waits.waited == [waited]


@pytest.mark.parametrize("status", [408, 500, 502, 503, 529])
def test_waits_grow_and_attempts_end(
    serving: Serving, asking: Asking, waits: Waits, status: int
) -> None:
    server = serving(answer({"error": "out of order"}, status=f"{status} Wrong"))
    with pytest.raises(errors.ModelUnreachableError, match="out of order") as raised:
        asking(server)(PROMPT)
    assert raised.value.attempts == len(server.requests) == 4
    assert waits.waited == [0.5, 1.0, 2.0]


def test_a_rate_that_stays_too_high_is_a_refusal(serving: Serving, asking: Asking) -> None:
    server = serving(answer(BUSY, status="429 Too Many Requests"))
    with pytest.raises(errors.ModelRefusedError, match="Slow down") as raised:
        asking(server)(PROMPT)
    assert (raised.value.reason, raised.value.attempts) == ("rate", 4)


def test_a_wait_beyond_the_deadline_is_not_begun(
    serving: Serving, asking: Asking, waits: Waits
) -> None:
    server = serving(answer(BUSY, "Retry-After: 86400", status="429 Too Many Requests"))
    with pytest.raises(errors.ModelRefusedError):
        asking(server)(PROMPT)
    assert (len(server.requests), waits.waited) == (1, [])


@pytest.mark.parametrize(
    ("status", "fields", "reason"),
    [
        (401, {"error": {"message": "no such key"}}, "key"),
        (403, {"error": {"message": "not for you"}}, "key"),
        (400, {"error": {"message": "no such field"}}, "request"),
        (404, {"error": {"message": "no such model"}}, "request"),
        (422, {"detail": "unprocessable"}, "request"),
        (429, {"error": {"type": "insufficient_quota", "message": "pay"}}, "rate"),
    ],
)
def test_what_is_refused_for_good_is_asked_once(
    serving: Serving, asking: Asking, status: int, fields: object, reason: str
) -> None:
    server = serving(answer(fields, status=f"{status} No"))
    with pytest.raises(errors.ModelRefusedError) as raised:
        asking(server)(PROMPT)
    assert (raised.value.reason, raised.value.status, len(server.requests)) == (reason, status, 1)


def test_an_error_that_is_a_page_for_people(serving: Serving, asking: Asking) -> None:
    server = serving(answer(b"<html>Bad gateway", status="502 Bad", kind="text/html"))
    with pytest.raises(errors.ModelUnreachableError, match="502"):
        asking(server, attempts=1)(PROMPT)


def test_an_endless_error_is_not_read(serving: Serving, asking: Asking) -> None:
    server = serving(answer(b"x" * 200_000, status="400 Bad"))
    with pytest.raises(errors.ModelRefusedError):
        asking(server)(PROMPT)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"ready",
        b'{"choices": [{"message": {"content": "rea',
        b"[1, 2]",
        b"null",
        b"<html>Log in to the network</html>",
        b"[" * 100_000,
        json.dumps(said("grün"), ensure_ascii=False).encode("latin-1"),
        json.dumps(said()).encode("utf-16"),
        b'{"choices": []}',
        b'{"choices": "none"}',
        b'{"choices": [{"message": "text"}]}',
        b'{"choices": [{"message": {"content": null}}]}',
        b'{"choices": [{"message": {"content": 7}}]}',
        b'{"choices": [{"message": {"content": "\\ud83c"}}]}',
        gzip.compress(json.dumps(said()).encode()),
    ],
)
def test_nonsense(serving: Serving, asking: Asking, body: bytes) -> None:
    server = serving(answer(body))
    with pytest.raises(errors.ModelNonsenseError):
        asking(server)(PROMPT)
    assert len(server.requests) == 1


def test_an_answer_that_is_compressed_unasked(serving: Serving, asking: Asking) -> None:
    body = gzip.compress(b" " * 10_000_000)
    server = serving(answer(body, "content-encoding: gzip"))
    with pytest.raises(errors.ModelNonsenseError, match="compressed"):
        asking(server)(PROMPT)
    assert server.requests[0].headers["accept-encoding"] == "identity"


def test_a_huge_answer_is_read_no_further(
    serving: Serving, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http.HttpResponse.chunks, "__defaults__", (100_000,))
    whole = serving(answer(said("x" * 200_000)))
    with pytest.raises(errors.ModelNonsenseError, match="100,000"):
        asking(whole)(PROMPT)
    streamed = serving(stream(*[piece("x" * 1000)] * 200))
    with pytest.raises(errors.ModelNonsenseError, match="100,000"):
        asking(streamed)(PROMPT, heard=lambda _: None)


@pytest.mark.parametrize(
    "event",
    [b"data: {broken\n\n", b'data: "text"\n\n', b"data: \xff\xfe\n\n", b'data: {"choices": 3}\n\n'],
)
def test_nonsense_in_a_stream(serving: Serving, asking: Asking, event: bytes) -> None:
    server = serving(stream(piece("so far"), end=event))
    with pytest.raises(errors.ModelNonsenseError):
        asking(server)(PROMPT, heard=lambda _: None)


def test_an_error_in_a_stream(serving: Serving, asking: Asking) -> None:
    busy = {"error": {"type": "overloaded_error", "message": "busy"}}
    server = serving(stream(busy), stream(*pieces_of("now")))
    assert asking(server)(PROMPT, heard=lambda _: None).text == "now"
    assert len(server.requests) == 2


def cut_stream(connection: Connection) -> None:
    stream(piece("half"), end=b"")(connection)


def cut_body(connection: Connection) -> None:
    connection.send(head("200 OK", "content-type: application/json", "content-length: 5000"))
    connection.send(b'{"choices": [')


def reset_head(connection: Connection) -> None:
    connection.send(b"HTTP/1.1 200 OK\r\ncontent-")
    connection.reset()


def no_http(connection: Connection) -> None:
    connection.send(b"220 mail.example.org ESMTP\r\n")


def nothing(connection: Connection) -> None:
    pass


@pytest.mark.parametrize("fault", [cut_body, reset_head, no_http, nothing])
def test_a_connection_that_ends_is_made_again(
    serving: Serving, asking: Asking, fault: Reply
) -> None:
    server = serving(fault, answer(said()))
    assert asking(server)(PROMPT).text == "ready"
    broken = serving(fault)
    with pytest.raises(errors.ModelUnreachableError):
        asking(broken)(PROMPT)
    assert len(broken.requests) == 4


def test_a_stream_that_was_heard_in_part_is_not_asked_again(
    serving: Serving, asking: Asking
) -> None:
    heard: list[str] = []
    server = serving(cut_stream)
    with pytest.raises(errors.ModelUnreachableError, match="is incomplete"):
        asking(server)(PROMPT, heard=heard.append)
    assert (heard, len(server.requests)) == (["half"], 1)


def test_nobody_listens(serving: Serving, asking: Asking) -> None:
    server = serving(nothing)
    model = asking(server)
    server.close()
    with pytest.raises(errors.ModelUnreachableError, match="could not connect") as raised:
        model(PROMPT)
    assert raised.value.attempts == 4


def slow_head(connection: Connection) -> None:
    connection.send(b"HTTP/1.1 200 OK\r\nx-slow")
    connection.stall()


def slow_body(connection: Connection) -> None:
    connection.send(head("200 OK", "content-type: application/json") + b'{"choices"')
    connection.stall()


def slow_stream(connection: Connection) -> None:
    stream(piece("slow"), end=b"")(connection)
    connection.stall()


@pytest.mark.parametrize("fault", [slow_head, slow_body])
def test_silence_is_not_waited_for(serving: Serving, asking: Asking, fault: Reply) -> None:
    server = serving(fault, answer(said()))
    assert asking(server, timeout=0.5)(PROMPT).text == "ready"


@pytest.mark.parametrize("fault", [slow_head, slow_body, slow_stream])
def test_the_deadline_ends_an_answer_that_keeps_coming(
    serving: Serving, asking: Asking, waits: Waits, fault: Reply
) -> None:
    server = serving(fault)
    waits.rings_when(server.stalled)
    with pytest.raises(errors.ModelUnreachableError, match="before the deadline") as raised:
        asking(server)(PROMPT, heard=lambda _: None)
    assert (raised.value.attempts, len(server.requests)) == (1, 1)


@pytest.mark.parametrize("fault", [slow_head, slow_body, slow_stream])
def test_cancelling_from_another_thread(serving: Serving, asking: Asking, fault: Reply) -> None:
    server = serving(fault)
    cancellation = llm.contract.Cancellation()

    def cancel() -> None:
        assert server.stalled.wait(60)
        cancellation.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(errors.ModelCancelledError):
        asking(server)(PROMPT, heard=lambda _: None, cancellation=cancellation)
    thread.join()
    with pytest.raises(errors.ModelCancelledError):
        asking(server)(PROMPT, cancellation=cancellation)
    assert len(server.requests) == 1


def test_cancelling_while_it_waits_to_ask_again(serving: Serving, waits: Waits) -> None:
    server = serving(answer(BUSY, "Retry-After: 600", status="429 Too Many Requests"))
    cancellation = llm.contract.Cancellation()
    settings = llm.settings.ModelSettings("tiny", url=server.url)

    class Cancelling(llm.http.Timing):
        def alarm(self, seconds: float, action: Callable[[], None]) -> Callable[[], None]:
            return lambda: None

    def jitter_is_not_asked() -> float:
        raise AssertionError

    timing = Cancelling(jitter=jitter_is_not_asked)

    def cancel() -> None:
        assert server.asked.wait(60)
        cancellation.cancel()

    watch = threading.Thread(target=cancel)
    watch.start()
    with pytest.raises(errors.ModelCancelledError):
        llm.http_model.HttpModel(settings, timing=timing)(PROMPT, cancellation=cancellation)
    watch.join()


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_no_redirect_is_followed(serving: Serving, asking: Asking, status: str) -> None:
    other = serving(answer(said("stolen")))
    for place in (other.url, f"{other.url}/chat/completions", "//127.0.0.1/", ""):
        server = serving(answer(b"", f"location: {place}", status=status))
        with pytest.raises(errors.ModelUnreachableError, match="elsewhere"):
            asking(server)(PROMPT)
        assert len(server.requests) == 1
    unreadable = serving(answer(b"", "location: http://[::", status=status))
    with pytest.raises(errors.ModelUnreachableError):
        asking(unreadable, attempts=1)(PROMPT)
    assert other.requests == []


def test_cookies_are_not_kept(serving: Serving, asking: Asking) -> None:
    server = serving(
        answer(BUSY, "set-cookie: session=1", status="429 Too Many Requests"), answer(said())
    )
    asking(server)(PROMPT)
    assert [each.headers.get("cookie") for each in server.requests] == [None, None]


def test_content_that_is_refused(serving: Serving, asking: Asking) -> None:
    refused = said()
    refused["choices"] = [
        {"message": {"content": None, "refusal": "I cannot help"}, "finish_reason": "stop"}
    ]
    with pytest.raises(errors.ModelRefusedError, match="I cannot help") as raised:
        asking(serving(answer(refused)))(PROMPT)
    assert raised.value.reason == "content"
    filtered = stream(piece("so"), piece(stop="content_filter"))
    with pytest.raises(errors.ModelRefusedError):
        asking(serving(filtered))(PROMPT, heard=lambda _: None)


@pytest.mark.parametrize(("given", "to_connect"), [(0.5, 0.5), (15, 15), (16, 15), (600, 15)])
def test_a_connection_is_waited_for_at_most_fifteen_seconds(
    given: float, to_connect: float
) -> None:
    """A host that drops packets answers nothing; an answer may take longer."""
    limits: list[dict[str, float]] = []

    def note(request: httpx.Request) -> httpx.Response:
        limits.append(request.extensions["timeout"])
        return httpx.Response(200)

    peer = llm.http.Peer("the model", "http://127.0.0.1:9", given)
    connections = llm.http.RequestConnections(peer)
    connection = llm.http.Connection(peer, connections, httpx.MockTransport(note))
    connection.send("POST", peer.url, {}, b"{}").close()
    connection.close()
    assert limits == [{"connect": to_connect, "read": given, "write": given, "pool": given}]
