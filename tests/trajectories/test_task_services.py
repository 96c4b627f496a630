"""Linear and Jira, with a fake service."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.trajectories.support.fake_service import FakeService
from trace_store import Repo, errors
from trace_store.trajectories.events import Task
from trace_store.trajectories.tasks import web

Opening = Callable[..., Repo]
KEY = "lin_api_7Qm2Vx9TnR4bLk8Zw3Yp6"
ISSUE = {
    "identifier": "ENG-456",
    "title": "Sign in with JWT\x1b[31m",
    "description": "Sessions end too early.",
    "url": "https://linear.app/acme/issue/ENG-456/sign-in",
    "updatedAt": "2026-03-02T10:00:00.000Z",
    "state": {"type": "started"},
    "assignee": {"displayName": "Ada"},
    "labels": {"nodes": [{"name": "auth"}, {"name": "security"}]},
}
JIRA: dict[str, Any] = {
    "key": "ENG-456",
    "fields": {
        "summary": "Sign in",
        "status": {"name": "In Review", "statusCategory": {"key": "indeterminate"}},
        "assignee": None,
        "labels": ["auth"],
        "updated": "2026-03-02T10:00:00.000+0000",
        "description": {
            "type": "doc",
            "content": [
                {"type": "heading", "content": [{"type": "text", "text": "Why"}]},
                {
                    "type": "paragraph",
                    "content": [
                        {"type": "text", "text": "Sessions "},
                        {"type": "text", "text": "end."},
                    ],
                },
            ],
        },
    },
}
TASK = Task("", id="ENG-456")


@pytest.fixture
def linear(opening: Opening, service: FakeService) -> Repo:
    return opening(LINEAR_API_KEY=KEY, TRACE_LINEAR_URL=service.url)


def test_linear_is_asked_with_its_key(linear: Repo, service: FakeService) -> None:
    service.body = {"data": {"issue": ISSUE}}
    found = linear.trajectories.tasks.look_up(TASK)
    assert (found.system, found.id, found.state) == ("linear", "ENG-456", "in_progress")
    assert (found.title, found.assignee) == ("Sign in with JWT\x1b[31m", "Ada")
    assert found.labels == ("auth", "security")
    assert found.updated == 1_772_445_600_000
    (request,) = service.requests
    assert (request.method, request.path) == ("POST", "/graphql")
    assert request.headers["authorization"] == KEY
    assert json.loads(request.body)["variables"] == {"id": "ENG-456"}


def test_an_oauth_token_of_linear_is_a_bearer(opening: Opening, service: FakeService) -> None:
    service.body = {"data": {"issue": ISSUE}}
    repo = opening(LINEAR_API_KEY="lin_oauth_x1", TRACE_LINEAR_URL=service.url)
    repo.trajectories.tasks.look_up(TASK)
    assert service.requests[0].headers["authorization"] == "Bearer lin_oauth_x1"


def test_jira_in_the_cloud(opening: Opening, service: FakeService) -> None:
    service.body = JIRA
    repo = opening(
        TRACE_JIRA_URL=service.url, JIRA_EMAIL="ada@acme.example", JIRA_API_TOKEN="t0ken"
    )
    found = repo.trajectories.tasks.look_up(TASK)
    assert (found.system, found.title, found.state) == ("jira", "Sign in", "in_progress")
    assert found.description == "Why\nSessions end."
    assert found.url == f"{service.url}/browse/ENG-456"
    (request,) = service.requests
    assert request.path.startswith("/rest/api/3/issue/ENG-456?fields=summary,")
    pair = base64.b64decode(request.headers["authorization"].removeprefix("Basic "))
    assert pair == b"ada@acme.example:t0ken"


def test_jira_on_a_server(opening: Opening, service: FakeService) -> None:
    done = {"name": "Closed", "statusCategory": {"key": "done"}}
    service.body = {"fields": {**JIRA["fields"], "description": "h1. Why", "status": done}}
    repo = opening(TRACE_JIRA_URL=service.url + "/", JIRA_TOKEN="t0ken")
    found = repo.trajectories.tasks.look_up(TASK)
    assert (found.id, found.state, found.description) == ("ENG-456", "done", "h1. Why")
    assert service.requests[0].path.startswith("/rest/api/2/")
    assert service.requests[0].headers["authorization"] == "Bearer t0ken"


@pytest.mark.parametrize(
    ("status", "headers", "body", "error", "says"),
    [
        (401, {}, {}, errors.TaskRefusedError, "refuses the key (401)"),
        (403, {}, {}, errors.TaskRefusedError, "refuses the key (403)"),
        (429, {"retry-after": "90"}, {}, errors.TaskRefusedError, "no more requests for 90 s"),
        (429, {}, {}, errors.TaskRefusedError, "no more requests ("),
        (500, {}, b"<html>", errors.TaskUnreachableError, "has failed (500"),
        (418, {}, {}, errors.TaskRefusedError, "refuses the request (418)"),
        (200, {}, b"<html>", errors.TaskNonsenseError, "not a JSON object"),
        (200, {}, b"[" * 100_000, errors.TaskNonsenseError, "not a JSON object"),
        (200, {}, b"[]", errors.TaskNonsenseError, "not a JSON object"),
        (200, {}, b" " * (1 << 20) + b"{}", errors.TaskNonsenseError, "longer than 1,048,576"),
        (200, {"content-encoding": "gzip"}, b"x", errors.TaskNonsenseError, "compressed"),
        (302, {"location": "https://other.example/"}, {}, errors.TaskUnreachableError, "redirects"),
    ],
)
@pytest.mark.parametrize("system", ["linear", "jira"])
def test_failures(
    opening: Opening,
    service: FakeService,
    system: str,
    status: int,
    headers: dict[str, str],
    body: Any,
    error: type[errors.TraceError],
    says: str,
) -> None:
    service.status, service.headers, service.body = status, headers, body
    address = {f"TRACE_{system.upper()}_URL": service.url}
    repo = opening(LINEAR_API_KEY=KEY, JIRA_TOKEN=KEY, **address)
    with pytest.raises(error) as raised:
        repo.trajectories.tasks.look_up(Task("", system=system, id="ENG-456"))
    assert says in raised.value.message
    assert KEY not in raised.value.message


def test_a_redirect_carries_no_key_to_another_host(linear: Repo, service: FakeService) -> None:
    other = FakeService()
    service.status, service.headers = 307, {"location": other.url.replace("127.0.0.1", "localhost")}
    try:
        with pytest.raises(errors.TaskUnreachableError, match="keys are not sent elsewhere"):
            linear.trajectories.tasks.look_up(TASK)
        assert other.requests == []
    finally:
        other.close()


def test_a_slow_service_times_out(
    linear: Repo, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "SECONDS", 0.2)
    service.slow = True
    with pytest.raises(errors.TaskUnreachableError, match="Linear"):
        linear.trajectories.tasks.look_up(TASK)


def test_a_service_that_is_down(opening: Opening, service: FakeService) -> None:
    repo = opening(LINEAR_API_KEY=KEY, TRACE_LINEAR_URL="http://127.0.0.1:1")
    with pytest.raises(errors.TaskUnreachableError, match="could not connect to Linear"):
        repo.trajectories.tasks.look_up(TASK)


@pytest.mark.parametrize(
    ("told", "error", "says"),
    [
        ([{"message": "Entity not found: Issue"}], errors.NotFoundError, "Linear shows no task"),
        ([{"message": "Bad", "extensions": {"code": "X"}}], errors.TaskRefusedError, "Bad"),
        ([{"extensions": {"code": "RATELIMITED"}}], errors.TaskRefusedError, "RATELIMITED"),
        ([{"message": f"the key {KEY} is old"}], errors.TaskRefusedError, "[key]"),
        ("x", errors.TaskRefusedError, "no reason"),
    ],
)
@pytest.mark.parametrize("status", [200, 400])
def test_errors_of_graphql(
    linear: Repo,
    service: FakeService,
    status: int,
    told: object,
    error: type[errors.TraceError],
    says: str,
) -> None:
    service.status, service.body = status, {"errors": told}
    with pytest.raises(error) as raised:
        linear.trajectories.tasks.look_up(TASK)
    assert says in raised.value.message
    assert KEY not in raised.value.message


@pytest.mark.parametrize("body", [{"data": {"issue": None}}, {"data": None}, {}])
def test_linear_without_an_issue(linear: Repo, service: FakeService, body: object) -> None:
    service.body = body
    with pytest.raises(errors.NotFoundError):
        linear.trajectories.tasks.look_up(TASK)


def test_an_issue_without_a_title_is_nonsense(linear: Repo, service: FakeService) -> None:
    service.body = {"data": {"issue": {"title": 3, "state": [], "labels": {"nodes": [1]}}}}
    with pytest.raises(errors.TaskNonsenseError):
        linear.trajectories.tasks.look_up(TASK)


def test_jira_hides_what_the_user_may_not_see(opening: Opening, service: FakeService) -> None:
    service.status, service.body = 404, {"errorMessages": ["Issue does not exist"]}
    repo = opening(TRACE_JIRA_URL=service.url, JIRA_TOKEN="t0ken")
    with pytest.raises(errors.NotFoundError) as raised:
        repo.trajectories.tasks.look_up(TASK)
    assert raised.value.code == errors.ErrorCode.TASK_NOT_FOUND


@pytest.mark.parametrize(
    ("variables", "system", "error", "says"),
    [
        ({}, "linear", errors.StateError, "Linear needs a key"),
        ({}, "jira", errors.StateError, "Jira needs an address"),
        ({"TRACE_JIRA_URL": "https://j.example"}, "jira", errors.StateError, "Jira needs a key"),
        ({"TRACE_JIRA_URL": "http://j.example"}, "jira", errors.InvalidInputError, "not https"),
        ({"TRACE_JIRA_URL": "j.example"}, "jira", errors.InvalidInputError, "TRACE_JIRA_URL does"),
        ({"LINEAR_API_KEY": "a b"}, "linear", errors.InvalidInputError, "LINEAR_API_KEY has"),
        ({}, "", errors.StateError, "no task system is configured"),
        ({}, "plain", errors.StateError, "no task system is configured"),
        ({}, "trello", errors.InvalidInputError, "one of beads, github, linear, jira, plain"),
    ],
)
def test_settings(
    opening: Opening,
    variables: dict[str, str],
    system: str,
    error: type[errors.TraceError],
    says: str,
) -> None:
    repo = opening(**variables)
    with pytest.raises(error) as raised:
        repo.trajectories.tasks.look_up(Task("", system=system, id="ENG-456"))
    assert says in raised.value.message
