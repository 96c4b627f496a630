"""`trace unpack-objects`: unpack packs to loose objects.

Reads packs from standard input, one after the other. Each is verified as a whole before its objects are stored. One
line per object with its id, in the order of the pack; with `-q` nothing is printed. With `-n` packs are verified and
listed only.

If the input is not a pack, truncated or corrupt, the exit code is 12; earlier packs are stored.
"""

from __future__ import annotations

from trace_cli.arguments import Option, takes
from trace_cli.plumbing.pack_inputs import STANDARD_INPUT, examined, packs_on_stdin
from trace_cli.plumbing.support import open_store
from trace_cli.runtime import Invocation
from trace_store.odb.ingest import pack_of
from trace_store.odb.verify import PackVerifier


@takes(
    Option("-n", "dry", "Only verify and list"),
    Option("-q", "quiet", "Print nothing"),
)
def run(invocation: Invocation, *, dry: bool) -> int:
    """Store the objects, and print their ids."""
    with open_store(invocation) as store:
        for data in packs_on_stdin(invocation):
            examined(data)
            for found in PackVerifier(pack_of(data, STANDARD_INPUT)).objects():
                if not dry:
                    store.objects.write(found.data)
                if not invocation.quiet:
                    invocation.line(str(found.oid))
    return 0
