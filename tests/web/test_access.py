"""Access to the page: attacks by other web pages and by other users of the machine are refused."""

from __future__ import annotations

import stat
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.web.support.client import HOST, PORT, Client
from trace_store import Environment
from trace_store.errors import InvalidInputError, StateError
from trace_store.repo.repository import Repo
from trace_store.secrets.user_files import user_key
from trace_store.web.access import HEADER, HEADERS, POLICY, save_port, saved_port
from trace_store.web.server import Server

PATHS = (
    *("/", "/session?name=main", "/context?name=main", "/compare", "/checkpoints", "/trash"),
    *(
        "/trajectories",
        "/search?q=private",
        "/messages?name=main&start=0&count=9",
        "/outline?name=main",
    ),
    "/export?name=main",
)


@pytest.fixture
def repo() -> Repo:
    repo = Repo.memory()
    repo.append("user", "a private sentence")
    return repo


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.test",
            f"evil.test:{PORT}",
            "127.0.0.1",
            "127.0.0.1:1",
            f"127.0.0.1.evil.test:{PORT}",
        ),
        *(f"localhost@evil.test:{PORT}", "", f"127.0.0.1:{PORT}@evil.test", f"192.168.0.1:{PORT}"),
        f"127.0.0.1:{PORT}0",
    ],
)
def test_a_request_for_another_host_is_refused(repo: Repo, host: str) -> None:
    client = Client(repo)
    for path in ("/", "/events", "/static/app.js", "/login?token=x"):
        assert client.ask(path, headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", [HOST, f"localhost:{PORT}", f"[::1]:{PORT}", f"LOCALHOST:{PORT}"])
def test_names_of_this_machine_are_answered(repo: Repo, host: str) -> None:
    assert Client(repo).ask("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.test", "null", f"https://{HOST}", f"http://127.0.0.1:{PORT + 1}", ""]
)
def test_a_request_of_another_origin_is_refused_also_for_events(repo: Repo, origin: str) -> None:
    client = Client(repo)
    for path in ("/", "/events", "/messages?name=main"):
        assert client.ask(path, headers={"origin": origin}).status_code == 403
    answer = client.ask(
        "/do/undo",
        method="POST",
        headers={"origin": origin, HEADER: client.access.action_token},
        json={},
    )
    assert answer.status_code == 403


def test_a_request_that_another_site_embeds_is_refused(repo: Repo) -> None:
    client = Client(repo)
    embedded = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert client.ask("/export?name=main", headers=embedded).status_code == 403
    own = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "origin": f"http://{HOST}"}
    assert client.ask("/", headers=own).status_code == 200


def test_nothing_is_shown_without_the_cookie(repo: Repo) -> None:
    client = Client(repo)
    for path in (*PATHS, "/events", "/static/x", "/nothing"):
        for cookies in ({}, {client.access.name: "0" * 64}, {"other": client.access.cookie}):
            answer = client.ask(path, cookies=cookies)
            assert answer.status_code == 401, path
            assert "private" not in answer.text


def test_a_link_works_once_and_its_cookie_is_for_this_page_alone(repo: Repo) -> None:
    client = Client(repo)
    link = urlsplit(client.access.link())
    assert link.netloc == HOST
    (token,) = parse_qs(link.query)["token"]
    assert len(token) >= 32
    answer = client.ask("/login", {"token": token}, cookies={})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.access.cookie in cookie
    assert client.ask("/login", {"token": token}, cookies={}).status_code == 401
    assert client.ask("/login", {"token": token}).status_code == 303, "known already"
    assert client.ask("/login", {"token": ""}, cookies={}).status_code == 401


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("/session?name=main", "/session?name=main"),
        ("//evil.test", "/"),
        ("/\\evil.test", "/"),
        ("http://evil.test", "/"),
        ("javascript:alert(1)", "/"),
    ],
)
def test_a_link_leads_to_a_page_of_this_server_only(repo: Repo, target: str, place: str) -> None:
    answer = Client(repo).ask("/login", {"next": target})
    assert answer.headers["location"] == place


def test_every_answer_has_the_policy_and_no_other_page_may_read_it(repo: Repo) -> None:
    client = Client(repo)
    wanted = [*PATHS, "/nothing", "/session?name=gone", "/login"]
    answers = [client.ask(path) for path in wanted] + [client.ask("/", headers={"host": "evil"})]
    for answer in answers:
        for name, text in HEADERS.items():
            assert answer.headers[name] == text
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert answer.headers["cache-control"] == "no-store"
    assert "unsafe" not in POLICY
    assert "http" not in POLICY
    page = client.page("/session", name="main")
    assert " style=" not in page
    assert " on" not in {word[:3] for word in page.split("<") if "=" in word[:3]}
    assert page.count("<script") == 1


def test_no_page_loads_anything_from_elsewhere(repo: Repo) -> None:
    client = Client(repo)
    page = client.page("/")
    targets = [part.split('"')[0] for part in page.split('src="')[1:] + page.split('href="')[1:]]
    assert targets
    assert not [each for each in targets if not each.startswith(("/", "#", "data:,"))]


