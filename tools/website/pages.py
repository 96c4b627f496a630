"""The pages of the site, their order, and their links.

The pages are written to be read as files too, so a link names a file of the project. On the site a link to a file
that is a page leads to that page; a link to any other file becomes plain text.

Rule: this module knows paths and Markdown. What turns pages into HTML is conf.py's.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

# Pages outside docs/, and their names on the site.
OUTSIDE = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    ".trace-example/README.md": "example-repository.md",
}
HOME = "index"
NAVIGATION: dict[str, list[str]] = {
    "Tutorial": ["readme", "tutorial"],
    "How to": [
        "importing",
        "hooks",
        "looking",
        "searching",
        "web",
        "trimming",
        "compression",
        "branches",
        "checkpoints",
        "trash",
        "merging",
        "rebasing",
        "semantic-merge",
        "howto/attempts",
        "trajectories",
        "brief",
        "exporting",
        "howto/read",
        "bundles",
        "git",
        "howto/damage",
        "repairing",
        "secrets",
        "purging",
        "sessions",
        "agents",
        "runs",
        "frameworks",
        "howto/agent",
        "mcp",
        "python",
        "howto/follow",
        "models",
        "cookbook",
    ],
    "Reference": [
        "cli",
        "plumbing",
        "json",
        "revisions",
        "errors",
        "findings",
        "glossary",
    ],
    "Library": [
        "api/index",
        "api/repository",
        "api/messages",
        "api/context",
        "api/comparing",
        "api/models",
        "api/errors",
        "api/transcripts",
        "api/upkeep",
        "api/tests",
    ],
    "Format": [
        "format/overview",
        "format/objects",
        "format/journal",
        "format/packs",
        "format/refs",
        "format/tombstones",
        "format/compile-index",
        "format/session-lists",
        "format/commit-table",
        "format/rendering",
        "format/transcripts",
        "format/programs",
        "format/trajectories",
        "format/runs",
        "format/bundles",
        "format/example",
        "example-repository",
    ],
    "Design": [
        "architecture",
        "design/index",
        "reliability",
        "design/reliability-tests",
        "security",
        "design/security-tests",
        "performance",
        "design/growth",
        "benchmarks",
        "benchmarks-branches",
        "profiles",
        "contributing",
        "changelog",
    ],
}

# What the sidebar calls a page whose own title says too much there.
TITLES = {
    "readme": "README",
    "tutorial": "Tutorial",
    "api/index": "Overview",
    "api/errors": "Errors",
    "example-repository": "The example's files",
}

# Pages below a page: they are listed under it, and it links them itself.
BELOW = {"design/index": "design/[0-9]*.md"}

# A code span, or a link; whichever begins first.
_SPAN = re.compile(
    r"(?P<code>(?<!`)(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`))|"
    r"(?<!!)\[(?P<label>[^\]]*)\]\((?P<target>[^)\s]+)\)",
    re.DOTALL,
)
_FENCED = re.compile(r"^(?P<fence>```+)[^`\n]*\n.*?^(?P=fence)[ \t]*$", re.DOTALL | re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-z]+:|#")


def site_name(path: str) -> str | None:
    """Return the path of a project file on the site; None if it is not a page."""
    if path in OUTSIDE:
        return OUTSIDE[path]
    if path.startswith("docs/") and path.endswith(".md"):
        return path.removeprefix("docs/")
    return None


def relinked(text: str, path: str) -> str:
    """Return the Markdown of a page with its links as they lead on the site; blocks of code stay as they are.

    Args:
        text: Markdown.
        path: the page's file, from the root of the project.
    """
    done, end = "", 0
    for block in _FENCED.finditer(text):
        done += _relinked_prose(text[end : block.start()], path) + block[0]
        end = block.end()
    return done + _relinked_prose(text[end:], path)


def _relinked_prose(text: str, path: str) -> str:
    here = posixpath.dirname(site_name(path) or path) or "."

    def lead(found: re.Match[str]) -> str:
        if found["code"] or _ELSEWHERE.match(found["target"]):
            return found[0]
        file, mark, anchor = found["target"].partition("#")
        page = site_name(posixpath.normpath(posixpath.join(posixpath.dirname(path), file)))
        if page is None:
            return found["label"]
        return f"[{found['label']}]({posixpath.relpath(page, here)}{mark}{anchor})"

    return _SPAN.sub(lead, text)


def navigation(name: str) -> str:
    """Return a page's table of contents for the sidebar: its subpages, or all pages."""
    if name == f"{HOME}.md":
        return "".join(
            _tree(f":caption: {title}", "", *map(_entry, pages))
            for title, pages in NAVIGATION.items()
        )
    below = BELOW.get(name.removesuffix(".md"))
    if below is None:
        return ""
    return _tree(
        "",
        *(
            f"/{path.relative_to(DOCS).with_suffix('').as_posix()}"
            for path in sorted(DOCS.glob(below))
        ),
    )


def _entry(page: str) -> str:
    title = TITLES.get(page, "")
    if page.startswith("format/"):
        written = (DOCS / f"{page}.md").read_text(encoding="utf-8").partition("\n")[0]
        named = written.removeprefix("# Format: ")
        title = named[:1].upper() + named[1:]
    return f"{title} <{page}>" if title else page


def _tree(*lines: str) -> str:
    """Return a list of pages for the sidebar, which shows nothing where it stands."""
    return "\n".join(["", "", "```{toctree}", ":hidden:", *lines, "```", ""])


def stage(folder: Path) -> list[str]:
    """Write all pages and pictures of the site to a new folder; return the page names."""
    shutil.rmtree(folder, ignore_errors=True)
    names: list[str] = []
    paths = [*OUTSIDE, *(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md"))]
    for path in paths:
        name = site_name(path)
        assert name is not None
        text = relinked((ROOT / path).read_text(encoding="utf-8"), path)
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + navigation(name), encoding="utf-8")
        names.append(name)
    for drawn in (*DOCS.rglob("*.svg"), *DOCS.rglob("*.png")):
        target = folder / drawn.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(drawn, target)
    return names
