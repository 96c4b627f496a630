"""`trace symbolic-ref`: the branch that HEAD points to.

`trace symbolic-ref HEAD` prints the full name, such as `refs/heads/main`, and a newline; with `--short` without
`refs/heads/`. If HEAD is detached, the exit code is 6. `trace symbolic-ref HEAD refs/heads/NAME` points HEAD to that
branch, which need not exist yet, and prints nothing.
"""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.plumbing.support import full_ref, open_store
from trace_cli.runtime import Invocation
from trace_store import refs
from trace_store.contracts.ref_names import BRANCHES


@takes(
    Option("--short", "short", "Print the branch name only"),
    Argument("NAME", "name", "HEAD"),
    Argument("REF", "ref", "The branch to set HEAD to", OPTIONAL),
)
def run(invocation: Invocation, *, short: bool, name: str, ref: str | None) -> int:
    """Print or set the branch of HEAD."""
    if name != "HEAD":
        raise usage_error(f"{name!r} is not a symbolic ref", "HEAD is the only one")
    if ref is not None and not ref.startswith(BRANCHES):
        raise usage_error(f"not a branch: {ref!r}", "give refs/heads/NAME")
    with open_store(invocation) as store:
        if ref is not None:
            left = store.refs.head()
            was = left.ref.removeprefix(BRANCHES) if left.ref else str(left.oid)
            # `@{-1}` searches the reflog for this wording, as in git.
            message = refs.reflog.switch_message(was, ref.removeprefix(BRANCHES))
            store.refs.set_head(ref, message=message)
            return 0
        branch = full_ref(store, "HEAD")
        invocation.line(branch.removeprefix(BRANCHES) if short else branch)
    return 0
