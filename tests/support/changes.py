"""Random changes of a context, and how they are written."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.support.message_strategies import messages as any_messages
from trace_store import Message, Repo, Text, ToolCall, ToolResult
from trace_store.errors import FormatError, InvalidInputError, NotFoundError
from trace_store.history import commit
from trace_store.history.draft import Draft
from trace_store.writer import Writer

number = st.integers(0, 30)
numbers = st.lists(number, min_size=1, max_size=3)
plain = st.text(max_size=4).map(lambda text: Message("user", text))
names = st.sampled_from(["a", "b"])
calls = names.map(lambda name: Message("assistant", [ToolCall(name, "look", "{}")]))
results = st.lists(names, min_size=1, max_size=2).map(
    lambda found: Message("tool", [ToolResult(name, "seen") for name in found])
)
appends = st.one_of(
    st.lists(st.one_of(plain, any_messages), min_size=1, max_size=3),
    st.lists(plain, min_size=1, max_size=2),
    st.lists(st.one_of(plain, calls, results), min_size=1, max_size=3),
)
changes = st.one_of(
    st.tuples(st.just("append"), appends),
    st.tuples(st.just("append"), appends),
    st.tuples(st.just("edit"), number),
    st.tuples(st.just("mark"), numbers, st.sampled_from(["pinned", "important", "normal", "skip"])),
    st.tuples(st.just("label"), numbers, st.sampled_from(["a", "b"])),
    st.tuples(st.just("unlabel"), numbers, st.sampled_from(["a", "b"])),
    st.tuples(st.just("keep"), numbers, st.lists(st.just("x"), max_size=1)),
    st.tuples(st.just("remove"), numbers, st.booleans()),
    st.tuples(st.just("restore"), numbers),
    st.tuples(st.just("reword"), number, st.integers(0, 2)),
    st.tuples(st.just("replace"), numbers, st.lists(plain, max_size=2)),
    st.tuples(st.just("move"), numbers, st.one_of(st.none(), number)),
    st.tuples(st.just("usage"), number),
    st.tuples(st.just("tools"), number),
)
commits = st.lists(st.lists(changes, min_size=1, max_size=3), min_size=1, max_size=10)
"""Lists of the changes of each commit."""
long_histories = st.lists(st.lists(changes, min_size=1, max_size=2), min_size=5, max_size=14)
"""The same, for a context that has messages to begin with."""


def begin(repo: Repo) -> list[Any]:
    """Commit some messages, and return their addresses."""
    call, result = ToolCall("a", "look", "{}"), ToolResult("a", "seen")
    return [
        repo.append(role, said).addresses[0]
        for role, said in (
            ("user", "hi"),
            ("assistant", [call]),
            ("tool", [result]),
            ("assistant", "yes"),
            ("user", "more"),
        )
    ]


def draft_of(draft: Draft, change: tuple[Any, ...], known: list[Any]) -> None:
    """Add a change to a draft; numbers name messages, also such as are hidden."""

    def at(index: int) -> Any:
        return known[index % len(known)]

    name = change[0]
    if name == "append":
        known += draft.extend(change[1])
    elif name == "usage":
        draft.record_usage({"input_tokens": 1, "output_tokens": change[1]})
    elif name == "tools":
        draft.set_tools([{"name": f"tool {change[1]}"}])
    elif not known:
        return
    elif name == "reword":
        draft.restore([at(change[1])], version=change[2])
    elif name == "edit":
        draft.edit(at(change[1]), [Text(f"edited {change[1]}")], force=True)
    elif name == "move":
        after = None if change[2] is None else at(change[2])
        draft.move([at(each) for each in change[1]], after=after)
    else:
        targets = list(dict.fromkeys(at(each) for each in change[1]))
        if name == "mark":
            draft.annotate(targets, priority=change[2])
        elif name == "label":
            draft.annotate(targets, labels=[change[2]])
        elif name == "unlabel":
            draft.annotate(targets, unlabels=[change[2]])
        elif name == "keep":
            draft.annotate(targets, keep=change[2])
        elif name == "remove":
            draft.remove(targets, ghost=change[2])
        elif name == "restore":
            draft.restore(targets)
        elif name == "replace":
            known += draft.replace(targets, change[2])


def write_changes(repo: Repo, changed: list[tuple[Any, ...]], known: list[Any]) -> bool:
    """Commit these changes if possible, record added messages, and return success."""
    draft = Draft(Writer(repo.store, author="ada"))
    before = len(known)
    try:
        for change in changed:
            draft_of(draft, change, known)
        result = commit.write(draft)
    except (InvalidInputError, NotFoundError, FormatError):
        del known[before:]
        return False
    known[before:] = result.addresses
    return True
