"""`trace index-pack`: create a pack index, or store packs from a pipe.

    trace index-pack [-o FILE] PACK     writes PACK's index beside it (`.idx` in place of `.pack`), or to FILE
    trace index-pack --stdin            stores the packs on standard input in the repository

Both verify the whole pack first: its hash, its frames and every object. One line per pack: its name, 64 hex characters,
the hash of its bytes. Without `--stdin` no repository is needed.

With `--stdin`, several packs may follow one another. All are stored together, or none. A pack whose objects are all in
existing packs is not stored again, so that repeating the command changes nothing.

If the input is not a pack, truncated or corrupt, the exit code is 12, and nothing is stored.
"""

from __future__ import annotations

import os

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.plumbing.pack_inputs import (
    ADVICE,
    STANDARD_INPUT,
    examined,
    open_pack,
    packs_on_stdin,
)
from trace_cli.plumbing.support import open_store
from trace_cli.runtime import Invocation
from trace_store import errors, maintenance
from trace_store.disk.files import Disk, replace_file
from trace_store.disk.layout import INDEX_SUFFIX, PACK_SUFFIX
from trace_store.odb.ingest import PackReceiver


@takes(
    Option("--stdin", "stdin", "Store packs from standard input in the repository"),
    Option("-o", "output", "Write the index to this file", "FILE"),
    Argument("PACK", "pack", "The path of a pack", OPTIONAL),
)
def run(invocation: Invocation, *, stdin: bool, output: str | None, pack: str | None) -> int:
    """Write the index, or store the packs; print the names."""
    if stdin == (pack is not None):
        raise usage_error("give a pack, or --stdin")
    if stdin and output is not None:
        raise usage_error("-o cannot be combined with --stdin")
    if pack is None:
        return _receive(invocation)
    if output is None and not pack.endswith(PACK_SUFFIX):
        raise usage_error(f"{pack!r} does not end with {PACK_SUFFIX}", "-o names the index")
    disk = Disk()
    opened = open_pack(disk, pack)
    try:
        index = examined(opened).index()
        name = opened.digests()[0]
    finally:
        opened.close()
    target = pack.removesuffix(PACK_SUFFIX) + INDEX_SUFFIX if output is None else output
    replace_file(disk, os.path.abspath(target), index, durable=False)
    invocation.line(name)
    return 0


def _receive(invocation: Invocation) -> int:
    with open_store(invocation) as store:
        receiver = PackReceiver(store.disk, store.layout, store.objects)
        try:
            packs = packs_on_stdin(invocation)
            names = [receiver.add(data, STANDARD_INPUT).name for data in packs]
            maintenance.second_copies.keep_copies(store, list(receiver.publish()))
        except errors.CorruptPackError as error:
            error.data.setdefault("hint", ADVICE)
            raise
        finally:
            receiver.discard()
    for name in names:
        invocation.line(name)
    return 0
