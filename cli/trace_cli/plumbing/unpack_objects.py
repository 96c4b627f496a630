"""`trace unpack-objects`: the objects of packs, each to a file of its own.

Reads packs from standard input, one after the other, until it ends. Each is checked as a whole before its objects are
stored: its hash, every frame, and of every object that it is one, in its one spelling. For each object one line with
its id, in the order of the pack; with `-q` nothing is printed. With `-n` all is checked, listed, and nothing stored.

What is no pack, is cut, or is damaged ends the run with exit code 12; the packs before it are stored.
"""

from __future__ import annotations

from trace_cli.arguments import Option, takes
from trace_cli.plumbing.pack_inputs import STANDARD_INPUT, examined, packs_on_stdin
from trace_cli.plumbing.support import open_store
from trace_cli.runtime import Invocation
from trace_store.odb.ingest import pack_of
from trace_store.odb.verify import PackVerifier


@takes(
    Option("-n", "dry", "Check and list, and store nothing"),
    Option("-q", "quiet", "Print nothing"),
)
def run(invocation: Invocation, *, dry: bool, quiet: bool) -> int:
    """Store the objects, and print their ids."""
    with open_store(invocation) as store:
        for data in packs_on_stdin(invocation):
            examined(data)
            for found in PackVerifier(pack_of(data, STANDARD_INPUT)).objects():
                if not dry:
                    store.objects.write(found.data)
                if not quiet:
                    invocation.line(str(found.oid))
    return 0
