"""Nothing that a session says runs, is loaded, or makes an element of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.exporters.support.pages import Page
from tests.web.support.attacks import CORPUS, hostile_repository
from tests.web.support.client import Client
from trace_store.exporters.html.markup import ALLOWED
from trace_store.repo.repository import Repo

LOCAL = re.compile(r"(/[a-z]|/$|#|data:,)")
HEAD = {"meta", "script", "link", "title", "html", "head", "body", "style"}


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    with hostile_repository(tmp_path_factory.mktemp("hostile")) as found:
        yield found


@pytest.fixture(scope="module")
def small() -> Client:
    repo = Repo.memory()
    repo.append("user", "x")
    return Client(repo)


def check(html: str) -> None:
    """Check that a page or a part of it has only what its code writes."""
    page = Page(html.encode("utf-8", "surrogatepass"))
    scripts = 0
    for each in page.elements:
        assert each.tag in ALLOWED or each.tag == "script", each
        if each.tag == "script":
            scripts += 1
            assert re.fullmatch(r"/static/\w+-app\.js", each.attributes["src"]), each
            continue
        assert set(each.attributes) <= ALLOWED[each.tag], each
        for name, value in each.attributes.items():
            if name in ("href", "action"):
                is_source = value.startswith("https://example.org/")
                assert LOCAL.match(value) or is_source, each
                assert not is_source or "noreferrer" in each.attributes["rel"], each
                assert not value.startswith("//"), each
            if name == "src":
                assert re.match(r"data:image/(png|jpeg|gif|webp);base64,", value), each
    assert scripts == html.startswith("<!doctype")
    assert not page.comments


def test_the_corpus_is_large() -> None:
    assert len(set(CORPUS)) >= 100


def test_no_page_has_an_element_of_what_it_shows(repo: Repo) -> None:
    client = Client(repo)
    assert len(repo.trajectories.list()) == len(CORPUS)
    assert len(repo.checkpoints.list()) >= 2 * len(CORPUS)
    tip = repo.resolve("main").hex()
    paths = ["/", "/checkpoints", "/trajectories", "/compare", f"/context?commit={tip}"]
    paths += [
        "/search?q=script",
        "/search?q=pwned",
        "/trash?name=main",
        "/session?name=main&start=0",
        "/runs",
        *(f"/run?id={each.id}" for each in repo.runs.list()),
    ]
    paths += [f"/trajectory?id={each.id}" for each in repo.trajectories.list()]
    for number in range(len(CORPUS)):
        name = f"sessions/x/s{number}"
        paths += [f"/session?name={name}&hidden=1", f"/context?name={name}", f"/trash?name={name}"]
        paths.append(f"/compare?left={name}&right=fork{number}")
    for path in paths:
        answer = client.ask(path)
        assert answer.status_code == 200, path
        check(answer.text)


def test_no_part_of_a_page_has_one(repo: Repo) -> None:
    client = Client(repo)
    for start in range(0, 3 * len(CORPUS), 200):
        check(client.part("/messages", name="main", start=str(start), count="200")["html"])
    for each in repo.compile("main").messages[:200:7]:
        check(client.part("/message", name="main", at=str(each.address))["html"])
    for name in ("main", "sessions/x/s1"):
        check(client.part("/outline", name=name)["html"])


@pytest.mark.parametrize("text", CORPUS)
def test_what_a_reader_asks_for_is_shown_as_text(small: Client, text: str) -> None:
    client = small
    text = text[:300].encode("utf-8", "replace").decode()
    for path, names in {
        "/": ("q", "agent", "folder", "state", "since", "until"),
        "/session": ("name", "at", "q"),
        "/context": ("name", "commit", "until"),
        "/compare": ("left", "right"),
        "/search": ("q", "role", "tool", "session", "since"),
        "/trajectories": ("q", "why"),
        "/trajectory": ("id",),
        "/trash": ("name",),
        "/runs": ("state", "agent"),
        "/run": ("id", "start"),
    }.items():
        for name in names:
            other = {"left": {"right": "main"}, "right": {"left": "main"}}.get(name, {})
            other |= {"name": "main"} if path == "/session" and name != "name" else {}
            other |= {"q": "x"} if path == "/search" and name != "q" else {}
            answer = client.ask(path, {name: text, **other})
            assert answer.status_code in (200, 400, 404, 409), (path, name, answer.text[:300])
            check(answer.text)
    head = {"x-trace-token": client.access.action_token}
    answer = client.ask("/do/pin", method="POST", headers=head, json={"message": text})
    assert answer.headers["content-type"] == "application/json"
