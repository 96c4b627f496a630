"""`trace ls-objects`: objects with their types and sizes.

One line per object, `<id> SP <type> SP <size>`, as in `trace cat-file --batch-check`: the size of a blob's content, or
of the canonical bytes of any other object.

Without revisions, all objects are listed in storage order, reachable or not. With revisions, the objects reachable from
them are listed, each once and after the objects that it links to. A revision can be any object. `^A` excludes what A
reaches, `A..B` is `B ^A`, `A...B` what only one of them reaches. `--all` starts from all refs and HEAD, `--stdin` reads
more revisions from standard input.

`--format` sets the line. It can contain:

    %(objectname)        the id          %(objectname:short)  its first 12 characters
    %(objecttype)        the type        %(objectsize)        the size
    %(objectsize:raw)    the size of the canonical bytes
    %%                   a percent sign  %xx                  the byte with these two hex digits

If a linked object is missing, the exit code is 4; with `--missing` it is listed with type `missing` and size `-`.
Entries end with a newline, with `-z` with a zero byte.
"""

from __future__ import annotations

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.plumbing.contents import size_of
from trace_cli.plumbing.ranges import object_sets
from trace_cli.plumbing.support import open_store
from trace_cli.plumbing.templates import filler
from trace_cli.render.escape import safe
from trace_cli.runtime import Invocation
from trace_store.base.oid import ObjectId
from trace_store.objects.codec import kind_of
from trace_store.odb.reachable import reachable, reachable_ids
from trace_store.store.revision import all_tips

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trace_store.store.store import Store

DEFAULT = "%(objectname) %(objecttype) %(objectsize)"
MISSING = "missing"


class _Row:
    __slots__ = ("data", "oid")

    def __init__(self, oid: ObjectId, data: bytes | None) -> None:
        self.oid = oid
        self.data = data  # None when the object is not here

    def kind(self) -> str:
        return MISSING if self.data is None else kind_of(self.data)


_FIELDS: dict[str, Callable[[_Row], str]] = {
    "objectname": lambda row: str(row.oid),
    "objectname:short": lambda row: row.oid.short(),
    "objecttype": lambda row: safe(row.kind()),
    "objectsize": lambda row: "-" if row.data is None else str(size_of(row.data)),
    "objectsize:raw": lambda row: "-" if row.data is None else str(len(row.data)),
}


@takes(
    Option("--kind", "kinds", "Only these types, separated by commas", "KIND"),
    Option("--all", "everything", "Start from all refs and HEAD"),
    Option("--stdin", "stdin", "Read more revisions from standard input, one per line"),
    Option("--missing", "missing", "List missing objects instead of failing"),
    Option("--format", "template", "The format of a line", "FORMAT"),
    Option("-z", "zero", "End entries with a zero byte"),
    Argument(
        "REVISION", "revisions", "List objects reachable from these (default: all objects)", ANY
    ),
)
def run(
    invocation: Invocation,
    *,
    kinds: str | None,
    everything: bool,
    stdin: bool,
    missing: bool,
    template: str | None,
    zero: bool,
    revisions: list[str],
) -> int:
    """Print a line for each object."""
    fill = filler(DEFAULT if template is None else template, _FIELDS)
    wanted = None if kinds is None else frozenset(kinds.split(","))
    if wanted is not None and "" in wanted:
        raise usage_error("--kind names no kind", "for example --kind blob, or --kind commit,tag")
    end = b"\0" if zero else b"\n"
    words = [*revisions, *(invocation.input_lines() if stdin else ())]
    with open_store(invocation) as store:
        has_starts = bool(words or everything or stdin)
        rows = (
            _reachable_rows(store, words, everything, missing) if has_starts else _all_rows(store)
        )
        for row in rows:
            if wanted is None or row.kind() in wanted:
                invocation.write(fill(row) + end)
    return 0


def _all_rows(store: Store) -> Iterator[_Row]:
    for oid, data in store.objects.read_many(store.objects.iterate()):
        yield _Row(oid, data)


def _reachable_rows(
    store: Store, words: list[str], everything: bool, missing: bool
) -> Iterator[_Row]:
    starts: list[ObjectId] = []
    excluded: list[ObjectId] = []
    for word in words:
        included, hidden = object_sets(store, word)
        starts += included
        excluded += hidden
    if everything:
        starts += all_tips(store)
    read = store.objects.read
    absent: list[ObjectId] = []

    def note(oid: ObjectId, source: ObjectId | None) -> None:
        absent.append(oid)

    hidden_ids = reachable_ids(read, excluded) if excluded else frozenset()
    for oid, data in reachable(read, starts, hidden=hidden_ids, absent=note if missing else None):
        for each in absent:
            yield _Row(each, None)
        absent.clear()
        yield _Row(oid, data)
    for each in absent:
        yield _Row(each, None)
