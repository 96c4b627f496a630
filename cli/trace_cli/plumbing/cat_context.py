"""`trace cat-context`: all objects of a context as one stream.

The output is a stream of msgpack values, each an object in canonical bytes. For each message, in order: the commit that
added it, unless the previous message has the same; for an edited message, the commit with the current version; then the
objects of its content, part by part. A list of chunks is followed by its chunks. The placeholder of a removed message
has no content. Content that several messages share is repeated.

Every object is verified before it is written. A branch without a commit writes nothing.
"""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, takes
from trace_cli.plumbing.support import open_store
from trace_cli.runtime import Invocation
from trace_store.context.compiler import ContextCompiler


@takes(Argument("REVISION", "revision", "The revision (default: HEAD)", OPTIONAL))
def run(invocation: Invocation, *, revision: str | None) -> int:
    """Write the objects."""
    with open_store(invocation) as store:
        for piece in ContextCompiler(store).compile(revision or "HEAD").objects():
            invocation.write(piece)
    return 0
