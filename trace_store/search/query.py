"""Searches by words, phrases or a regular expression, with filters.

No query is a syntax error. Words are ANDed; "a phrase" matches adjacent words; `word*` matches a prefix, `-word`
excludes; `OR` separates alternatives. Punctuation, as in `foo.bar()`, splits a word into adjacent ones.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Generator, Iterable
from contextlib import ExitStack, closing
from itertools import chain, islice
from typing import Any

from trace_store.base import check
from trace_store.base.frozen import replace, value
from trace_store.base.oid import ObjectId
from trace_store.context.compiler import ContextCompiler
from trace_store.context.file_paths import normal_path, normal_paths
from trace_store.context.snippet import Snippet, snippet_at, texts_of
from trace_store.contracts.ref_names import BRANCHES, RECORDS, SESSIONS
from trace_store.errors import ErrorCode, InvalidInputError, MessageNotFoundError, TraceError
from trace_store.objects.address import Address
from trace_store.objects.commit import read_commit
from trace_store.objects.message import ROLES, load_parts
from trace_store.objects.parts import ToolCall
from trace_store.search.echoes import is_echo
from trace_store.search.hidden import hidden_texts
from trace_store.search.index import (
    IndexedVersion,
    Progress,
    SearchIndex,
    digits_of,
    indexed_versions,
    number_of,
)
from trace_store.search.segments import phrase_pattern, segmented
from trace_store.store.revision import commits_of
from trace_store.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.ident import Time
    from trace_store.history.log import Unmatched

NEWEST, RANKED = 200, 1_000
"""Number of the latest indexed hits that are sorted by time or bm25."""
COMMON = 1_000
"""A word of a question that more texts have, and more than an eighth of all, is left out if there are others."""
_WORD = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')
_OF_QUESTIONS = frozenset(
    (
        *(
            "a",
            "an",
            "and",
            "are",
            "as",
            "at",
            "be",
            "by",
            "can",
            "could",
            "did",
            "do",
            "does",
            "for",
            "from",
            "had",
        ),
        *(
            "has",
            "have",
            "how",
            "i",
            "if",
            "in",
            "is",
            "it",
            "its",
            "my",
            "of",
            "on",
            "or",
            "our",
            "shall",
            "should",
        ),
        *(
            "that",
            "the",
            "their",
            "them",
            "there",
            "these",
            "they",
            "this",
            "to",
            "us",
            "was",
            "we",
            "were",
            "what",
        ),
        *("when", "where", "which", "who", "why", "will", "with", "would", "you", "your"),
    )
)
_TOKEN = re.compile(r"\w+")

_TEXT_FILTERS = ("session", "agent", "role", "kind", "tool", "path", "label")


@value
class SearchFilter:
    """Conditions on hits; "" and None match anything.

    Attributes:
        session: a prefix of a session's id or a branch's name.
        agent: the program, such as `claude-code`.
        role, kind: of the message.
        tool: the name of a tool that it calls.
        path: a file or folder in the arguments of its calls; the last component may be a prefix.
        label: a label of the message in the branch's context.
        since, until: milliseconds since the epoch.
    """

    session: str = ""
    agent: str = ""
    role: str = ""
    kind: str = ""
    tool: str = ""
    path: str = ""
    label: str = ""
    since: int | None = None
    until: int | None = None


@value
class Hit:
    """A message that matches a search.

    Attributes:
        address: the message's address.
        ref: a branch that has it; with a filter by session or agent, one of theirs.
        time: when it was written, in milliseconds since the epoch.
        role: its role; "" for an edit.
        snippet: the text around the hit; the match is empty if the words do not occur literally.
        is_edit: whether the hit is a later version of the message.
        hidden: the name of the hidden value of a record that matches; "" for a message. The address is then that of the
            first message of its commit, which need not have one.
    """

    JSON = "role? hidden? edited=is_edit snippet=snippet.text start=snippet.start end=snippet.end"

    address: Address
    ref: str
    time: Time
    role: str
    snippet: Snippet
    is_edit: bool
    hidden: str = ""


def search(
    store: Store,
    query: str,
    wanted: SearchFilter | None = None,
    *,
    limit: int = 20,
    ranked: bool = False,
    regex: bool = False,
    phrases: Iterable[str] = (),
    hidden: bool = True,
    echoes: bool = True,
    progress: Progress | None = None,
    unmatched: Unmatched | None = None,
) -> list[Hit]:
    """Return the messages that match a query, newest first, including hidden ones and earlier versions.

    Hidden values of records match, too, unless a filter asks for what only messages have.

    Messages that also have all of `phrases` come before the others. The 200 hits indexed last are sorted by time; older
    ones come in the order of the index.

    Args:
        store: the repository's store.
        query: words as above, or an RE2 pattern; may be "" with a filter.
        wanted: filters.
        limit: maximum number of hits.
        ranked: show the best of the newest 1,000 first.
        regex: `query` is a pattern, which is applied to every message that passes the filters.
        phrases: texts whose words stand next to each other in the best hits.
        hidden: whether hidden values of records match.
        echoes: whether calls of Trace's own tools match, and what these returned.
        progress: called with the numbers of indexed and of all new commits.
        unmatched: called if nothing matches, for each filter whose value no message has: with its name, the value, and
            the values that there are.

    Raises:
        InvalidInputError: the query is empty, the pattern is not valid, or a session, agent or role is unknown.
        StateError: full-text search is not available.
        ObjectNotFoundError, CorruptObjectError: a commit is missing or damaged.
    """
    wanted = wanted or SearchFilter()
    wanted = replace(wanted, session=wanted.session.removeprefix(BRANCHES).removeprefix("refs/"))
    check.storable(query=query, **{each: getattr(wanted, each) for each in _TEXT_FILTERS})
    pattern = _compile_pattern(query) if regex else None
    match = "" if regex else fts_query(query)
    if wanted.path and not regex:
        match = " AND ".join(filter(None, (match, term_of(normal_path(wanted.path), "*"))))
    if not match and (query.strip() or wanted == SearchFilter()) and not regex:
        raise nothing_to_search_for(query)
    if wanted.role and wanted.role not in ROLES:
        raise InvalidInputError(
            f"unknown role {wanted.role[:40]!r}; expected one of {', '.join(ROLES)}"
        )
    with SearchIndex(store) as index:
        index.catch_up(progress)
        among = _branches_of(wanted, index.branches)
        exact = [f'"{each}"' for each in phrases if not regex and term_of(each)]
        builder = _HitBuilder(
            store, index, " ".join([*exact, query]), pattern, wanted, among, echoes=echoes
        )
        most = max(limit, RANKED if ranked else NEWEST)
        best = " AND ".join([f"({match})", *map(fts_query, exact)]) if match and exact else ""
        matching = [best, match] if best else [match]
        streams = [
            _rows(index.base, each, wanted, most, ranked=ranked, hidden=hidden) for each in matching
        ]
        with ExitStack() as stack:
            hits = [stack.enter_context(closing(builder.hits(rows))) for rows in streams]
            found = list(islice(chain.from_iterable(hits), limit))
        if unmatched is not None and not found:
            given = {name: getattr(wanted, name) for name in ("kind", "tool", "label")}
            for name, word in given.items():
                if word and word not in (known := builder.values_of(name)):
                    unmatched(name, word, sorted(known))
        return found


def matches(
    index: SearchIndex,
    store: Store,
    match: str,
    wanted: SearchFilter | None = None,
    *,
    query: str = "",
    beside: Iterable[str] = (),
    ranked: bool = False,
) -> Generator[Hit, None, None]:
    """Return the messages of an index that match an expression, read as needed: the newest or the best first.

    Args:
        index: an index that has caught up.
        store: its store.
        match: an FTS5 expression; "" matches everything.
        wanted: filters.
        query: words, of which the first in a text is marked in its snippet.
        beside: more expressions, each of which some message of the same branch matches.
        ranked: whether the best come first.
    """
    wanted = wanted or SearchFilter()
    builder = _HitBuilder(store, index, query, None, wanted)
    most = -1 if ranked else NEWEST
    return builder.hits(_rows(index.base, match, wanted, most, beside, ranked=ranked))


def any_word(index: SearchIndex, text: str) -> str:
    """Return the FTS5 expression for texts with a word of this one; "" without a word.

    Words of any question, and those that very many texts have, tell little and are left out if there are others.
    """
    words = dict.fromkeys(_TOKEN.findall(segmented(text.lower())))
    telling = [word for word in words if word not in _OF_QUESTIONS]
    counts = index.count_texts(telling or words)
    texts = index.base.execute("SELECT count(*) FROM messages").fetchone()[0]
    rare = [word for word, count in counts.items() if count <= max(COMMON, texts // 8)]
    if not any(map(counts.get, rare)):
        rare = sorted(counts, key=lambda word: counts[word] or texts)[:2]
    return " OR ".join(f'"{word}"' for word in rare)


def nothing_to_search_for(query: str) -> InvalidInputError:
    """Return the error for a query without a word."""
    return InvalidInputError("nothing to search for", value=query)


def fts_query(query: str) -> str:
    """Return a query in FTS5 syntax; "" without a word."""
    said: list[str] = []
    excluded: list[str] = []
    alternative = False
    for minus, phrase, word in _WORD.findall(query):
        text = phrase or word
        if not phrase and text == "OR" and not minus:
            alternative = bool(said)
            continue
        star = "*" if not phrase and text.endswith("*") else ""
        term = term_of(text, star)
        if not term:
            continue
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


def term_of(text: str, star: str = "") -> str:
    """Return the FTS5 expression for the words of a text in a row, the last a prefix with "*"; "" without a word."""
    if not any(character.isalnum() or character == "_" for character in text):
        return ""
    words = segmented(text.rstrip("*")).rstrip()
    return '"' + words.replace('"', '""') + '"' + star


def _rows(
    base: sqlite3.Connection,
    match: str,
    wanted: SearchFilter,
    newest: int,
    beside: Iterable[str] = (),
    *,
    ranked: bool,
    hidden: bool = False,
) -> Generator[sqlite3.Row, None, None]:
    base.row_factory = sqlite3.Row
    tests: list[str] = [] if hidden else ["m.number >= 0"]
    values: list[Any] = []

    def test(condition: str, *given: Any) -> None:
        tests.append(condition)
        values.extend(given)

    if match:
        test("words MATCH ?", match)

    def named(column: str, *patterns: str, of: str = "name", otherwise: str = "0") -> None:
        either = " OR ".join([f"{of} LIKE ? ESCAPE '\\'"] * len(patterns))
        test(f"(m.{column} IN (SELECT id FROM names WHERE {either}) OR {otherwise})", *patterns)

    shared = "m.made_by IN (SELECT id FROM shared)"  # by a branch that was indexed first
    if wanted.session:
        session = _escaped(wanted.session)
        named("ref", f"{BRANCHES}{session}%", f"%/{session}%", otherwise=shared)
    if wanted.agent:
        agent = _escaped(wanted.agent)
        named("ref", f"{SESSIONS}{agent}/%", f"{RECORDS}{agent}/%", otherwise=shared)
    if wanted.role:
        named("role", _escaped(wanted.role))
    if wanted.kind:
        named("kind", _escaped(wanted.kind))
    if wanted.tool:
        named("tool", f"% {_escaped(wanted.tool)} %", of="' ' || name || ' '")
    if wanted.path:
        test("m.tool IS NOT NULL")
    if wanted.since is not None:
        test("m.time >= ?", wanted.since)
    if wanted.until is not None:
        test("m.time <= ?", wanted.until)
    for each in beside:
        matching = "SELECT rowid FROM words WHERE words MATCH ?"
        test(f"m.ref IN (SELECT ref FROM messages WHERE id IN ({matching}))", each)
    source = "words JOIN messages m ON m.id = words.rowid" if match else "messages m"
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    order = "words.rowid" if match else "m.id"
    found = f"m.*, names.name AS branch FROM {source} JOIN names ON names.id = m.ref{where}"
    rank = "bm25(words) AS rank, " if ranked and match else ""
    query = f"SELECT {rank}{found} ORDER BY {order} DESC"
    first = (
        f"SELECT * FROM ({query} LIMIT {newest}) ORDER BY {'rank, ' * bool(rank)}time DESC, id DESC"
    )
    count = 0
    for row in base.execute(first, values):
        count += 1
        yield row
    if count == newest and not rank:
        yield from base.execute(f"{query} LIMIT -1 OFFSET {newest}", values)


def _branches_of(wanted: SearchFilter, branches: Iterable[str]) -> set[str] | None:
    """Return the branches of the session and the agent of a filter; None if it asks for neither.

    Raises:
        InvalidInputError: no branch belongs to them.
    """
    names = {ref: ref.removeprefix(BRANCHES) for ref in branches}
    owners = {ref: _agent_of(ref) for ref in names}
    agents = sorted({*owners.values()} - {""})
    if wanted.agent and wanted.agent not in agents:
        known = f"; there are {', '.join(agents)}" if agents else ""
        raise InvalidInputError(f"no session of agent {wanted.agent[:40]!r}{known}")
    session = wanted.session
    found = [
        ref for ref, name in names.items() if name.startswith(session) or f"/{session}" in name
    ]
    if session and not found:
        raise InvalidInputError(
            f"no session or branch begins with {session[:80]!r}", code=ErrorCode.SESSION_NOT_FOUND
        )
    if not (session or wanted.agent):
        return None
    return {ref for ref in found if wanted.agent in ("", owners[ref])}


def _agent_of(ref: str) -> str:
    """Return the program of a session or a record, or ""."""
    for prefix in (SESSIONS, RECORDS):
        agent, _, rest = ref.removeprefix(prefix).partition("/")
        if ref.startswith(prefix) and rest:
            return agent
    return ""


def _escaped(text: str) -> str:
    """Return a text escaped for LIKE."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _compile_pattern(pattern: str) -> Any:
    import re2  # slow to load

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said: Any = error.args[0] if error.args else ""
        detail = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise InvalidInputError(f"not a valid pattern: {detail}", value=pattern) from error


