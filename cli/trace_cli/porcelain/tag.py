"""`trace tag`."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.branch import tell_deleted
from trace_cli.porcelain.common import JSON, QUIET, finish, opened, tell_secrets
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import write_record
from trace_cli.render.tables import LEFT, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_cli.runtime import Invocation
    from trace_store.history.tags import TagEntry


@takes(
    Argument("NAME REVISION", "names", "The tag, and its target", ANY, completes="REVISION"),
    Option("-l --list", "listing", "List tags whose names match the patterns"),
    Option("-a --annotate", "annotate", "Create a tag with author, time and message"),
    Option("-m --message", "message", "The tag message; implies -a", "MESSAGE", default=""),
    Option("-d --delete", "delete", "Delete tags; the trash keeps them"),
    Option("-f --force", "force", "Replace an existing tag; the trash keeps the old target"),
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
    """List, create or delete tags.

    A tag names a commit or any other object, and does not move. Without NAME, list tags.

        trace tag v1                   tag HEAD's commit
        trace tag v1 main~2            tag another commit
        trace tag -m "Sent." v1        with message, author and time
        trace tag -d v1                delete it; the trash keeps the target
    """
    if annotate and not message:
        raise usage_error(
            "an annotated tag needs a message", "for example: trace tag -a v1 -m TEXT"
        )
    if listing and delete:
        raise usage_error("-l and -d exclude each other")
    with opened(invocation, quiet=quiet) as repo:
        if delete:
            if not names:
                raise usage_error("no tag is named", "for example: trace tag -d v1")
            found = repo.tags.delete(*names)
            finish(invocation, repo)
            tell_deleted(invocation, repo, "tag", found, as_json=as_json, quiet=quiet)
        elif names and not listing:
            if len(names) > 2:
                raise usage_error("give one name and at most one target")
            made = repo.tags.create(*names, message=message, force=force)
            tell_secrets(invocation, made.secrets, repo.guard)
            finish(invocation, repo)
            if as_json:
                write_record(invocation, trace_store.records.tag(made))
            elif not quiet:
                invocation.line(f"created tag {safe(made.name)} at {made.target.short()}")
        elif message:
            raise usage_error("no tag is named", "for example: trace tag -m TEXT v1")
        else:
            _list(invocation, repo.tags.list(*names), as_json=as_json)


def _list(invocation: Invocation, found: Sequence[TagEntry], *, as_json: bool) -> None:
    if as_json:
        for each in found:
            write_record(invocation, trace_store.records.tag(each))
        return
    rows = [
        (safe(each.name), each.target.short(), one_line(each.tag.message, 72) if each.tag else "")
        for each in found
    ]
    for line in table(invocation, (), rows, LEFT * 3, [("", "yellow", "")] * len(rows)):
        invocation.line(line)
