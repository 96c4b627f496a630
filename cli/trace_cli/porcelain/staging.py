"""`trace commit --staged`: what `trace reset` took back, committed again as one."""

from __future__ import annotations

from trace_cli.porcelain.opening import finish, guarded_message, opened_store
from trace_cli.porcelain.waiting import check_nothing_waits
from trace_cli.render.records import address_text, write_record
from trace_cli.render.tables import counted
from trace_store import branching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation


def commit_staged(
    invocation: Invocation, *, message: str, as_json: bool, quiet: bool, seals: bool
) -> None:
    """Commit what is staged for HEAD's branch, seal, and say what was written."""
    with opened_store(invocation, quiet=quiet) as store:
        check_nothing_waits(store)
        author = invocation.environment.author
        message = guarded_message(invocation, store, message)
        done = branching.commit_staged(store, author=author, message=message)
        finish(invocation, store, seals=seals)
        if as_json:
            record: dict[str, object] = {
                "commit": str(done.oid),
                "ref": done.ref,
                "message_count": done.message_count,
                "addresses": [address_text(address) for address in done.addresses],
                "secrets": {},
                "waiting": None,
            }
            write_record(invocation, record)
        elif not quiet:
            name = done.oid.short() if invocation.terminal else str(done.oid)
            made_of = counted(len(done.staged.commits), "staged commit")
            invocation.line(f"{name} {counted(done.message_count, 'message')}, from {made_of}")
