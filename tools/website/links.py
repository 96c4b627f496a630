"""What is wrong with the links of a built site: nothing leads nowhere, and nothing is fetched from another host.

Rule: this module reads HTML and CSS as a browser would find them, and knows nothing of how they were made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches without being asked, by element.
_FETCHED = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
# Links of this kind say where things are; a browser does not fetch them.
_NOT_FETCHED = {"alternate", "author", "help", "index", "license", "next", "prev", "search"}
_CSS_URL = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""")
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


class Page(HTMLParser):
    """What one page has and wants.

    Attributes:
        anchors: the places in it that a link may lead to.
        links: where its links lead.
        assets: what a browser fetches for it.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.assets: list[str] = []
        self._styles = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag in ("a", "area") and "href" in given:
            self.links.append(given["href"])
        if tag == "form" and "action" in given:
            self.links.append(given["action"])
        fetched = not set(given.get("rel", "").split()) & _NOT_FETCHED
        for name in _FETCHED.get(tag, ()):
            if given.get(name) and fetched:
                values = given[name].split(",") if name == "srcset" else [given[name]]
                self.assets += [value.split()[0] for value in values if value.strip()]
        self.assets += styled(given.get("style", ""))
        self._styles = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        if tag == "style":
            self._styles = False

    def handle_data(self, data: str) -> None:
        if self._styles:
            self.assets += styled(data)


def styled(css: str) -> list[str]:
    """Return the URLs that a browser fetches for a style sheet."""
    found = _CSS_URL.findall(_CSS_COMMENT.sub("", css))
    return [one or other for one, other in found if not (one or other).startswith("data:")]


def problems(site: Path) -> list[str]:
    """Return the problems, one sentence each, in file order."""
    pages = {
        path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
    }
    found: list[str] = []
    for name, page in pages.items():
        found += [f"{name}: {what}" for what in _links(site, pages, name, page)]
        found += [f"{name}: {what}" for what in _assets(site, name, page.assets)]
    for sheet in sorted(site.rglob("*.css")):
        name = sheet.relative_to(site).as_posix()
        wanted = styled(sheet.read_text(encoding="utf-8"))
        found += [f"{name}: {what}" for what in _assets(site, name, wanted)]
    lost = sorted(set(pages) - _reachable(pages))
    return found + [f"{name}: no link leads here from index.html" for name in lost]


def _links(site: Path, pages: dict[str, Page], name: str, page: Page) -> Iterator[str]:
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme in ("http", "https", "mailto") and (parts.netloc or parts.path):
            continue
        if parts.scheme or parts.netloc or parts.path.startswith("/"):
            yield f"{link} does not lead to a page of the site"
            continue
        target = _target(name, link)
        if target in pages:
            anchor = unquote(parts.fragment)
            if anchor and anchor not in pages[target].anchors:
                yield f"{link}: {target} has no place {anchor!r}"
        elif target is None or not (site / target).is_file():
            yield f"{link} leads nowhere"


def _assets(site: Path, name: str, assets: list[str]) -> Iterator[str]:
    for asset in assets:
        parts = urlsplit(asset)
        if parts.scheme == "data" or (not parts.path and not parts.netloc):
            continue
        if parts.scheme or parts.netloc:
            yield f"{asset} is fetched from elsewhere"
            continue
        target = _target(name, asset)
        if target is None or not (site / target).is_file():
            yield f"{asset} is not there"


def _target(name: str, link: str) -> str | None:
    """Return the file that a link leads to, from the root of the site; None when it leads out of it."""
    path = unquote(urlsplit(link).path)
    if not path:
        return name
    parts = name.split("/")[:-1]
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    if path.endswith("/") or not parts:
        parts.append("index.html")
    return "/".join(parts)


def _reachable(pages: dict[str, Page]) -> set[str]:
    seen: set[str] = set()
    waiting = ["index.html"]
    while waiting:
        name = waiting.pop()
        if name in seen or name not in pages:
            continue
        seen.add(name)
        waiting += [
            target
            for link in pages[name].links
            if not urlsplit(link).netloc and (target := _target(name, link)) is not None
        ]
    return seen
