"""Model-visible content of messages, as bytes to hash; one-line commit summaries.

The prefix hash covers role, name and parts, and nothing that a model does not see (address, kind, labels). So equal
contexts have equal prefixes, whatever their history.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.oid import ObjectId, digest
from trace_store.objects import operations as ops
from trace_store.objects.address import RESULT, Address, resolve_calls
from trace_store.objects.codec import encode
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.content import is_private, read_content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from trace_store.context.fold import Entry, Place, ReadCommit

    Stored = Mapping[str, Any]


LINE_WIDTH = 300
"""Maximum number of quoted characters in a line."""


class SummaryLine:
    """A line whose quoted text may be shortened, but not what comes before and after."""

    __slots__ = ("after", "before", "said")

    def __init__(self, before: str, said: str = "", after: str = "") -> None:
        self.before = before
        self.said = said
        self.after = after

    def cut(self, width: int) -> str:
        """Return the line with at most `width` (and LINE_WIDTH) characters of quoted text, with an ellipsis if cut."""
        said, width = self.said, min(width, LINE_WIDTH)
        if len(said) > width:
            said = said[: width - 1] + "…"
        return self.before + said + self.after


_MAIN = (
    *("command", "cmd", "script", "code", "file_path", "filePath", "path", "pattern", "query"),
    *("url", "prompt", "description", "input", "name"),
)
"""Arguments that describe a call best, in order of preference."""


def call_line(name: str, arguments: str) -> str:
    """Return a call such as `[Bash] pytest -q`: its tool, and its main argument or the start of all arguments.

    Args:
        name: the tool.
        arguments: JSON or other text, which may be cut off anywhere.
    """
    said = " ".join(_main_argument(arguments).split())
    return f"[{name}] {said}" if said else f"[{name}]"


def result_line(text: str) -> str:
    """Return a result as an arrow, `->`, and its first line that is not blank."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"-> {first}" if first else "-> (nothing)"


def argument_of(arguments: str, names: Sequence[str]) -> str:
    """Return the first of some arguments that a call has, as text; "" without one.

    Args:
        arguments: JSON or other text, which may be cut off anywhere.
        names: the arguments, in order of preference.
    """
    if not arguments.lstrip().startswith("{"):
        return ""
    import json  # as slow as a whole command to import; only needed where calls are shown

    decoder = json.JSONDecoder()
    for key in names:
        _, mark, rest = arguments.partition(f'"{key}":')
        if not mark:
            continue
        value = rest.lstrip()
        try:
            found, _ = decoder.raw_decode(value)
        except (ValueError, RecursionError):
            # The text is cut off within this value.
            found = value.lstrip('"').replace("\\n", " ").replace('\\"', '"')
        if isinstance(found, list):
            found = " ".join(str(each) for each in found)
        if isinstance(found, str) and found.strip():
            return found
    return ""


def _main_argument(arguments: str) -> str:
    return argument_of(arguments, _MAIN) or ("" if arguments.strip() == "{}" else arguments)


def prefix_after(prefix: bytes, seen: bytes) -> bytes:
    """Return the prefix hash after one more message, given that message's hash."""
    return digest(prefix + seen)


def seen_of_entry(entry: Entry) -> bytes:
    """Return the hash of an entry's visible content, or of its placeholder."""
    message = entry.message
    if entry.is_ghost:
        return seen_of_ghost(message, entry.address)
    return seen_of(message["role"], message.get("name", ""), entry.parts)


def seen_of(role: str, name: str, parts: Sequence[Stored]) -> bytes:
    """Return the BLAKE3 hash of a message's model-visible content in canonical bytes.

    The links of results to their calls are not part of it.
    """
    return digest(encode(["message", {"name": name, "parts": _without_calls(parts), "role": role}]))


def seen_of_ghost(stored: Stored, address: Address) -> bytes:
    """Return the hash of a removed message's placeholder.

    The hash covers everything that the text is derived from, so no content is read. `stored` is the message as it was
    created.
    """
    parts = _without_calls(stored["parts"])
    named = {"address": address.short(8), "parts": parts, "role": stored["role"]}
    return digest(encode(["ghost", named]))


def are_private(parts: Sequence[Stored], read: Callable[[bytes], bytes]) -> bool:
    """Return True if some content of stored parts is private, that is hashed with a salt."""
    for part in parts:
        if part["type"] == RESULT:
            if are_private(part["parts"], read):
                return True
            continue
        try:
            if is_private(part["url"] if "url" in part else part["blob"], read):
                return True
        except errors.PurgedError:
            continue
    return False


def _without_calls(parts: Sequence[Stored]) -> Sequence[Stored]:
    """Return stored parts without the links of results to their calls."""
    if not any(part["type"] == RESULT and "call" in part for part in parts):
        return parts
    return [{key: part[key] for key in part if key != "call"} for part in parts]


def message_at(home: Place, read_commit: ReadCommit) -> Stored:
    """Return a stored message, given its commit and its number among the added ones.

    A carried message includes its state; `parts` are always its first version.

    Raises:
        CorruptObjectError: the commit adds no such message.
    """
    left = home[1]
    for operation in read_commit(home[0]).operations:  # avoids building a list on each call
        if operation.name in ops.ADDS_MESSAGES:
            messages: Sequence[Stored] = operation.fields["messages"]
            if left < len(messages):
                return messages[left]
            left -= len(messages)
    raise errors.CorruptObjectError(f"commit {ObjectId(home[0])} has no message {home[1]}")


def versions_of(commit: Commit) -> Iterator[Sequence[Stored]]:
    """Yield all versions of messages in a commit, in order: those of added messages, and edits."""
    for operation in commit.operations:
        if operation.name == ops.EDIT:
            yield operation.fields["parts"]
        elif operation.name in ops.ADDS_MESSAGES:
            for message in operation.fields["messages"]:
                yield message["parts"]
                yield from message.get("edits", ())