def test_asking_never_changes_anything(repo: Repo) -> None:
    client = Client(repo)
    before = dict(repo.store.refs.values()), len(repo.operations())
    for path in PATHS:
        for method in ("GET", "HEAD"):
            client.ask(path, method=method)
    for action in ("undo", "remove", "compact"):
        assert client.ask(f"/do/{action}?message=HEAD.0").status_code == 405
    assert (dict(repo.store.refs.values()), len(repo.operations())) == before


def test_an_action_needs_the_header_and_json(repo: Repo) -> None:
    client = Client(repo)
    good = {HEADER: client.access.action_token}
    given = {"message": str(repo.compile().messages[0].address)}
    assert client.ask("/do/pin", method="POST", json=given).status_code == 403
    wrong = {HEADER: "0" * 64}
    assert client.ask("/do/pin", method="POST", headers=wrong, json=given).status_code == 403
    form = {**good, "content-type": "application/x-www-form-urlencoded"}
    assert client.ask("/do/pin", method="POST", headers=form).status_code == 415
    assert client.ask("/do/pin", method="POST", headers=good, json=given).status_code == 200
    for method in ("PUT", "DELETE", "PATCH"):
        assert client.ask("/", method=method, headers=good, json={}).status_code == 405


def test_a_read_only_page_has_no_actions(repo: Repo) -> None:
    client = Client(repo, read_only=True)
    assert 'name="trace-token" content=""' in client.page("/")
    for token in ("", "0" * 64):
        answer = client.ask("/do/undo", method="POST", headers={HEADER: token}, json={})
        assert answer.status_code == 403


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/session", {"name": "../../etc/passwd"}),
        ("/session", {"name": "/etc/passwd"}),
        ("/session", {"name": "main", "at": "../x.0"}),
        ("/session", {"name": "x" * 5000}),
        ("/context", {"commit": "../../etc/passwd"}),
        ("/context", {"commit": "HEAD"}),
        ("/messages", {"name": "main", "start": "-1"}),
        ("/messages", {"name": "main", "start": "1e9"}),
        ("/message", {"name": "main", "at": "%2e%2e"}),
        ("/news", {"name": "main", "tip": "../x"}),
        ("/trajectory", {"id": "../../x"}),
        ("/static/..%2f..%2fapp.py", {}),
        ("/static/app.py", {}),
        ("/static/%2e%2e/server.py", {}),
        ("/../../etc/passwd", {}),
    ],
)
def test_what_is_named_is_an_id_and_never_a_file(
    repo: Repo, path: str, query: dict[str, str]
) -> None:
    answer = Client(repo).ask(path, query)
    assert answer.status_code in (400, 404)
    assert "root:" not in answer.text
    assert "Traceback" not in answer.text


def test_key_and_port_are_kept_for_the_user_alone(tmp_path: Path) -> None:
    environment = Environment(data_dir=str(tmp_path / "data"))
    with Repo.init(tmp_path / "one") as one, Repo.init(tmp_path / "two") as two:
        assert saved_port(one.store, environment) == 0
        save_port(one.store, environment, 4321)
        assert saved_port(one.store, environment) == 4321
        assert saved_port(two.store, environment) == 0
        assert user_key(one.store, environment) == user_key(one.store, environment)
        assert user_key(one.store, environment) != user_key(two.store, environment)
        nowhere = Environment()
        assert user_key(one.store, nowhere) != user_key(one.store, nowhere)
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert len(files) == 3
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    for tree in (tmp_path / "one", tmp_path / "two"):
        assert b"4321" not in b"".join(p.read_bytes() for p in tree.rglob("*") if p.is_file())


def test_other_machines_need_a_token_and_may_only_read(tmp_path: Path) -> None:
    environment = Environment(data_dir=str(tmp_path / "data"))
    with Repo.init(tmp_path) as repo:
        with pytest.raises(InvalidInputError, match="a token is needed"):
            Server(repo, host="0.0.0.0", environment=environment)
        server = Server(repo, host="0.0.0.0", token="open sesame", environment=environment)
        server.close()
        assert server.read_only
        assert server.link.endswith("/login?token=open%20sesame")
        with pytest.raises(InvalidInputError, match="not an address"):
            Server(repo, host="no such host.invalid", token="x", environment=environment)


def test_a_given_token_works_again_and_again_and_only_for_addresses(repo: Repo) -> None:
    client = Client(repo, host="0.0.0.0", token="abc", read_only=True)
    for _ in range(2):
        answer = client.ask(
            "/login", {"token": "abc"}, cookies={}, headers={"host": f"10.0.0.7:{PORT}"}
        )
        assert answer.status_code == 303
    assert client.ask("/login", {"token": "abd"}, cookies={}).status_code == 401
    # A name of another site that leads here is refused, and so is another port.
    for host in (f"evil.test:{PORT}", "10.0.0.7"):
        assert client.ask("/", headers={"host": host}).status_code == 421


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    environment = Environment(data_dir=str(tmp_path / "data"))
    with Repo.init(tmp_path) as repo:
        first = Server(repo, environment=environment)
        try:
            with pytest.raises(StateError, match=f"port {first.port} is in use"):
                Server(repo, environment=environment)
            other = Server(repo, port=0, environment=environment)
            other.close()
            assert other.port != first.port
        finally:
            first.close()
        again = Server(repo, environment=environment)
        again.close()
        assert again.port == first.port, "a link still works after a restart"
