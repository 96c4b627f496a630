"""`trace update-ref`: create, move or delete refs with compare-and-swap.

    trace update-ref [-m TEXT] REF NEW [OLD]     set REF to NEW
    trace update-ref [-m TEXT] -d REF [OLD]      delete REF
    trace update-ref [-m TEXT] --stdin           lines of:  update SP REF SP NEW [SP OLD]
                                                            create SP REF SP NEW
                                                            delete SP REF [SP OLD]
                                                            verify SP REF [SP OLD]

NEW and OLD are revisions. If OLD is given, the ref must have that value; 64 zeros mean that it must not exist (as does
omitting OLD in `verify`). The lines of `--stdin` take effect together, or not at all. HEAD as REF means its branch.
Nothing is printed; the exit code is 11 if a ref has another value, and 4 if a ref to delete does not exist.
"""

from __future__ import annotations

from trace_cli.arguments import ANY as ANY_NUMBER
from trace_cli.arguments import Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.plumbing.support import ABSENT, author_of, full_ref, open_store, seal_if_due
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.contracts.ref_names import BRANCHES
from trace_store.objects.codec import COMMIT, kind_of
from trace_store.store.revision import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.contracts.protocols import RefReader
    from trace_store.store.store import Store


@takes(
    Option("-d --delete", "delete", "Delete the ref"),
    Option("-m", "message", "The reflog message", "TEXT"),
    Option("--stdin", "stdin", "Read updates from standard input, all or nothing"),
    Argument(
        "REF NEW OLD", "words", "The ref, its new value and the value it must have now", ANY_NUMBER
    ),
)
def run(
    invocation: Invocation, *, delete: bool, message: str | None, stdin: bool, words: list[str]
) -> int:
    """Update all refs, or none of them."""
    if stdin:
        if words or delete:
            raise usage_error("--stdin takes neither arguments nor -d")
        commands = [
            _parse_line(number, line) for number, line in enumerate(invocation.input_lines(), 1)
        ]
    else:
        verb = "delete" if delete else "update"
        if not _ARGUMENT_COUNTS[verb][0] <= len(words) <= _ARGUMENT_COUNTS[verb][1]:
            raise usage_error(f"cannot {verb} a ref with {len(words)} arguments", "see --help")
        commands = [(verb, words)]
    with open_store(invocation) as store:
        edits = [_edit(store, verb, words) for verb, words in commands]

        def build(refs: RefReader) -> Transaction | None:
            for edit in edits:
                # A ref that does not exist can be verified to be absent, but not deleted.
                if edit.new is None and edit.expected is not None and refs.read(edit.name) is None:
                    raise errors.RefNotFoundError(f"there is no ref {edit.name}", ref=edit.name)
            return Transaction((), edits, message or "update-ref") if edits else None

        author = author_of(invocation, store)
        store.transact(build, author=author)
        seal_if_due(store)
    return 0


_ARGUMENT_COUNTS = {"update": (2, 3), "create": (2, 2), "delete": (1, 2), "verify": (1, 2)}


def _parse_line(number: int, line: str) -> tuple[str, list[str]]:
    verb, *words = line.split(" ")
    low, high = _ARGUMENT_COUNTS.get(verb, (0, -1))
    if not low <= len(words) <= high:
        raise errors.InvalidInputError(f"line {number} of standard input is invalid: {line[:80]!r}")
    return verb, words


def _edit(store: Store, verb: str, words: list[str]) -> RefEdit:
    name = full_ref(store, words[0])
    if verb == "verify":
        expected = _expected_value(store, words[1:], default=None)
        return RefEdit(name, expected, expected)
    if verb == "delete":
        return RefEdit(name, None, _expected_value(store, words[1:]))
    new = resolve(store, words[1])
    if name.startswith(BRANCHES) and kind_of(store.objects.read(new)) != COMMIT:
        raise errors.InvalidInputError(f"{new.short()} is not a commit")
    return RefEdit(name, new, None if verb == "create" else _expected_value(store, words[2:]))


def _expected_value(store: Store, words: list[str], default: Any = ANY) -> Any:
    """Return the id that a ref must have, None if it must not exist, or ANY; `default` if OLD was omitted."""
    if not words:
        return default
    return None if words[0] == ABSENT else resolve(store, words[0])
