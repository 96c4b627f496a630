"""The documentation as a site: every page has its place, links lead where they did, and nothing comes from elsewhere.

The site itself is built and checked by the recipe `nox -s site`; here stands what it relies on.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.support.public_names import PUBLIC
from tools.website import docstrings, links, pages

ROOT = Path(__file__).resolve().parents[1]
API = sorted((ROOT / "docs" / "api").glob("*.md"))
DIRECTIVE = re.compile(r"(?m)^\.\. auto(?:class|function|exception):: ([\w.]+)$")


def test_every_page_has_one_place_in_the_navigation() -> None:
    listed = [f"{page}.md" for under in pages.NAVIGATION.values() for page in under]
    below = [
        path.relative_to(pages.DOCS).as_posix()
        for pattern in pages.BELOW.values()
        for path in pages.DOCS.glob(pattern)
    ]
    there = [path.relative_to(pages.DOCS).as_posix() for path in pages.DOCS.rglob("*.md")]
    there += pages.OUTSIDE.values()
    assert sorted([f"{pages.HOME}.md", *listed, *below]) == sorted(there)


def test_pages_from_outside_are_there() -> None:
    assert not [path for path in pages.OUTSIDE if not (ROOT / path).is_file()]
    assert set(pages.BELOW) <= {page for under in pages.NAVIGATION.values() for page in under}


@pytest.mark.parametrize(
    ("path", "written", "expected"),
    [
        ("README.md", "[map](docs/index.md)", "[map](index.md)"),
        ("README.md", "[MIT](LICENSE).", "MIT."),
        ("README.md", "[on\ngit](docs/git.md#two)", "[on\ngit](git.md#two)"),
        ("docs/index.md", "[README](../README.md)", "[README](readme.md)"),
        ("docs/format/example.md", "[it](../../.trace-example/README.md)", "[it](../example-repository.md)"),
        ("docs/design/index.md", "[1](001-a.md)", "[1](001-a.md)"),
        ("docs/cli.md", "[`trace log`](#trace-log)", "[`trace log`](#trace-log)"),
        ("docs/cli.md", "[a](https://example.org/b.md)", "[a](https://example.org/b.md)"),
        ("docs/cli.md", "the test in [tests](../tests/a.py)", "the test in tests"),
        ("docs/cli.md", "`[a](../LICENSE)` and [b](../LICENSE)", "`[a](../LICENSE)` and b"),
        ("docs/cli.md", "```sh\n[a](../LICENSE)\n```\n", "```sh\n[a](../LICENSE)\n```\n"),
    ],
)  # fmt: skip
def test_links_lead_to_the_pages_of_the_site(path: str, written: str, expected: str) -> None:
    assert pages.relinked(written, path) == expected


def test_staged_pages_have_the_navigation_and_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "stale.md").write_text("# Of an earlier build\n", encoding="utf-8")
    names = pages.stage(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")} == set(names)
    home = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert home.count("```{toctree}") == len(pages.NAVIGATION)
    assert "001-two-columns" in (tmp_path / "design" / "index.md").read_text(encoding="utf-8")


SOUND = """<!DOCTYPE html><html><head><link rel="stylesheet" href="a.css"><link rel="author" href="https://example.org">
<script src="a.js?v=1"></script><style>p { background: url("a.png") }</style></head>
<body id="top"><a href="sub/b.html#place">b</a> <a href="#top">top</a> <a href="https://example.org/">elsewhere</a>
<img src="data:image/png;base64,AAAA" srcset="a.png 1x, a.png 2x"></body></html>"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(SOUND, encoding="utf-8")
    (tmp_path / "sub" / "b.html").write_text(
        '<p id="place"><a href="../">up</a></p>', encoding="utf-8"
    )
    (tmp_path / "a.css").write_text(
        "/* url(b.png) */ p { background: url(a.png) }", encoding="utf-8"
    )
    for name in ("a.js", "a.png"):
        (tmp_path / name).write_bytes(b"")
    return tmp_path


