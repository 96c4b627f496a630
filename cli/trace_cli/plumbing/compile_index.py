"""`trace compile-index`: the compile index of a branch.

Without options, print the index as it is, without updating it. The first line is

    <ref> <commit id> <number of messages> <prefix hash>

with the commit that the index covers; then one line per message:

    <address> <role> <kind> <priority> <prefix hash>

The prefix hash has 64 hex characters and covers all messages up to this one. If there is no index, nothing is printed,
and the exit code is 4. `--rebuild` rebuilds the index from the history and prints the first line. `--verify` compares
the context from the index with one from the history alone. It prints `same <number of messages>`, or `differs
<position>` (from 0) with exit code 12. On a detached HEAD, <ref> is HEAD.
"""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import EXIT_DAMAGED, usage_error
from trace_cli.plumbing.support import open_store
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.context.compile_index import IndexView
from trace_store.context.compiler import ContextCompiler
from trace_store.store.revision import ref_of
from trace_store.store.store import Store


@takes(
    Option("--verify", "verify", "Compare it with a fresh compile"),
    Option("--rebuild", "rebuild", "Rebuild it"),
    Argument("BRANCH", "branch", "The branch (default: the current one)", OPTIONAL),
)
def run(invocation: Invocation, *, verify: bool, rebuild: bool, branch: str | None) -> int:
    """Print, check or rebuild the index."""
    if verify and rebuild:
        raise usage_error("give --verify or --rebuild, not both")
    with open_store(invocation) as store:
        contexts = ContextCompiler(store)
        ref = _ref(store, branch)
        if verify:
            return _verify(invocation, contexts, ref)
        view = contexts.rebuild(ref) if rebuild else contexts.index_view(ref)
        if view is None or view.tip is None:
            raise errors.NotFoundError(f"there is no compile index of {ref}", ref=ref)
        _print_head(invocation, ref, view)
        if not rebuild:
            for record in view.messages():
                address = record.address.hex
                fields = (address, record.role, record.kind, record.priority, record.prefix.hex())
                invocation.line(" ".join(fields))
    return 0


def _ref(store: Store, branch: str | None) -> str:
    if branch is None or branch in ("HEAD", "@"):
        return store.refs.head().ref or "HEAD"
    ref = ref_of(store, branch)
    if ref is None:
        raise errors.RefNotFoundError(f"there is no branch {branch!r}", ref=branch)
    return ref


def _print_head(invocation: Invocation, ref: str, view: IndexView) -> None:
    tip = (view.tip or b"").hex()
    invocation.line(f"{ref} {tip} {view.message_count} {view.prefix_hash.hex()}")


def _verify(invocation: Invocation, contexts: ContextCompiler, ref: str) -> int:
    found = contexts.verify(ref)
    if found.matches:
        invocation.line(f"same {found.message_count}")
        return 0
    position = found.message_count if found.first_difference is None else found.first_difference
    invocation.line(f"differs {position}")
    return EXIT_DAMAGED
