"""`trace tag`: names that stay where they are."""

from __future__ import annotations

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.branch import tell_deleted
from trace_cli.porcelain.common import JSON, QUIET, finish, guarded_message, opened_store
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import LEFT, table
from trace_store import history, repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_cli.runtime import Invocation
    from trace_store.history.tags import TagEntry


@takes(
    Argument("NAME REVISION", "names", "The tag, and what it names", ANY, completes="REVISION"),
    Option("-l --list", "listing", "List the tags whose names are like the patterns given"),
    Option("-a --annotate", "annotate", "Make a tag with an author, a time and a message"),
    Option("-m --message", "message", "What it says; makes it annotated", "MESSAGE", default=""),
    Option("-d --delete", "delete", "Delete tags into the trash"),
    Option("-f --force", "force", "Move a tag that is there; what it named is kept in the trash"),
    JSON,
    QUIET,
)
def tag(
    invocation: Invocation,
    *,
    names: list[str],
    listing: bool,
    annotate: bool,
    message: str,
    delete: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """List, make or delete tags.

    A tag names a commit, or any object, and stays there. Without NAME the tags are listed.

        trace tag v1                   name HEAD's commit
        trace tag v1 main~2            name another
        trace tag -m "Sent." v1        with a message, an author and a time
        trace tag -d v1                delete it; the trash keeps what it named
    """
    if annotate and not message:
        raise usage_error("an annotated tag says something", "for example: trace tag -a v1 -m TEXT")
    if listing and delete:
        raise usage_error("list tags, or delete some; choose one")
    with opened_store(invocation, quiet=quiet) as store:
        author = invocation.environment.author
        if delete:
            if not names:
                raise usage_error("no tag is named", "for example: trace tag -d v1")
            found = history.tags.delete_tags(store, names, author=author)
            finish(invocation, store)
            tell_deleted(invocation, store, "tag", found, as_json=as_json, quiet=quiet)
        elif names and not listing:
            if len(names) > 2:
                raise usage_error("a tag has one name and names one object")
            message = guarded_message(invocation, store, message)
            made = history.tags.create_tag(
                store, *names, author=author, message=message, force=force
            )
            finish(invocation, store)
            if as_json:
                write_record(invocation, repo.records.tag(made))
            elif not quiet:
                invocation.line(f"tag {safe(made.name)} names {made.target.short()}")
        elif message:
            raise usage_error("no tag is named", "for example: trace tag -m TEXT v1")
        else:
            _list(invocation, history.tags.list_tags(store, names), as_json=as_json)


def _list(invocation: Invocation, found: Sequence[TagEntry], *, as_json: bool) -> None:
    if as_json:
        for each in found:
            write_record(invocation, repo.records.tag(each))
        return
    rows = [
        (safe(each.name), each.target.short(), one_line(each.tag.message, 72) if each.tag else "")
        for each in found
    ]
    for line in table(invocation, (), rows, LEFT * 3, [("", "yellow", "")] * len(rows)):
        invocation.line(line)