class _HitBuilder:
    """Converts rows of the index to hits; drops those whose commit is on no branch any more, or on none of `among`.

    A version that several commits carry is one hit. It fills the table `shared`, which `_rows` asks.
    """

    def __init__(
        self,
        store: Store,
        index: SearchIndex,
        query: str,
        pattern: Any,
        wanted: SearchFilter,
        among: Collection[str] | None = None,
        *,
        echoes: bool = True,
    ) -> None:
        self._store = store
        self._index = index
        self._growing: dict[str, bool] = {}
        self._query = query
        self._pattern = pattern
        self._wanted = wanted
        self._namespace = index.namespace
        self._tips = index.branches
        self._commits = commits_of(store)
        self._contexts = ContextCompiler(store)
        self._branches: dict[ObjectId, str | None] = {}
        self._seen: set[tuple[Address, int]] = set()  # with the hash of the text
        self._among = among
        self._echoes = echoes
        self._sharing = index.forks(among or ())
        base, forks = index.base, list(dict.fromkeys(chain(*self._sharing.values())))
        base.execute("CREATE TEMP TABLE IF NOT EXISTS shared (id INTEGER PRIMARY KEY)")
        shared = ((number_of(oid),) for oid in self._commits.walk(forks) if forks)
        base.executemany("INSERT OR IGNORE INTO shared VALUES (?)", shared)

    def hits(self, rows: Generator[sqlite3.Row, None, None]) -> Generator[Hit, None, None]:
        """Yield the hits of rows, and close them."""
        with closing(rows):
            yield from (hit for hit in map(self._hit, rows) if hit is not None)

    def _hit(self, row: sqlite3.Row) -> Hit | None:
        made_by = self._commit(row["made_by"])
        branch = None if made_by is None else self._branch(made_by, row["branch"])
        if made_by is None or branch is None:
            return None
        if row["number"] < 0:
            return self._hidden_hit(made_by, branch, row)
        try:
            version = self._version(made_by, row["number"])
            parts = load_parts(version.parts, self._store.objects.read)
            if not self._echoes and is_echo(parts, self._contexts.messages):
                return None
        except (TraceError, StopIteration):
            return None  # fsck reports damage
        calls = [part for part in parts if isinstance(part, ToolCall)]
        path, label = normal_path(self._wanted.path), self._wanted.label
        if path and not any(path in normal_paths(call.arguments) for call in calls):
            return None
        if label and label not in self._labels(branch, version.address):
            return None
        snippet = self._snippet(version.address, "\n".join(texts_of(parts)))
        if snippet is None:
            return None
        return Hit(version.address, branch, row["time"], version.role, snippet, version.is_edit)

    def _hidden_hit(self, made_by: ObjectId, branch: str, row: sqlite3.Row) -> Hit | None:
        read, address = self._store.objects.read, Address.of(made_by, 0)
        if self._wanted.path or self._wanted.label:
            return None
        try:
            commit = read_commit(made_by, read)
            found = {
                -1 - number: (name, texts) for number, name, texts in hidden_texts(commit, read)
            }
            name, texts = found[row["number"]]
        except (TraceError, KeyError):
            return None  # fsck reports damage
        said = [each for each in texts if not self._index.is_said(each)]
        snippet = self._snippet(address, "\n".join(said)) if said else None
        if snippet is None:
            return None
        return Hit(address, branch, row["time"], "", snippet, is_edit=False, hidden=name)

    def _snippet(self, address: Address, text: str) -> Snippet | None:
        """Return the snippet around the match in a text; None if it does not match, or was shown before."""
        if self._pattern is not None:
            match = self._pattern.search(text)
            if match is None:
                return None
            start, end = match.span()
        else:
            start, end = _find_match(text, self._query)
        if (address, hash(text)) in self._seen:
            return None
        self._seen.add((address, hash(text)))
        return snippet_at(text, start, end)

    def values_of(self, name: str) -> set[str]:
        """Return the kinds or tools of the indexed messages, or the labels in the contexts of all branches."""
        if name == "label":
            folds = (self._contexts.fold(tip) for tips in self._tips.values() for tip in tips)
            return {label for fold in folds for entry in fold.entries for label in entry.labels}
        query = f"SELECT name FROM names WHERE id IN (SELECT {name} FROM messages)"
        return {word for row in self._index.base.execute(query) for word in row[0].split()}

    def _commit(self, number: int) -> ObjectId | None:
        """Return the id of a commit by its number in the index; None if it is missing."""
        resolve, digits = self._store.objects.resolve_prefix, digits_of(number)
        found = resolve(digits, refresh=False) or resolve(digits)
        return next(iter(found), None)

    def _branch(self, commit: ObjectId, first: str) -> str | None:
        """Return a branch that contains a commit, preferably the one it was indexed through."""
        is_wanted = self._among is None or first in self._among
        if first not in self._growing:
            self._growing[first] = is_wanted and self._index.only_grew(first)
        if self._growing[first]:
            return first
        if commit not in self._branches:
            # An event belongs to one trajectory; a message may be on many branches.
            shares = self._tips if self._namespace == BRANCHES else ()
            others = shares if self._among is None else self._sharing
            refs = [first] if is_wanted and first in self._tips else []
            leading = (
                ref
                for ref in dict.fromkeys((*refs, *others))
                if any(self._commits.is_ancestor(commit, tip) for tip in self._tips[ref])
            )
            self._branches[commit] = next(leading, None)
        return self._branches[commit]

    def _labels(self, branch: str, address: Address) -> frozenset[str]:
        """Return the labels of a message in the context of a branch."""
        try:
            return self._contexts.fold(self._tips[branch][0]).entry(address).labels
        except MessageNotFoundError:
            return frozenset()

    def _version(self, oid: ObjectId, number: int) -> IndexedVersion:
        commit = read_commit(oid, self._store.objects.read)
        return next(islice(indexed_versions(commit, oid), number, None))


def _find_match(text: str, query: str) -> tuple[int, int]:
    """Return the span of the first word of a query that occurs in a text; (0, 0) if none does."""
    for minus, phrase, word in _WORD.findall(query):
        pattern = phrase_pattern(phrase or word, prefix=word.endswith("*"))
        if minus or not pattern:
            continue
        found = re.search(pattern, text, re.IGNORECASE)
        if found is not None:
            return found.span()
    return 0, 0
