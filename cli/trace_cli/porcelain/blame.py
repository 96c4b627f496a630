"""`trace blame` and `trace whohas`: where messages come from, and which branches have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import (
    LEFT,
    RIGHT,
    ROLE_STYLES,
    date,
    fit,
    highlight_hit,
    paint,
    table,
    terminal_width,
)
from trace_cli.runtime import Invocation
from trace_store import ObjectId, errors
from trace_store.contracts.ref_names import TRASH
from trace_store.history.blame import Blame
from trace_store.history.whohas import VersionHolders
from trace_store.objects.address import BIRTH_BYTES
from trace_store.repo.repository import Repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

ROOMY = 140
"""Terminals with fewer columns get shorter cells, except for the text."""


@takes(
    Argument(
        "REVISION",
        "revision",
        "The commit whose context to show",
        OPTIONAL,
        default="HEAD",
        completes="COMMIT",
    ),
    Option("--address", "address", "Show only this message", "ADDRESS", default=""),
    JSON,
)
def blame(invocation: Invocation, *, revision: str, address: str) -> Results:
    """Show which commit each message comes from, and who changed it since.

    For each message: the commit that added it, the branch, the author, the tool, and later changes. For an imported
    message the branch is that of its session. Otherwise the reflogs of this working copy decide; without an entry, it
    is a branch whose history has the commit.
    """
    with opened(invocation) as repo:
        invocation.page()
        repo.resolve(revision)  # a branch without a commit has no context
        found = list(repo.blame(revision, address=address or None))
        yield found, _blame_lines(invocation, found)


def _blame_lines(invocation: Invocation, found: Sequence[Blame]) -> Iterator[str]:
    """Yield the table.

    On a terminal a branch that all rows share is printed once. On a narrow one every cell but the text is shortened.
    """
    header = ("address", "time", "author", "branch", "role", "tools", "since", "text")
    rows: list[Sequence[str]] = [_blame_row(each) for each in found]
    if not rows:
        return
    places = list(range(len(header)))
    branches = {row[3] for row in rows}
    width = terminal_width(invocation)
    if width:
        left_out = {3: len(branches) == 1, 5: width < ROOMY}
        places = [at for at in places if not left_out.get(at) and any(row[at] for row in rows)]
    if 0 < width < ROOMY:
        rows = [_narrow(row) for row in rows]
    shown = [[row[at] for at in places] for row in rows]
    shades = ("yellow", "dim", "", "", "", "", "cyan", "")
    styles = [
        [ROLE_STYLES.get(row[4], "") if at == 4 else shades[at] for at in places] for row in rows
    ]
    names = [header[at] for at in places]
    yield from table(invocation, names, shown, LEFT * len(places), styles)
    if 3 not in places and all(branches):
        yield paint(invocation, f"all commits were made on {branches.pop()}", "dim")


def _narrow(row: Sequence[str]) -> tuple[str, ...]:
    """Shorten a row for a narrow terminal: no year, a short author, change names only."""
    address, time, author, branch, role, tools, since, text = row
    names = ", ".join(dict.fromkeys(each.partition(" ")[0] for each in since.split(", ")))
    author = fit(author.rpartition("/")[2], 12)
    return address, time[5:], author, fit(branch, 16), role, tools, fit(names, 10), text


def _blame_row(each: Blame) -> tuple[str, ...]:
    message = each.message
    return (
        short_address(message.address),
        date(each.made.time)[:16],
        one_line(each.made.author, 40),
        one_line(each.branch.removeprefix("refs/heads/"), 30),
        message.role,
        one_line(", ".join(each.tools), 40),
        ", ".join(
            f"{one_line(change.operation, 20)} {change.commit.short(8)}" for change in each.changes
        ),
        one_line(message.summary(60).partition(": ")[2], 60),
    )


@takes(
    Argument("WHAT", "what", "An address, an object id (prefix), or a text", completes="OBJECT"),
    Option("--text", "as_text", "Treat WHAT as text"),
    Option("--at", "at", "Search the contexts as of a time or commit", "WHEN", default=""),
    Option("--trash", "trash", "List refs in the trash, too"),
    JSON,
)
def whohas(invocation: Invocation, *, what: str, as_text: bool, at: str, trash: bool) -> Results:
    """List every ref whose history contains a message, a commit, content or a text.

    For each ref Trace prints whether its context shows the message in this version, or why not: `reworded`, `removed`,
    `replaced`, `skip`, or `in its history`. An id may be that of a blob, as `trace ls-context` prints it, or of a
    commit. The case of text is ignored. Refs in the trash are counted; --trash and --json list them.

        trace whohas 627c5f7f4f19.0
        trace whohas "deploy on Friday"
    """
    if not what:
        raise usage_error("WHAT is empty")
    with opened(invocation) as repo:
        oid = None if as_text or at else _object(repo, what)
        refs = None if oid is None else _refs_with(repo, oid)
        if refs is not None:
            yield ({"ref": name} for name in refs), _ref_lines(invocation, refs, trash=trash)
        found = (
            [] if refs is not None else repo.branches.whohas(oid or what, is_text=as_text, at=at)
        )
        for each in found:
            yield each, _lines(invocation, each, trash=trash)
        if not refs and not found:
            raise errors.NotFoundError(f"no ref contains {one_line(what, 80)!r}")


def _object(repo: Repo, what: str) -> ObjectId | None:
    """Return the object whose id starts with a text, or None."""
    try:
        return repo.resolve(what) if ObjectId.is_prefix(what) else None
    except errors.NotFoundError:
        return None


def _refs_with(repo: Repo, oid: ObjectId) -> list[str] | None:
    """Return the refs whose history contains a commit; None for another object."""
    try:
        return repo.branches.containing(oid)
    except errors.RevisionNotFoundError:
        return None


def _ref_lines(invocation: Invocation, refs: Sequence[str], *, trash: bool) -> Iterator[str]:
    yield from (safe(name) for name in refs if trash or not name.startswith(TRASH))
    yield from _left_out(invocation, [] if trash else refs, "")


def _lines(invocation: Invocation, found: VersionHolders, *, trash: bool) -> Iterator[str]:
    """Yield the lines about a version and the refs with it."""
    wording = found.wording
    where = paint(invocation, short_address(wording.address), "yellow")
    oid = wording.place[0]
    stands = "" if wording.address.birth == oid[:BIRTH_BYTES] else f"  in {oid.short()}"
    line = one_line(found.summary(100), 120)
    yield f"{where}{stands}  {line}"
    hit = found.snippet()
    if found.text and hit is None:
        yield paint(invocation, "    in data beside its text, such as a signature", "dim")
    elif hit is not None and hit.text[hit.start : hit.end] not in line:
        yield f"    {highlight_hit(invocation, hit)}"
    holders = [h for h in found.holders if trash or not h.ref.startswith(TRASH)]
    rows = [
        (f"    {safe(h.ref)}", h.state, "" if h.position is None else f"message {h.position:,}")
        for h in holders
    ]
    styles = [("", "green" if h.position is not None else "dim", "") for h in holders]
    yield from table(invocation, (), rows, LEFT * 2 + RIGHT, styles)
    yield from _left_out(invocation, [] if trash else [h.ref for h in found.holders], "    ")


def _left_out(invocation: Invocation, refs: Iterable[str], indent: str) -> Iterator[str]:
    """Yield how many refs in the trash are not listed."""
    count = sum(name.startswith(TRASH) for name in refs)
    if count:
        said = "1 ref" if count == 1 else f"{count:,} refs"
        yield paint(invocation, f"{indent}and {said} in the trash; --trash lists them", "dim")
