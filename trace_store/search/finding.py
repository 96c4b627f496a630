"""Searching: words, phrases and patterns, with filters; hits with the place in the text.

Rule: nothing that a person types is a syntax error. Words are ANDed, "a phrase" stands together, `word*` is a
beginning, `-word` must not be there, and `OR` stands between alternatives. Signs within a word, as in `foo.bar()`, part
it into words that stand together.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Generator, Iterable
from contextlib import closing
from typing import Any

from trace_store.context.wording import created_messages
from trace_store.errors import InvalidInputError, TraceError
from trace_store.objects import operations as ops
from trace_store.objects.commit import read_commit
from trace_store.objects.message import load_parts
from trace_store.oid import ObjectId
from trace_store.refs import BRANCHES
from trace_store.revision import commits_of
from trace_store.search.index import Progress, SearchIndex, text_of_parts
from trace_store.store import Store
from trace_store.values import value

RANKED = 1_000
"""So many of the newest hits are put in the order of bm25."""
AROUND = 60
"""Characters of a snippet before and behind the hit."""
_WORD = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')


@value
class SearchFilter:
    """What hits have to be; "" and None: anything.

    Attributes:
        session: the beginning of a session's id or of a branch's name.
        agent: the program, such as `claude-code`.
        role, kind: of the message.
        tool: the name of a tool that it calls.
        path: a text in the arguments of its calls, such as a file's name.
        since, until: milliseconds since the epoch.
    """

    session: str = ""
    agent: str = ""
    role: str = ""
    kind: str = ""
    tool: str = ""
    path: str = ""
    since: int | None = None
    until: int | None = None


@value
class Hit:
    """A message that was found.

    Attributes:
        address: (commit, number), which other verbs take.
        ref: a branch that has it.
        branches: how many branches have it.
        time: when it was written, in milliseconds since the epoch.
        role: of the message; "" of a later wording.
        snippet: a piece of its text with the hit, on one line.
        start, end: where in the snippet the hit is, in characters; equal when it is nowhere literally.
        is_edit: whether it is a later wording of the message.
    """

    address: tuple[ObjectId, int]
    ref: str
    branches: int
    time: int
    role: str
    snippet: str
    start: int
    end: int
    is_edit: bool


def search(
    store: Store,
    query: str,
    wanted: SearchFilter | None = None,
    *,
    limit: int = 20,
    ranked: bool = False,
    regex: bool = False,
    progress: Progress | None = None,
) -> list[Hit]:
    """Return the messages that a query finds, newest first, hidden ones and earlier wordings too.

    Args:
        store: where.
        query: words as above, or a pattern of RE2.
        wanted: filters.
        limit: at most so many.
        ranked: whether the best of the newest 1,000 come first.
        regex: whether the query is a pattern, which every message that passes the filters is held against.
        progress: told how many commits are indexed, and of how many.

    Raises:
        InvalidInputError: nothing is searched for, or the pattern is none.
        StateError: there is no full-text search here.
        ObjectNotFoundError, CorruptObjectError: a commit is damaged or not here.
    """
    wanted = wanted or SearchFilter()
    pattern = _compiled(query) if regex else None
    match = "" if regex else fts_query(query)
    if not regex and not match:
        raise InvalidInputError("nothing to search for", value=query)
    with SearchIndex(store) as index:
        index.catch_up(progress)
        with closing(_rows(index.base, match, wanted, ranked=ranked)) as rows:
            return _hits(store, rows, query, pattern, limit)


def _hits(
    store: Store, rows: Iterable[sqlite3.Row], query: str, pattern: Any, limit: int
) -> list[Hit]:
    shown = _Showing(store)
    found: list[Hit] = []
    seen: set[tuple[bytes, int, bytes]] = set()
    for row in rows:
        key = (row["oid"], row["number"], row["source"])
        if key in seen:
            continue
        seen.add(key)
        hit = shown.hit(row, query, pattern)
        if hit is not None:
            found.append(hit)
            if len(found) == limit:
                break
    return found


def fts_query(query: str) -> str:
    """Return a query in the words of FTS5; "" when it has no word."""
    said: list[str] = []
    excluded: list[str] = []
    alternative = False
    for minus, phrase, word in _WORD.findall(query):
        text = phrase or word
        if not phrase and text == "OR" and not minus:
            alternative = bool(said)
            continue
        star = "*" if not phrase and text.endswith("*") else ""
        if not any(character.isalnum() or character == "_" for character in text):
            continue
        term = '"' + text.rstrip("*").replace('"', '""') + '"' + star
        if minus:
            excluded.append(term)
        elif alternative:
            said[-1] = f"({said[-1]} OR {term})"
            alternative = False
        else:
            said.append(term)
    if not said:
        return ""
    return " AND ".join(said) + "".join(f" NOT {term}" for term in excluded)


def _rows(
    base: sqlite3.Connection, match: str, wanted: SearchFilter, *, ranked: bool
) -> Generator[sqlite3.Row, None, None]:
    base.row_factory = sqlite3.Row
    tests: list[str] = []
    values: list[Any] = []

    def test(condition: str, *given: Any) -> None:
        tests.append(condition)
        values.extend(given)

    if match:
        test("words MATCH ?", match)
    if wanted.session:
        test("(m.ref LIKE ? OR m.ref LIKE ?)", _like(f"{BRANCHES}{wanted.session}", end=True))
        values.append(_like(f"/{wanted.session}", begin=True, end=True))
    if wanted.agent:
        test("m.ref LIKE ?", _like(f"{BRANCHES}sessions/{wanted.agent}/", end=True))
    for column, text in (("role", wanted.role), ("kind", wanted.kind)):
        if text:
            test(f"m.{column} = ?", text)
    if wanted.tool:
        test("' ' || m.tool || ' ' LIKE ?", _like(f" {wanted.tool} ", begin=True, end=True))
    if wanted.path:
        test("m.path LIKE ?", _like(wanted.path, begin=True, end=True))
    if wanted.since is not None:
        test("m.time >= ?", wanted.since)
    if wanted.until is not None:
        test("m.time <= ?", wanted.until)
    source = "words JOIN messages m ON m.id = words.rowid" if match else "messages m"
    where = " AND ".join(f"({each})" for each in tests).replace("LIKE ?", "LIKE ? ESCAPE '\\'")
    where = f" WHERE {where}" if where else ""
    order = "words.rowid" if match else "m.id"
    if ranked and match:
        inner = f"SELECT m.*, bm25(words) AS rank FROM {source}{where} ORDER BY {order} DESC"
        query = f"SELECT * FROM ({inner} LIMIT {RANKED}) ORDER BY rank"
    else:
        query = f"SELECT m.* FROM {source}{where} ORDER BY {order} DESC"
    yield from base.execute(query, values)


def _like(text: str, *, begin: bool = False, end: bool = False) -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"{'%' if begin else ''}{escaped}{'%' if end else ''}"


def _compiled(pattern: str) -> Any:
    import re2  # slow to load

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise InvalidInputError(f"not a pattern: {error}", value=pattern) from error


class _Showing:
    """Makes hits of rows; of what no branch leads to any more, none."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tips = dict(store.refs.iterate(BRANCHES))
        self._commits = commits_of(store)
        self._reached: dict[bytes, list[str]] = {}

    def hit(self, row: sqlite3.Row, query: str, pattern: Any) -> Hit | None:
        branches = self._branches(ObjectId(row["source"]), row["ref"])
        if not branches:
            return None
        try:
            text = self._text(row)
        except TraceError:
            return None  # what is damaged is for fsck to tell
        if pattern is not None:
            match = pattern.search(text)
            if match is None:
                return None
            start, end = match.span()
        else:
            start, end = _place(text, query)
        snippet, start, end = _snippet(text, start, end)
        return Hit(
            (ObjectId(row["oid"]), row["number"]),
            *(branches[0], len(branches), row["time"], row["role"]),
            *(snippet, start, end, row["oid"] != row["source"]),
        )

    def _branches(self, commit: ObjectId, first: str) -> list[str]:
        """Return the branches that lead to a commit, the one that it was found through first."""
        found = self._reached.get(commit)
        if found is None:
            order = sorted(self._tips, key=lambda ref: (ref != first, ref))
            found = [ref for ref in order if self._commits.is_ancestor(commit, self._tips[ref])]
            self._reached[commit] = found
        return found

    def _text(self, row: sqlite3.Row) -> str:
        read = self._store.objects.read
        commit = read_commit(row["source"], read)
        if row["oid"] == row["source"]:
            return text_of_parts(load_parts(created_messages(commit)[row["number"]]["parts"], read))
        for operation in commit.operations:
            if operation.name == ops.EDIT and operation.fields["target"][1] == row["number"]:
                return text_of_parts(load_parts(operation.fields["parts"], read))
        return ""


def _place(text: str, query: str) -> tuple[int, int]:
    """Return where the first word of a query that stands in a text literally is."""
    low = text.lower()
    for minus, phrase, word in _WORD.findall(query):
        said = (phrase or word.strip('*"')).lower()
        at = -1 if minus or not said else low.find(said)
        if at >= 0:
            return at, at + len(said)
    return 0, 0


def _snippet(text: str, start: int, end: int) -> tuple[str, int, int]:
    """Return a piece of a text on one line, and where in it the hit is."""
    end = min(end, start + 4 * AROUND)
    pieces = [
        _flat(text[max(0, start - AROUND) : start]),
        _flat(text[start:end]),
        _flat(text[end : end + AROUND]),
    ]
    lead = "…" if start > AROUND else ""
    tail = "…" if end + AROUND < len(text) else ""
    begin = len(lead) + len(pieces[0])
    return f"{lead}{''.join(pieces)}{tail}", begin, begin + len(pieces[1])


def _flat(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ").replace("\t", " ")