def version_at(place: Place, read_commit: ReadCommit) -> Sequence[Stored]:
    """Return the stored parts at a place, as `versions_of` numbers them; results have full addresses.

    Raises:
        CorruptObjectError: the commit has no such version.
    """
    for number, parts in enumerate(versions_of(read_commit(place[0]))):
        if number == place[1]:
            return resolve_calls(parts, place[0])
    raise errors.CorruptObjectError(f"commit {ObjectId(place[0])} has no version {place[1]}")


def one_line(commit: Commit, read: Callable[[bytes], bytes]) -> str:
    """Return a one-line summary of a commit: its message, or a line on its operations.

    Missing content is reported in the line instead of raised.
    """
    return "; ".join(line.cut(72) for line in lines_of(commit, read))


def lines_of(commit: Commit, read: Callable[[bytes], bytes]) -> list[SummaryLine]:
    """Return the commit message's first line, or a line for each operation; at least one."""
    if commit.message:
        return [SummaryLine(commit.message.split("\n", 1)[0])]
    if not commit.operations:
        return [SummaryLine("(metadata only)" if commit.meta else "no change")]
    # Usage and metadata are mentioned only if nothing else happened.
    telling = [o for o in commit.operations if o.name not in ops.LEAVES_CONTEXT]
    operations = telling or commit.operations
    return [
        _add_line(operation, read)
        if operation.name == ops.ADD
        else SummaryLine(_operation_line(operation))
        for operation in operations
    ]


def _add_line(operation: Operation, read: Callable[[bytes], bytes]) -> SummaryLine:
    messages = operation.fields["messages"]
    if not messages:
        return SummaryLine("nothing")
    more = f" (+{len(messages) - 1})" if len(messages) > 1 else ""
    return SummaryLine(
        f"{messages[0]['role']}: ", _quote_parts(ops.with_current_parts(messages[0]), read), more
    )


def _operation_line(operation: Operation) -> str:
    fields = operation.fields
    if operation.name == ops.USAGE:
        return _usage_line(fields)
    if operation.name == ops.CONFIG:
        given = [*fields.get("meta", {}).items(), *fields.get("settings", {}).items()]
        return "config: " + ", ".join(f"{name}={value}" for name, value in given)
    if operation.name == ops.RECORDS:
        return "records: " + (", ".join(fields["values"]) or "none")
    if operation.name == ops.REPLACE:
        reason = fields.get("reason", "replace")
        count = len(fields["targets"])
        become = "message becomes" if count == 1 else "messages become"
        return f"{reason}: {count} {become} {len(fields['messages'])}"
    if operation.name == ops.ANNOTATE:
        marks = [fields[k] for k in ("priority",) if k in fields]
        marks += [f"+{label}" for label in fields.get("labels", ())]
        marks += [f"-{label}" for label in fields.get("unlabels", ())]
        return f"{' '.join(marks) or 'annotate'}: {_list_targets(fields['targets'])}"
    if operation.name == ops.TOOLS:
        count = len(fields["schemas"])
        return f"tools: {count} schema{'' if count == 1 else 's'}"
    if operation.name == ops.EDIT:
        return f"edit: {_list_targets([fields['target']])}"
    if operation.name == ops.RESTORE and "version" in fields:
        return f"restore: {_list_targets(fields['targets'])} to version {fields['version']}"
    return f"{operation.name}: {_list_targets(fields.get('targets', ()))}"


def _usage_line(fields: Mapping[str, Any]) -> str:
    counts = [
        f"{fields[key]:,} {name}"
        for key, name in (("input_total", "in"), ("output_total", "out"))
        if isinstance(fields.get(key), int)
    ]
    return "usage: " + ", ".join([*([str(fields["model"])] if "model" in fields else []), *counts])


def message_line(stored: Stored, read: Callable[[bytes], bytes], width: int = 72) -> str:
    """Return a stored message as one line: its role and the start of its content.

    Reasoning and opaque parts are named only if there is nothing else.
    """
    return SummaryLine(f"{stored['role']}: ", _quote_parts(stored, read)).cut(width)


def _quote_parts(stored: Stored, read: Callable[[bytes], bytes]) -> str:
    said: list[str] = []
    for part in stored["parts"]:
        if part["type"] in ("text", "data"):
            said.append(_quote_blob(part["blob"], read))
        elif part["type"] == "tool_call":
            said.append(call_line(part["name"], _quote_blob(part["blob"], read)))
        elif part["type"] == "tool_result":
            inner = [p for p in part["parts"] if p["type"] in ("text", "data")]
            said.append(result_line(_quote_blob(inner[0]["blob"], read) if inner else "[data]"))
        elif part["type"] not in ("opaque", "reasoning"):
            said.append(f"[{part['type']}]")
        if sum(map(len, said)) > LINE_WIDTH:
            break
    if not said and stored["parts"]:
        said.append(f"[{stored['parts'][0]['type']}]")
    return " ".join(" ".join(said).split())


def _quote_blob(oid: bytes, read: Callable[[bytes], bytes]) -> str:
    try:
        content = read_content(oid, read)
    except errors.PurgedError as error:
        return str(error.placeholder)
    except errors.NotFoundError:
        return "[absent]"
    except errors.FormatError:
        return "[damaged]"
    return content[: LINE_WIDTH * 8].decode("utf-8", "replace")


def _list_targets(targets: Sequence[Sequence[Any]]) -> str:
    names = [Address(*target).short(8) for target in targets[:3]]
    return ", ".join(names) + (f" (+{len(targets) - 3})" if len(targets) > 3 else "")
