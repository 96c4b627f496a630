"""`trace rev-parse`: the ids that revisions mean.

One line for each argument, in order: a revision gives its object id; an address gives `<id>.<n>`; `A..B` gives the id
of B and, on the next line, `^` and the id of A; `A...B` gives the ids of A and B, then `^` and the id of each best
common ancestor; `^A` gives `^` and the id of A. With `--short`, ids have 12 characters. With `--trace-dir` the first
line is the absolute path of the repository's directory.
"""

from __future__ import annotations

import os

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.plumbing.support import open_store, reach
from trace_cli.runtime import Invocation
from trace_store.errors import NotFoundError
from trace_store.revision import ref_of, resolve, resolve_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.oid import ObjectId
    from trace_store.store import Store


@takes(
    Option("--short", "short", "Print 12 characters of each id"),
    Option("--trace-dir", "trace_dir", "Print the path of the repository's directory"),
    Argument("REVISION", "revisions", "Revisions, ranges or addresses", ANY),
)
def run(invocation: Invocation, *, short: bool, trace_dir: bool, revisions: list[str]) -> int:
    """Print the ids; nothing is printed when one of the revisions means nothing."""
    if not (revisions or trace_dir):
        raise usage_error("no revision to look up")
    with open_store(invocation) as store:
        lines = [line for each in revisions for line in _lines(store, each, short)]
        if trace_dir:
            invocation.line(os.path.abspath(store.layout.root))
    for line in lines:
        invocation.line(line)
    return 0


def _lines(store: Store, text: str, short: bool) -> list[str]:
    def shown(oid: ObjectId) -> str:
        return oid.short() if short else str(oid)

    if text.startswith("^") or ".." in text:
        wanted, hidden = reach(store, text)
        return [*map(shown, wanted), *(f"^{shown(oid)}" for oid in hidden)]
    if _ends_in_number(text):
        try:
            commit, number = resolve_address(store, text)
        except NotFoundError:
            if ref_of(store, text) is None:  # a branch may be called v1.0
                raise
        else:
            return [f"{shown(commit)}.{number}"]
    return [shown(resolve(store, text))]


def _ends_in_number(text: str) -> bool:
    head, point, tail = text.rpartition(".")
    return bool(head and point) and tail.isascii() and tail.isdigit()
