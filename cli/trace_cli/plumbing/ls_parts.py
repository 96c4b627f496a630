"""`trace ls-parts`: the parts of all messages in a history.

One line per part of each message as it was first added, oldest commit first:

    <address> SP <role> SP <type> SP <size> SP <id> SP <tool>

The address is 32 hex digits, a dot and a number; the type is text, data, image, tool_call, tool_result, reasoning or
opaque; the size is the size of the content in bytes; the id is the object id of the content. The tool is the name of
the called tool for calls and results, and `-` for other parts. A tool result with several parts has one line for each.
Messages that were merged or picked are listed once. Hidden and edited messages are listed too; `trace ls-context` lists
what is shown.

Revisions are those of `trace rev-list` (default: HEAD). `--type` and `--tool` take names separated by commas.

`--format` sets the format of a line. It can contain:

    %(address)           the address     %(commit)            the first commit that adds it
    %(role)              the role        %(kind)              the kind of the message
    %(type)              the type        %(tool)              the tool, or nothing; %(tool:dash): the tool, or `-`
    %(objectname)        the id          %(objectname:short)  its first 12 characters
    %(objectsize)        the size        %(error)             "error" if the tool failed, or nothing
    %(tokens)            the tokens of the content in the repository's encoding, `-` if it is not text
    %%                   a percent sign  %xx                  the byte with these two hex digits

With `--json`, each line is a JSON object: `address`, `role`, `kind`, `type`, `tool` (or null), `error`, `id`, `size`,
and the content as `text`, or as `base64` if it is not UTF-8.

Entries end with a newline, or with a zero byte if `-z` is given.
"""

from __future__ import annotations

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.plumbing.contents import content_fields, json_line
from trace_cli.plumbing.support import open_store
from trace_cli.plumbing.templates import filler
from trace_cli.render.escape import one_line
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.base.oid import ObjectId
from trace_store.context.tokens.overhead import TokenMemo, content_text
from trace_store.context.tokens.tokenizer import Tokenizer, get_tokenizer
from trace_store.objects.codec import BLOB, blob_content, decode, kind_of
from trace_store.objects.commit import read_commit
from trace_store.objects.content import read_content
from trace_store.objects.operations import added_messages
from trace_store.store.revision import all_commits, commits_of, reach_of_several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from trace_store.objects.address import Address
    from trace_store.objects.commit import Commit
    from trace_store.store.store import Store

DEFAULT = "%(address) %(role) %(type) %(objectsize) %(objectname) %(tool:dash)"
NO_TEXT = ("image", "opaque")
RESULT = "tool_result"
CALL = "tool_call"
MAXIMUM_LOOK_BACK = 64
"""Maximum number of commits before the range to search for the calls of results in the range."""


@takes(
    Option("--type", "types", "Only parts of these types, separated by commas", "TYPE"),
    Option("--tool", "tools", "Only calls and results of these tools", "NAME"),
    Option("--all", "everything", "Start from all refs and HEAD"),
    Option("--stdin", "stdin", "Read more revisions from standard input, one per line"),
    Option("--format", "template", "The format of a line", "FORMAT"),
    Option("--json", "as_json", "Print one line of JSON per part, with its content"),
    Option("-z", "zero", "End entries with a zero byte instead of a newline"),
    Argument(
        "REVISION",
        "revisions",
        "Revisions (default: HEAD); ^A and A..B exclude what A reaches",
        ANY,
    ),
)
def run(
    invocation: Invocation,
    *,
    types: str | None,
    tools: str | None,
    everything: bool,
    stdin: bool,
    template: str | None,
    zero: bool,
    revisions: list[str],
) -> int:
    """Print the entries."""
    if invocation.as_json and template is not None:
        raise usage_error("give --json or --format, not both")
    words = [*revisions, *(invocation.input_lines() if stdin else ())]
    end = b"\0" if zero else b"\n"
    with open_store(invocation) as store:
        counter = _TokenCounter(store)
        fields = {**_FIELDS, "tokens": counter.tokens, "objectsize": lambda row: str(row.size())}
        fill = filler(DEFAULT if template is None else template, fields)
        make = _json(invocation) if invocation.as_json else fill
        wanted_types, wanted_tools = _names(types), _names(tools)
        try:
            for row in _rows(store, _commits(store, words, everything, stdin)):
                if wanted_types is not None and row.type not in wanted_types:
                    continue
                if wanted_tools is None or row.tool in wanted_tools:
                    invocation.write(make(row) + end)
        finally:
            counter.finish()
    return 0


class _Row:
    """One content of a message.

    `type` is the type of the message's part. `content_type` differs for a part inside a tool result.
    """

    __slots__ = (
        "address",
        "commit",
        "content_type",
        "error",
        "message",
        "oid",
        "store",
        "tool",
        "type",
    )

    def __init__(
        self,
        store: Store,
        commit: ObjectId,
        address: Address,
        message: Mapping[str, Any],
        part: Mapping[str, Any],
        oid: ObjectId,
        content_type: str,
        tool: str,
    ) -> None:
        self.store = store
        self.commit = commit
        self.address = address
        self.message = message
        self.type = str(part.get("type", ""))
        self.error = part.get("error") is True
        self.oid = oid
        self.content_type = content_type
        self.tool = tool

    def size(self) -> int:
        try:
            data = self.store.objects.read(self.oid)
        except errors.PurgedError:
            return len(self.content())
        if kind_of(data) == BLOB:
            return len(blob_content(data))
        fields = decode(data)[1]
        size = fields.get("size") if isinstance(fields, dict) else None
        return size if isinstance(size, int) else len(data)

    def content(self) -> bytes:
        try:
            return read_content(self.oid, self.store.objects.read)
        except errors.PurgedError as error:
            return str(error.placeholder).encode()  # a context shows the same text