def test_a_sound_site_has_no_problems(site: Path) -> None:
    assert links.problems(site) == []


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ('<a href="c.html">c</a>', "c.html leads nowhere"),
        ('<a href="../c.html">c</a>', "../c.html leads nowhere"),
        ('<a href="sub/b.html#places">b</a>', "sub/b.html has no place 'places'"),
        ('<a href="#nowhere">b</a>', "index.html has no place 'nowhere'"),
        ('<a href="/sub/b.html">b</a>', "does not lead to a page of the site"),
        ('<a href="file:///etc/passwd">b</a>', "does not lead to a page of the site"),
        ('<script src="https://example.org/x.js"></script>', "is fetched from elsewhere"),
        ('<script src="//example.org/x.js"></script>', "is fetched from elsewhere"),
        ('<link rel="preconnect" href="https://example.org">', "is fetched from elsewhere"),
        ('<img src="a.png" srcset="https://example.org/x.png 2x">', "is fetched from elsewhere"),
        ("<style>@import 'https://example.org/x.css';</style>", "is fetched from elsewhere"),
        ('<p style="background: url(https://example.org/x.png)">', "is fetched from elsewhere"),
        ('<img src="b.png">', "b.png is not there"),
    ],
)
def test_what_is_wrong_with_a_page_is_told(site: Path, added: str, problem: str) -> None:
    page = site / "index.html"
    page.write_text(page.read_text(encoding="utf-8") + added, encoding="utf-8")
    (found,) = links.problems(site)
    assert found.startswith("index.html: ")
    assert found.endswith(problem)


def test_what_is_wrong_with_a_style_sheet_is_told(site: Path) -> None:
    (site / "a.css").write_text("@font-face { src: url(https://example.org/f.woff2) }", "utf-8")
    assert links.problems(site) == ["a.css: https://example.org/f.woff2 is fetched from elsewhere"]


def test_a_page_that_nothing_leads_to_is_told(site: Path) -> None:
    (site / "c.html").write_text("<p>alone</p>", encoding="utf-8")
    assert links.problems(site) == ["c.html: no link leads here from index.html"]


def documented() -> list[str]:
    return [name for page in API for name in DIRECTIVE.findall(page.read_text(encoding="utf-8"))]


def test_every_public_name_has_its_place_in_the_reference() -> None:
    wanted = {
        f"{package}.{name}"
        for package in {*PUBLIC} - {"trace_store.errors"}  # whose page has all of its names
        for name in getattr(importlib.import_module(package), "__all__", ())
        if not (name.isupper() or name.endswith("records"))  # `docs/json.md` describes the records
    }
    found = documented()
    assert len(found) == len(set(found))
    assert sorted(wanted - set(found)) == []


def test_the_reference_names_what_exists_and_has_a_docstring() -> None:
    for name in documented():
        module, _, attribute = name.rpartition(".")
        assert getattr(importlib.import_module(module), attribute).__doc__, name


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Open `.trace/` of `path`.", "Open ``.trace/`` of `path`."),
        ("`Repo.open` or ``code``", "`Repo.open` or ``code``"),
    ],
)
def test_docstrings_look_up_names_only(written: str, expected: str) -> None:
    assert docstrings.with_names(written) == expected


def test_docstrings_that_raise_what_others_raise() -> None:
    both = ["Do.", "", "Raises:", "    As `read`; and", "    LockedError: it is in use."]
    said = [
        "Do.",
        "",
        "Raises what `read` raises; and",
        "",
        "Raises:",
        "    LockedError: it is in use.",
    ]
    assert docstrings.with_as(both) == said
    assert docstrings.with_as([*both[:3], "    As `read`."]) == [
        "Do.",
        "",
        "Raises what `read` raises.",
        "",
    ]


def test_docstrings_show_code_outside_their_sections() -> None:
    lines = ["Do.", "", "    repo = open()", "    repo.close()", "", "Args:", "    path: where."]
    expected = [*lines[:2], ".. code-block:: python", "", *lines[2:]]
    assert docstrings.with_code(lines) == expected
