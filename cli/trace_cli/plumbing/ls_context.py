"""`trace ls-context`: the messages of a context.

One entry per message of the compiled context, fields separated by single spaces:

    <address> <role> <kind> <tokens> <id>...

The address is 32 hex digits, a dot and a number. Tokens are counted in the repository's encoding, `-` without
`--tokens`. The ids are those of the content of each part; the placeholder of a removed message has none. Entries end
with a newline, with `-z` with a zero byte. A branch without a commit has no entries.
"""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.plumbing.support import open_store
from trace_cli.runtime import Invocation
from trace_store.context.compiler import ContextCompiler
from trace_store.objects.message import part_blobs


@takes(
    Option("--tokens", "tokens", "Count the tokens of each message"),
    Option("-z", "zero", "End entries with a zero byte"),
    Argument("REVISION", "revision", "The revision (default: HEAD)", OPTIONAL),
)
def run(invocation: Invocation, *, zero: bool, tokens: bool, revision: str | None) -> int:
    """Print the entries."""
    end = b"\0" if zero else b"\n"
    with open_store(invocation) as store:
        context = ContextCompiler(store).compile(revision or "HEAD")
        counts = [str(count) for count, _ in context.message_tokens()] if tokens else None
        for position, message in enumerate(context.messages):
            fields = [message.address.hex, message.role, message.kind]
            fields.append(counts[position] if counts else "-")
            if not message.ghost:
                fields += [oid.hex() for oid in part_blobs(message.stored["parts"])]
            invocation.write(" ".join(fields).encode("ascii") + end)
    return 0
