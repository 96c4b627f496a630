"""`trace for-each-ref`: refs, sorted by name.

One line per ref, by default `<id> SP <type> TAB <full name>`. A prefix selects the ref of that full name and those
below it (`refs/heads` selects `refs/heads/main`). `--format` sets the line. It can contain:

    %(refname)           the full name        %(refname:short)     without refs/heads/, refs/tags/ or refs/
    %(objectname)        the id               %(objectname:short)  its first 12 characters
    %(objecttype)        the type             %(diverged)          "diverged" or nothing
    %(HEAD)              "*" for HEAD's branch, else a space
    %%                   a percent sign       %xx                  the byte with these two hex digits

A diverged ref has the value of this working copy. With `--tips` it has one line per tip, that value first. The type of
an object that is not here is `missing`.
"""

from __future__ import annotations

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.plumbing.support import open_store
from trace_cli.plumbing.templates import filler
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.base.oid import ObjectId
from trace_store.objects.codec import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.store.store import Store

    Field = Callable[["_Row"], str]

DEFAULT = "%(objectname) %(objecttype)%09%(refname)"


class _Row:
    __slots__ = ("diverged", "head", "name", "oid", "store")

    def __init__(self, store: Store, name: str, oid: ObjectId, diverged: bool, head: bool) -> None:
        self.store = store
        self.name = name
        self.oid = oid
        self.diverged = diverged
        self.head = head

    def kind(self) -> str:
        try:
            return kind_of(self.store.objects.read(self.oid))
        except errors.ObjectNotFoundError:
            return "missing"

    def short_name(self) -> str:
        for prefix in ("refs/heads/", "refs/tags/", "refs/"):
            if self.name.startswith(prefix):
                return self.name[len(prefix) :]
        return self.name


_FIELDS: dict[str, Field] = {
    "refname": lambda row: row.name,
    "refname:short": lambda row: row.short_name(),
    "objectname": lambda row: str(row.oid),
    "objectname:short": lambda row: row.oid.short(),
    "objecttype": lambda row: row.kind(),
    "diverged": lambda row: "diverged" if row.diverged else "",
    "HEAD": lambda row: "*" if row.head else " ",
}


@takes(
    Option("--format", "template", "The format of a line", "FORMAT"),
    Option("--count", "limit", "Stop after this many", "NUMBER", number=True),
    Option("--tips", "tips", "List every tip of a diverged ref"),
    Argument("PREFIX", "prefixes", "Only the ref of this name and refs below it", ANY),
)
def run(
    invocation: Invocation,
    *,
    template: str | None,
    limit: int | None,
    tips: bool,
    prefixes: list[str],
) -> int:
    """Print a line for each ref that a prefix selects."""
    fill = filler(DEFAULT if template is None else template, _FIELDS)
    left = -1 if limit is None else limit
    with open_store(invocation) as store:
        head = store.refs.head().ref
        for name, oid in store.refs.iterate("refs/"):
            if prefixes and not any(_selects(prefix, name) for prefix in prefixes):
                continue
            if left == 0:
                break
            left -= 1
            all_tips = store.refs.tips(name)
            shown = (oid, *(tip for tip in all_tips if tip != oid)) if tips else (oid,)
            for tip in shown:
                row = _Row(store, name, tip, len(all_tips) > 1, name == head)
                invocation.write(fill(row) + b"\n")
    return 0


def _selects(prefix: str, name: str) -> bool:
    return name == prefix or name.startswith(prefix if prefix.endswith("/") else prefix + "/")
