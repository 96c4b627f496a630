"""What of a message a model may see, as bytes to hash and as parts to send.

Rule: the prefix hash covers role, name and parts, and nothing that a model is not shown (address, kind, labels), so
that equal contexts have equal prefixes wherever they came from.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.context.line import LINE_WIDTH, Line, call_line, result_line
from trace_store.objects import operations as ops
from trace_store.objects.address import RESULT, Address, absolute
from trace_store.objects.codec import encode
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.content import read_content
from trace_store.oid import ObjectId, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from trace_store.context.entries import Entry, Place
    from trace_store.context.fold import ReadCommit

    Stored = Mapping[str, Any]


def prefix_after(prefix: bytes, seen: bytes) -> bytes:
    """Return the prefix hash after one more message, given the hash of what is seen of it."""
    return digest(prefix + seen)


def seen_of_entry(entry: Entry) -> bytes:
    """Return the hash of what a model sees of a message: its role, name and parts, or its placeholder."""
    message = entry.message
    if entry.is_ghost:
        return seen_of_ghost(message["role"], entry.address)
    return seen_of(message["role"], message.get("name", ""), entry.parts)


def seen_of(role: str, name: str, parts: Sequence[Stored]) -> bytes:
    """Return the hash of what a model sees of a message: blake3 of its canonical bytes.

    Which message holds the call of a result is no part of it.
    """
    if any(part["type"] == RESULT and "call" in part for part in parts):
        parts = [{key: part[key] for key in part if key != "call"} for part in parts]
    return digest(encode(["message", {"name": name, "parts": parts, "role": role}]))


def seen_of_ghost(role: str, address: Address) -> bytes:
    """Return the hash of what a model sees of a removed message's placeholder."""
    return digest(encode(["ghost", {"role": role, "text": ghost_text(address)}]))


def ghost_text(address: tuple[bytes, int]) -> str:
    """Return the placeholder that a removed message leaves: it names the address to restore."""
    return f"[removed {Address(*address).short(8)}]"


def message_at(home: Place, read_commit: ReadCommit) -> Stored:
    """Return a message in stored form from where it stands: (commit, number among the messages that this adds).

    A carried message has its state with it; `parts` are its first wording in any case.

    Raises:
        CorruptObjectError: the commit adds no such message.
    """
    left = home[1]
    for operation in read_commit(home[0]).operations:  # no list of all: it would be made each time
        if operation.name in ops.ADDS_MESSAGES:
            messages: Sequence[Stored] = operation.fields["messages"]
            if left < len(messages):
                return messages[left]
            left -= len(messages)
    raise errors.CorruptObjectError(f"commit {ObjectId(home[0])} has no message {home[1]}")


def wordings_of(commit: Commit) -> Iterator[Sequence[Stored]]:
    """Yield all wordings that stand in a commit, in their order: of each message, and of each edit."""
    for operation in commit.operations:
        if operation.name == ops.EDIT:
            yield operation.fields["parts"]
        elif operation.name in ops.ADDS_MESSAGES:
            for message in operation.fields["messages"]:
                yield message["parts"]
                yield from message.get("edits", ())


def wording_at(place: Place, read_commit: ReadCommit) -> Sequence[Stored]:
    """Return stored parts from where they stand, as `wordings_of` numbers them; results name whole addresses.

    Raises:
        CorruptObjectError: the commit has no such wording.
    """
    for number, parts in enumerate(wordings_of(read_commit(place[0]))):
        if number == place[1]:
            return absolute(parts, place[0])
    raise errors.CorruptObjectError(f"commit {ObjectId(place[0])} has no wording {place[1]}")


def one_line(commit: Commit, read: Callable[[bytes], bytes], width: int = 72) -> str:
    """Return a commit as one line: its message, or what its operations do, computed when it is shown.

    Of a message's text it has the first `width` characters. Content that is not here is said to be absent; nothing is
    raised.
    """
    return "; ".join(line.cut(width) for line in lines_of(commit, read))


