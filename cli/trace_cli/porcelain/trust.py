"""`trace trust`: repositories of other users, and above the home folder, that may be opened."""

from __future__ import annotations

import os

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON
from trace_cli.render.escape import one_line
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.store import Trust
from trace_store.store.trust import Trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results


@takes(
    Argument("PATH", "path", "A folder or a `.trace` directory", OPTIONAL),
    Option("--below", "below", "All repositories below the folder with the same owner"),
    Option("--remove", "remove", "Remove the trust"),
    Option("--list", "listed", "List trusted paths"),
    JSON,
)
def trust(
    invocation: Invocation,
    *,
    path: str | None,
    below: bool,
    remove: bool,
    listed: bool,
) -> Results:
    """Allow opening a repository of another user, or one above your home folder.

    By default Trace does not open them, since anyone who can write to them controls what a model is shown. Trust is
    recorded in `trace/trusted` in your settings folder, never in a repository. It applies to this path and its current
    owner only, not to folders below or later owners.
    """
    if listed and (path is not None or below or remove):
        raise usage_error("--list takes no other option")
    known, place = Trust(invocation.environment), path or invocation.folder
    if listed:
        yield from _shown(known.list())
        return
    if remove:
        gone = known.remove(place)
        if not gone:
            raise errors.NotFoundError(
                f"{place} is not trusted", hint="`trace trust --list` lists trusted paths"
            )
        yield from _shown(gone)
        return
    named = path or invocation.directory
    made = known.add_below(place) if below else known.add(invocation.folder, directory=named)
    yield from _shown([made])


def _shown(known: list[Trusted]) -> Results:
    for each in known:
        path = os.path.join(each.path, "*") if each.below else each.path
        yield each, f"{one_line(path)} of user {each.owner}"
