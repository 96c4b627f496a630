"""`trace tag`."""

from __future__ import annotations

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.branch import deleted
from trace_cli.porcelain.common import JSON, NOTHING, QUIET, finish, opened, tell_secrets
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import LEFT, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_cli.runtime import Invocation, Results
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
) -> Results:
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
    with opened(invocation) as repo:
        if delete:
            if not names:
                raise usage_error("no tag is named", "for example: trace tag -d v1")
            gone = repo.tags.delete(*names)
            finish(invocation, repo)
            yield from deleted(repo, "tag", gone)
        elif names and not listing:
            if len(names) > 2:
                raise usage_error("give one name and at most one target")
            made = repo.tags.create(*names, message=message, force=force)
            tell_secrets(invocation, made.secrets, repo.guard)
            finish(invocation, repo)
            said = f"tag {safe(made.name)} at {made.target.short()}"
            yield made, f"created {said}" if made.changed else f"{NOTHING}: {said}"
        elif message:
            raise usage_error("no tag is named", "for example: trace tag -m TEXT v1")
        else:
            found = repo.tags.list(*names)
            yield found, _lines(invocation, found)


def _lines(invocation: Invocation, found: Sequence[TagEntry]) -> Iterator[str]:
    rows = [
        (safe(each.name), each.target.short(), one_line(each.tag.message, 72) if each.tag else "")
        for each in found
    ]
    yield from table(invocation, (), rows, LEFT * 3, [("", "yellow", "")] * len(rows))