def lines_of(commit: Commit, read: Callable[[bytes], bytes]) -> list[Line]:
    """Return a commit's message as a line, or a line for each of its operations; one in any case."""
    if commit.message:
        return [Line(commit.message.split("\n", 1)[0])]
    if not commit.operations:
        return [Line("records without a message" if commit.meta else "no change")]
    # What a provider reported, and facts, are told only where nothing else happened.
    telling = [o for o in commit.operations if o.name not in ops.LEAVES_CONTEXT]
    operations = telling or commit.operations
    return [
        _add_line(operation, read)
        if operation.name == ops.ADD
        else Line(_operation_line(operation))
        for operation in operations
    ]


def _add_line(operation: Operation, read: Callable[[bytes], bytes]) -> Line:
    messages = operation.fields["messages"]
    if not messages:
        return Line("nothing")
    more = f" (+{len(messages) - 1})" if len(messages) > 1 else ""
    return Line(f"{messages[0]['role']}: ", _said(ops.worded(messages[0]), read), more)


def _operation_line(operation: Operation) -> str:
    fields = operation.fields
    if operation.name == ops.USAGE:
        return _usage_line(fields)
    if operation.name == ops.CONFIG:
        given = [*fields.get("meta", {}).items(), *fields.get("settings", {}).items()]
        return "config: " + ", ".join(f"{name}={value}" for name, value in given)
    if operation.name == ops.REPLACE:
        reason = fields.get("reason", "replace")
        count = len(fields["targets"])
        become = "message becomes" if count == 1 else "messages become"
        return f"{reason}: {count} {become} {len(fields['messages'])}"
    if operation.name == ops.ANNOTATE:
        marks = [fields[k] for k in ("priority",) if k in fields]
        marks += [f"+{label}" for label in fields.get("labels", ())]
        marks += [f"-{label}" for label in fields.get("unlabels", ())]
        return f"{' '.join(marks) or 'annotate'}: {_targets(fields['targets'])}"
    if operation.name == ops.TOOLS:
        count = len(fields["schemas"])
        return f"tools: {count} schema{'' if count == 1 else 's'}"
    if operation.name == ops.EDIT:
        return f"edit: {_targets([fields['target']])}"
    return f"{operation.name}: {_targets(fields.get('targets', ()))}"


def _usage_line(fields: Mapping[str, Any]) -> str:
    counts = [
        f"{fields[key]:,} {name}"
        for key, name in (("input_total", "in"), ("output_total", "out"))
        if isinstance(fields.get(key), int)
    ]
    return "usage: " + ", ".join([*([str(fields["model"])] if "model" in fields else []), *counts])


def message_line(stored: Stored, read: Callable[[bytes], bytes], width: int = 72) -> str:
    """Return a stored message as one line: its role and the beginning of what it says.

    Reasoning and what is in a provider's own form are named where there is nothing else.
    """
    return Line(f"{stored['role']}: ", _said(stored, read)).cut(width)


def _said(stored: Stored, read: Callable[[bytes], bytes]) -> str:
    said: list[str] = []
    for part in stored["parts"]:
        if part["type"] == "text":
            said.append(_beginning(part["blob"], read))
        elif part["type"] == "tool_call":
            said.append(call_line(part["name"], _beginning(part["blob"], read)))
        elif part["type"] == "tool_result":
            inner = [p for p in part["parts"] if p["type"] == "text"]
            said.append(result_line(_beginning(inner[0]["blob"], read) if inner else "[data]"))
        elif part["type"] not in ("opaque", "reasoning"):
            said.append(f"[{part['type']}]")
        if sum(map(len, said)) > LINE_WIDTH:
            break
    if not said and stored["parts"]:
        said.append(f"[{stored['parts'][0]['type']}]")
    return " ".join(" ".join(said).split())


def _beginning(oid: bytes, read: Callable[[bytes], bytes]) -> str:
    try:
        content = read_content(oid, read)
    except errors.PurgedError as error:
        return str(error.placeholder)
    except errors.NotFoundError:
        return "[absent]"
    except errors.FormatError:
        return "[damaged]"
    return content[: LINE_WIDTH * 8].decode("utf-8", "replace")


def _targets(targets: Sequence[Sequence[Any]]) -> str:
    names = [Address(*target).short(8) for target in targets[:3]]
    return ", ".join(names) + (f" (+{len(targets) - 3})" if len(targets) > 3 else "")
