"""Filters for the log: commits by author, time, operation and content.

Fields in the commit table are checked first; a commit is read only if they match, and content last. All conditions on
messages must hold for the same message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.context.compiler import ContextCompiler
from trace_store.context.content import versions_of
from trace_store.context.file_paths import normal_path, normal_paths
from trace_store.context.fold import Fold
from trace_store.context.snippet import Snippet, snippet_in, texts_of
from trace_store.history.log import LogEntry, named
from trace_store.objects import operations as ops
from trace_store.objects.address import BIRTH_BYTES, Address, read_address
from trace_store.objects.commit import Commit
from trace_store.objects.message import KINDS, ROLES, is_kind, load_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.history.log import Unmatched

_BEFORE_NAME = frozenset("_-.")
_AFTER_NAME = frozenset("_-")


@value
class LogFilter:
    """Conditions on commits. All must hold; an empty one or None always holds.

    Attributes:
        author: a part of the author, ignoring case.
        since: the earliest time, in milliseconds since the epoch.
        until: the latest time.
        operation: the name of one of its operations.
        follow: the address of a message that it adds or changes.
        text: a part of a message or of the commit message, ignoring case.
        kind: the kind of a message.
        role: the role of a message.
        tool: the name of a tool that a message calls, or whose result it holds.
        path: a file or folder that a message mentions: the whole path, or its last components.
        priority: the commit sets this priority, or adds a message that has it in the context of the tip.
        label: the commit sets this label.
        meta: the name of a metadata field or setting that it records, or `name=value`.
        merges: True for merges only, False for other commits only.
    """

    author: str = ""
    since: int | None = None
    until: int | None = None
    operation: str = ""
    follow: Address | None = None
    text: str = ""
    kind: str = ""
    role: str = ""
    tool: str = ""
    path: str = ""
    priority: str = ""
    label: str = ""
    meta: str = ""
    merges: bool | None = None


def matching(
    contexts: ContextCompiler,
    entries: Iterable[LogEntry],
    wanted: LogFilter,
    tip: ObjectId,
    unmatched: Unmatched | None = None,
) -> Iterator[LogEntry]:
    """Yield the log entries that match a filter.

    Args:
        contexts: reads data that the entries lack.
        entries: of a log, children before their parents.
        wanted: the filter.
        tip: the commit whose context decides a message's priority.
        unmatched: called for each condition with a value that no entry has, if nothing matches.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is missing or damaged.
        InvalidInputError: there is no such operation, priority, kind or role.
    """
    _check("operation", wanted.operation, ops.OPERATIONS)
    _check("priority", wanted.priority, ops.PRIORITIES)
    if wanted.kind and not is_kind(wanted.kind):
        _check("kind", wanted.kind, KINDS)
    _check("role", wanted.role, ROLES)
    match = _Matcher(contexts, wanted, tip)
    values = _Values(wanted) if unmatched is not None else None
    for entry in entries:
        if match.entry(entry):
            values = None
            yield entry
        elif values is not None:
            values.add(entry)
        if wanted.follow is not None and entry.oid[:BIRTH_BYTES] == wanted.follow.birth:
            break  # older commits cannot name the message
    if values is not None and unmatched is not None:
        values.tell(unmatched)


def mentions(text: str, path: str) -> bool:
    """Return True if a text mentions a path or its last components, not only as a part of a name.

    Paths of other systems are equal to ours: see `context.file_paths`.
    """
    path = normal_path(path)
    if path.rstrip("/").rsplit("/", 1)[-1] not in text:
        return False  # the usual case, quickly
    text = normal_paths(text)
    at = text.find(path)
    while at >= 0:
        end = at + len(path)
        begins = not at or not (text[at - 1].isalnum() or text[at - 1] in _BEFORE_NAME)
        ends = end == len(text) or not (text[end].isalnum() or text[end] in _AFTER_NAME)
        if (begins or path[0] == "/") and (ends or path[-1] == "/"):
            return True
        at = text.find(path, at + 1)
    return False


def _check(what: str, word: str, known: Iterable[str]) -> None:
    if word and word not in known:
        raise errors.InvalidInputError(
            f"unknown {what} {word[:40]!r}; expected one of {', '.join(known)}"
        )


class _Values:
    """The values found in commits, for conditions that take any value, such as a tool."""

    def __init__(self, wanted: LogFilter) -> None:
        fields = ("author", "kind", "role", "tool", "label", "meta")
        self._wanted = {name: getattr(wanted, name) for name in fields if getattr(wanted, name)}
        self._found: dict[str, set[str]] = {name: set() for name in self._wanted}

    def add(self, entry: LogEntry) -> None:
        for name, found in self._found.items():
            found.update([entry.author] if name == "author" else self._of(name, entry.commit))

    def _of(self, name: str, commit: Commit) -> Iterator[str]:
        if name == "meta":
            with_value = "=" in self._wanted[name]
            for key in (ops.META, ops.SETTINGS):
                for fact, said in ops.facts_of(commit, key).items():
                    yield f"{fact}={said}" if with_value else fact
        elif name == "label":
            for operation in commit.operations:
                yield from operation.fields.get("labels", ())
        else:
            for message in ops.stored_messages(commit):
                yield from tools_of(message) if name == "tool" else (message[name],)

    def tell(self, unmatched: Unmatched) -> None:
        for name, given in self._wanted.items():
            found = sorted(self._found[name])
            if name == "author":
                is_found = any(given.casefold() in each.casefold() for each in found)
            else:
                is_found = given in found
            if not is_found:
                unmatched(name, given, found)


def tools_of(message: Mapping[str, Any]) -> list[str]:
    """Return the names of the tools that a stored message calls."""
    return [part["name"] for part in message["parts"] if part["type"] == "tool_call"]


class _Matcher:
    """A filter applied to one log."""

    def __init__(self, contexts: ContextCompiler, wanted: LogFilter, tip: ObjectId) -> None:
        self._contexts = contexts
        self._read: Callable[[bytes], bytes] = contexts.store.objects.read
        self._wanted = wanted
        self._author = wanted.author.casefold()
        self._text = wanted.text.casefold()
        self._tip = tip
        self._fold: Fold | None = None
        self._needs_content = bool(wanted.text or wanted.path)
        self._needs_message = bool(
            self._needs_content or wanted.kind or wanted.role or wanted.tool or wanted.priority
        )

    def entry(self, entry: LogEntry) -> bool:
        wanted = self._wanted
        if self._author and self._author not in entry.author.casefold():
            return False
        if wanted.merges is not None and wanted.merges != (len(entry.parents) > 1):
            return False
        if wanted.since is not None and entry.time < wanted.since:
            return False
        if wanted.until is not None and entry.time > wanted.until:
            return False
        if wanted.operation and wanted.operation not in entry.operations:
            return False
        if wanted.label and not _has_label(entry.commit, wanted.label):
            return False
        if wanted.meta and not _has_meta(entry.commit, wanted.meta):
            return False
        if wanted.follow is not None and not any(
            address == wanted.follow for address, _ in named(entry.oid, entry.commit)
        ):
            return False
        return not self._needs_message or self._matches_message(entry.oid, entry.commit)

    def _matches_message(self, oid: ObjectId, commit: Commit) -> bool:
        wanted = self._wanted
        only_text = not (
            wanted.kind or wanted.role or wanted.tool or wanted.priority or wanted.path
        )
        if self._text and only_text and self._text in commit.message.casefold():
            return True
        return any(self._message(*each) for each in self._messages(oid, commit))

    def _messages(
        self, oid: ObjectId, commit: Commit
    ) -> Iterator[tuple[Address, Mapping[str, Any], str]]:
        """Yield (address, stored message, priority set by the commit or "") for each message of a commit."""
        given: dict[Address, str] = {}
        for address, operation in named(oid, commit):
            if operation.name == ops.ANNOTATE and "priority" in operation.fields:
                given[address] = operation.fields["priority"]
        merges = len(commit.parents) > 1
        for address, message in ops.added_messages(commit, oid):
            if not (merges and ops.BORN in message):  # it matches in the merged line
                yield address, message, given.pop(address, "")
        for address, operation in named(oid, commit):
            if operation.name == ops.EDIT:
                stored = self._stored(address)
                yield (
                    address,
                    {**stored, "parts": operation.fields["parts"]},
                    given.get(address, ""),
                )
        if self._wanted.priority:
            for address, priority in given.items():
                yield address, self._stored(address), priority

    def _message(self, address: Address, stored: Mapping[str, Any], priority: str) -> bool:
        wanted = self._wanted
        if wanted.role and stored["role"] != wanted.role:
            return False
        if wanted.kind and stored["kind"] != wanted.kind:
            return False
        if wanted.tool and not any(self._is_tools(part, address) for part in stored["parts"]):
            return False
        if wanted.priority and wanted.priority not in (priority, self._priority(address)):
            return False
        return not self._needs_content or self._content(stored)

    def _is_tools(self, part: Mapping[str, Any], address: Address) -> bool:
        """Return True if a part calls the wanted tool or is a result of it."""
        if part["type"] == "tool_call":
            return bool(part["name"] == self._wanted.tool)
        if part["type"] != "tool_result" or "call" not in part:
            return False
        call = read_address(part["call"], address.birth)
        try:
            calls = self._stored(call)["parts"]
        except errors.MessageNotFoundError:
            return False
        return any(
            each["type"] == "tool_call"
            and each["id"] == part["id"]
            and each["name"] == self._wanted.tool
            for each in calls
        )

    def _content(self, stored: Mapping[str, Any]) -> bool:
        try:
            texts = list(texts_of(load_parts(stored["parts"], self._read)))
        except (errors.NotFoundError, errors.FormatError):
            return False  # missing content does not match
        if self._text and not any(self._text in text.casefold() for text in texts):
            return False
        path = self._wanted.path
        return not path or any(mentions(text, path) for text in texts)

    def _stored(self, address: Address) -> Mapping[str, Any]:
        """Return a message as it was created.

        Raises:
            MessageNotFoundError: it is not in the context of the tip.
        """
        return self._context().entry(address).message

    def _priority(self, address: Address) -> str:
        try:
            return self._context().entry(address).priority
        except errors.MessageNotFoundError:
            return ""

    def _context(self) -> Fold:
        if self._fold is None:
            self._fold = self._contexts.fold(self._tip)
        return self._fold


def snippet_of(commit: Commit, text: str, read: Callable[[bytes], bytes]) -> Snippet | None:
    """Return a snippet around a text in a commit's messages or edits, ignoring case; None if it does not occur."""
    found = (snippet_in(parts, text, read) for parts in versions_of(commit))
    return next((each for each in found if each is not None), None)


def _has_label(commit: Commit, label: str) -> bool:
    """Return True if a commit sets a label."""
    return any(label in each.fields.get("labels", ()) for each in commit.operations)


def _has_meta(commit: Commit, wanted: str) -> bool:
    """Return True if a commit records a metadata field or setting, given as `name` or `name=value`."""
    name, given, value = wanted.partition("=")
    found = [ops.facts_of(commit, key).get(name) for key in (ops.META, ops.SETTINGS)]
    return any(each is not None and (not given or each == value) for each in found)