_FIELDS: dict[str, Callable[[_Row], str]] = {
    "address": lambda row: row.address.hex,
    "commit": lambda row: str(row.commit),
    "role": lambda row: one_line(str(row.message.get("role", ""))),
    "kind": lambda row: one_line(str(row.message.get("kind", ""))),
    "type": lambda row: one_line(row.type),
    "tool": lambda row: one_line(row.tool),
    "tool:dash": lambda row: one_line(row.tool) or "-",
    "error": lambda row: "error" if row.error else "",
    "objectname": lambda row: str(row.oid),
    "objectname:short": lambda row: row.oid.short(),
}


class _TokenCounter:
    """Counts tokens, using the cache of token counts that contexts use."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tokenizer: Tokenizer | None = None
        self._memo: TokenMemo | None = None

    def tokens(self, row: _Row) -> str:
        """Return the token count as text, or "-" if the content is not text."""
        if row.content_type in NO_TEXT:
            return "-"
        if self._tokenizer is None or self._memo is None:
            self._tokenizer = get_tokenizer(self._store.config.tokenizer)
            name = self._tokenizer.encoding
            path = self._store.layout.token_memo_file(name)
            self._memo = TokenMemo(name, self._store.disk, path)
        count = self._memo.get(row.oid)
        if count is None:
            count = self._tokenizer.count(content_text(row.content()))
            self._memo.put(row.oid, count)
        return str(count)

    def finish(self) -> None:
        """Write new counts to the cache."""
        if self._memo is not None:
            self._memo.flush()


def _names(text: str | None) -> frozenset[str] | None:
    return None if text is None else frozenset(text.split(","))


def _commits(
    store: Store, words: list[str], everything: bool, stdin: bool
) -> tuple[list[ObjectId], set[ObjectId]]:
    """Return the commits as a list, parents first, and as a set."""
    revisions = words or ([] if everything or stdin else ["HEAD"])
    wanted, excluded = reach_of_several(store, revisions)
    if everything:
        wanted += all_commits(store)
    commits = list(commits_of(store).topological(wanted, excluded))
    commits.reverse()
    return commits, set(commits)


def _rows(store: Store, commits: tuple[list[ObjectId], set[ObjectId]]) -> Iterator[_Row]:
    order, known = commits
    calls: dict[str, str] = {}
    listed: set[Address] = set()
    for oid in order:
        commit = read_commit(oid, store.objects.read)
        added = list(added_messages(commit, oid))
        for _, message in added:
            _note_calls(message, calls)
        for address, message in added:
            if address in listed:
                continue  # merged or picked from elsewhere
            listed.add(address)
            for part in message["parts"]:
                tool = _tool(part, calls)
                if tool is None:
                    _collect_earlier_calls(store, commit, known, calls)
                    tool = _tool(part, calls) or ""
                for content, content_type in _contents(part):
                    yield _Row(store, oid, address, message, part, content, content_type, tool)


def _note_calls(message: Mapping[str, Any], calls: dict[str, str]) -> None:
    for part in message["parts"]:
        if part.get("type") == CALL:
            calls[part.get("id", "")] = str(part.get("name", ""))


def _tool(part: Mapping[str, Any], calls: dict[str, str]) -> str | None:
    """Return the tool of a part; "" if it has none, None if its call is unknown."""
    if part.get("type") == CALL:
        return str(part.get("name", ""))
    return calls.get(part.get("id", "")) if part.get("type") == RESULT else ""


def _collect_earlier_calls(
    store: Store, commit: Commit, known: set[ObjectId], calls: dict[str, str]
) -> None:
    """Add the calls before the range, so that results without a call in it have tool names."""
    for _ in range(MAXIMUM_LOOK_BACK):
        if not commit.parents or commit.parents[0] in known:
            return
        oid = commit.parents[0]
        known.add(oid)
        commit = read_commit(oid, store.objects.read)
        for _, message in added_messages(commit, oid):
            for part in message["parts"]:
                if part.get("type") == CALL:
                    calls.setdefault(part.get("id", ""), str(part.get("name", "")))


def _contents(part: Mapping[str, Any]) -> Iterator[tuple[ObjectId, str]]:
    """Yield (id, type) of each content of a part, including the parts of a result."""
    for field in ("blob", "url"):
        if isinstance(part.get(field), bytes):
            yield ObjectId(part[field]), str(part.get("type", ""))
    for inner in part.get("parts", ()):
        yield from _contents(inner)


def _json(invocation: Invocation) -> Callable[[_Row], bytes]:
    def make(row: _Row) -> bytes:
        record: dict[str, Any] = {
            "address": row.address.hex,
            "role": row.message.get("role"),
            "kind": row.message.get("kind"),
            "type": row.type,
            "tool": row.tool or None,
            "error": row.error,
            "id": str(row.oid),
        }
        content = row.content()
        record["size"] = len(content)
        record.update(content_fields(content))
        return json_line(record, ascii_only=invocation.terminal)

    return make
