"""`trace cat-context`: the objects of a revision's context, all their bytes one after the other.

What is written is a stream of msgpack values, each an object in its canonical bytes. For each message, in the order of
the context: the commit that made it, unless it is that of the message before; of a message that was edited, the commit
with its wording; then the objects that hold its content, in the order of its parts. A list of chunks is followed by its
chunks. The placeholder of a removed message has no content. What several messages show comes with each of them.

Every object is hash-checked before it is written. A branch without a commit writes nothing.
"""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, takes
from trace_cli.plumbing.support import open_store
from trace_cli.runtime import Invocation
from trace_store.context.compiler import ContextCompiler


@takes(Argument("REVISION", "revision", "The revision; HEAD when not given", OPTIONAL))
def run(invocation: Invocation, *, revision: str | None) -> int:
    """Write the objects."""
    with open_store(invocation) as store:
        for piece in ContextCompiler(store).compile(revision or "HEAD").objects():
            invocation.write(piece)
    return 0
